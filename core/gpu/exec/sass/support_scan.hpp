// SPDX-License-Identifier: Apache-2.0
// Which kernels of many cubins can be executed, and what stands in the way of the others. Each distinct
// instruction is decoded once: a library has tens of millions of them, most of them again and again.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gpu/exec/sass/decoder.hpp"
#include "gpu/exec/sass/sass_module.hpp"
#include "gpu/sass/cubin.hpp"

namespace manyscale::gpu {

class SupportScan {
 public:
  // Something that is not executed: the instruction's name with its modifiers, and why.
  struct Missing {
    std::string instruction;
    std::string why;
    sass::Words example;
    std::string kernel;              // that has the example, the first by name
    std::uint64_t instructions = 0;  // that are such
    std::uint64_t kernels = 0;       // that cannot be executed for this, or for this among others
    std::uint64_t alone = 0;         // that cannot be executed for this alone
  };

  void add(sass::Cubin cubin);

  std::uint64_t kernels() const { return kernels_; }
  std::uint64_t supported() const { return supported_; }
  std::uint64_t instructions() const { return instructions_; }
  std::uint64_t distinct() const { return distinct_; }
  const std::vector<Missing>& missing() const { return missing_; }

 private:
  static constexpr std::uint32_t kFine = ~std::uint32_t{0};
  struct Key {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    std::uint64_t context = 0;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  using Counts = std::map<std::uint32_t, std::uint64_t>;  // by index of what is missing

  struct Found {
    Counts counts;
    bool calls = false;
  };

  Found missing_in(const SassModule& module, const sass::CubinFunction& function,
                   const sass::CubinFunction& kernel);
  std::uint32_t problem_of(MachineDecoder& decoder, const sass::Instruction& instruction);
  std::uint32_t index_of(const std::string& instruction, const std::string& why);

  std::unordered_map<Key, std::uint32_t, Hash> known_;
  std::vector<bool> depends_on_offset_ = std::vector<bool>(1U << 12);  // by opcode and form
  std::vector<bool> is_call_ = std::vector<bool>(1U << 12);
  std::uint16_t architecture_ = 0;
  std::map<std::pair<std::string, std::string>, std::uint32_t> indices_;
  std::vector<Missing> missing_;
  std::uint64_t kernels_ = 0;
  std::uint64_t supported_ = 0;
  std::uint64_t instructions_ = 0;
  std::uint64_t distinct_ = 0;
};

}  // namespace manyscale::gpu

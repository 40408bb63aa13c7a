// SPDX-License-Identifier: Apache-2.0
// Looks over a CTA's shoulder for what hardware lets pass: shared memory touched by two threads without a
// barrier between them, and memory read before it was written. It keeps who touched what; access_check.cpp
// makes sentences of what it finds. Barriers are taken to order more than they do (all threads of the CTA, or
// of the warp), and of many readers of a byte two are remembered: a race may be missed, but what is found is
// one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "gpu/exec/checks.hpp"
#include "gpu/exec/program.hpp"

namespace manyscale::gpu {

// What an instruction means to the checker.
struct AccessTraits {
  bool strong = false;            // .volatile, .relaxed, …: several of them do not race
  bool releases = false;          // what the thread did before is seen by those who see this
  bool reads = true;              // an atomic operation that takes the old value into account
  bool of_parameter = false;      // of a function: copied when it is called
  bool stores_registers = false;  // a plain store: its values are known
  std::uint8_t value_bytes = 0;   // of the registers that hold them
};

// That a thread touched a byte.
struct Touch {
  std::uint32_t instruction = 0;  // the instruction
  std::uint32_t time = 0;         // of the CTA's accesses; 0: it did not happen
  std::uint16_t thread = 0;
  bool strong = false;
};

class Checker {
 public:
  Checker(Checks wanted, std::uint64_t shared_bytes, unsigned threads);

  // All threads have met; or those of one warp.
  void barrier();
  void warp_barrier(unsigned warp);

  // One instruction of a warp begins; all that its lanes touch happens at one time.
  void begin_access() { ++now_; }
  std::uint32_t now() const { return now_; }

  // A thread touches shared memory. What was done before to the same bytes by other threads, and is not
  // ordered before it: a write, and if it writes itself, a read.
  struct Conflict {
    Touch write;
    Touch read;
    std::uint64_t offset = 0;  // of the byte
  };
  Conflict shared_load(std::uint64_t offset, unsigned bytes, Touch touch);
  Conflict shared_store(std::uint64_t offset, unsigned bytes, Touch touch);
  // None of the bytes has been written.
  bool shared_never_written(std::uint64_t offset, unsigned bytes) const;

  void local_store(unsigned thread, std::uint64_t offset, unsigned bytes);
  bool local_never_written(unsigned thread, std::uint64_t offset, unsigned bytes) const;

  // True the first time for a kind of finding that is wanted, at these instructions.
  enum class FindingKind : std::uint8_t { race, shared, local, global, barrier };
  bool is_new(FindingKind kind, const OpInfo* one, const OpInfo* other);

  // The number of an instruction; `make` gives its traits when it is met for the first time.
  template <class Make>
  std::uint32_t number_of(const OpInfo& info, Make make) {
    const auto [found, is_new] =
        numbers_.try_emplace(&info, static_cast<std::uint32_t>(instructions_.size()));
    if (is_new) instructions_.push_back({&info, make()});
    return found->second;
  }
  struct CheckedInstruction {
    const OpInfo* info;
    AccessTraits traits;
  };
  const CheckedInstruction& instruction(std::uint32_t number) const { return instructions_[number]; }

 private:
  struct Byte {
    Touch write;
    Touch strong_write;
    Touch read;
    Touch other_read;  // the last one by another thread than `read`
  };
  bool is_written(const Byte& byte) const { return byte.write.time != 0 || byte.strong_write.time != 0; }
  const Touch* conflicting_write(const Byte& byte, const Touch& touch) const;
  bool conflicts(const Touch& earlier, const Touch& touch) const;
  bool is_wanted(FindingKind kind) const;

  Checks wanted_;
  std::vector<Byte> shared_;
  std::vector<std::vector<bool>> local_;  // written, by thread
  std::vector<std::uint32_t> last_warp_barrier_;
  std::uint32_t last_barrier_ = 0;
  std::uint32_t now_ = 0;
  std::vector<CheckedInstruction> instructions_;
  std::unordered_map<const OpInfo*, std::uint32_t> numbers_;
  std::set<std::tuple<FindingKind, const OpInfo*, const OpInfo*>> found_;
};

}  // namespace manyscale::gpu

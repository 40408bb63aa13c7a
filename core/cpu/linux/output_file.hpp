// SPDX-License-Identifier: Apache-2.0
// The standard output or error of a simulated process: bytes kept for whoever
// runs it, up to a limit.
#pragma once
#include <sys/stat.h>

#include <string>

#include "cpu/linux/open_file.hpp"
#include "cpu/linux/process.hpp"

namespace manyscale::cpu {

class OutputFile final : public OpenFile {
 public:
  OutputFile(Process& process, std::string& bytes, std::uint64_t identity)
      : process_(process), bytes_(bytes), identity_(identity) {
    status_flags = 1;  // for writing
  }

  // A process that has written too much cannot write on; the caller makes an
  // error of it.
  std::int64_t write(std::span<const std::uint8_t> from) override {
    const std::uint64_t written = process_.standard_output.size() + process_.standard_error.size();
    if (from.size() > process_.output_limit - std::min(process_.output_limit, written)) return -EFBIG;
    bytes_.append(reinterpret_cast<const char*>(from.data()), from.size());
    return static_cast<std::int64_t>(from.size());
  }
  FileFacts facts() const override { return {S_IFIFO | 0600, 0, identity_, 1}; }

 private:
  Process& process_;
  std::string& bytes_;
  std::uint64_t identity_;
};

}  // namespace manyscale::cpu

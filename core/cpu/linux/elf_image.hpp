// SPDX-License-Identifier: Apache-2.0
// A statically linked RISC-V executable as its file describes it. Every number
// of the file is checked here, so that what uses an image need not.
#pragma once
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace manyscale::cpu {

// A file that is no executable we can run, with the reason in words.
class ElfError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct ElfImage {
  // A piece of the file that is loaded, and zeros after it.
  struct Segment {
    std::uint64_t address = 0;
    std::uint64_t memory_bytes = 0;
    std::span<const std::uint8_t> contents;
    std::uint8_t permissions = 0;  // Permission
  };

  std::vector<Segment> segments;  // by address, not overlapping
  std::uint64_t entry = 0;
  std::uint64_t headers_address = 0;  // of the program headers in memory; 0 if they are not loaded
  std::uint16_t headers = 0;
  std::uint64_t begin = 0, end = 0;  // of all segments, whole pages
  bool position_independent = false;
};

// Reads the headers; the image refers to the bytes. `name` is for messages.
ElfImage parse_elf(std::span<const std::uint8_t> bytes, const std::string& name);

}  // namespace manyscale::cpu

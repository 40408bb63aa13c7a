// SPDX-License-Identifier: Apache-2.0
// Which edges of the readers an input took, for the fuzzer: gcc calls `__sanitizer_cov_trace_pc` in every
// basic block of files compiled with -fsanitize-coverage=trace-pc. Pairs of blocks are counted by a hash, so
// two edges may share a counter. Threads are told apart no further.
#include <cstddef>
#include <cstdint>

namespace {

constexpr std::size_t counters = 1 << 16;
std::uint8_t hits[counters];
std::uintptr_t first_block = 0;  // addresses count from here, so that they are the same in every process
thread_local std::uintptr_t last = 0;

}  // namespace

extern "C" {

__attribute__((visibility("default"))) void __sanitizer_cov_trace_pc() {
  const auto block = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)) - first_block;
  std::uint8_t& hit = hits[(block * 0x9e3779b97f4a7c15 >> 40 ^ last) % counters];
  if (hit != 255) ++hit;
  last = block * 0x9e3779b97f4a7c15 >> 41;
}

// The counters, `manyscale_fuzz_counters` bytes; the fuzzer sets them to zero between inputs.
__attribute__((visibility("default"))) std::uint8_t* manyscale_fuzz_hits() {
  first_block = reinterpret_cast<std::uintptr_t>(&manyscale_fuzz_hits);
  return hits;
}
__attribute__((visibility("default"))) std::size_t manyscale_fuzz_counters() {
  return counters;
}
}

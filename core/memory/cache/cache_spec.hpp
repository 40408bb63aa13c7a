// SPDX-License-Identifier: Apache-2.0
// Parameters of a cache.
#pragma once
#include <bit>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "engine/spec.hpp"
#include "memory/protocol.hpp"

namespace manyscale::memory {

struct CacheSpec {
  std::int64_t size = 32 * 1024;
  std::int64_t line = 64;
  std::int64_t ways = 8;
  bool sectored = false;
  std::string replacement = "lru";
  std::string write = "back";
  bool allocate_on_write = true;
  std::int64_t tag_latency = 1;
  std::int64_t data_latency = 3;
  std::int64_t outstanding_misses = 16;
  std::int64_t merged_misses = 16;
  std::int64_t banks = 1;
  std::int64_t ports = 1;
  bool hash_index = false;
  bool classify_misses = true;

  std::int64_t sets() const { return size / (line * ways); }
  std::uint8_t all_sectors() const { return static_cast<std::uint8_t>((1u << (line / sector_bytes)) - 1); }

  // Throws std::invalid_argument that says what does not fit together.
  void check() const {
    const auto fail = [](const std::string& what) { throw std::invalid_argument(what); };
    if (line < sector_bytes || line > 8 * sector_bytes ||
        !std::has_single_bit(static_cast<std::uint64_t>(line))) {
      fail("line: " + std::to_string(line) + "B is no power of two from 32B to 256B");
    }
    if (size == 0) fail("size: a cache holds at least one line");
    if (size % (line * ways) != 0) {
      fail("size: " + std::to_string(size) + "B is no multiple of line x ways (" + std::to_string(line) +
           "B x " + std::to_string(ways) + " = " + std::to_string(line * ways) + "B)");
    }
    if (ways > 64) fail("ways: at most 64, not " + std::to_string(ways));
    if (write != "back" && write != "through")
      fail("write: expected 'back' or 'through', not '" + write + "'");
  }
};

}  // namespace manyscale::memory

namespace manyscale {

template <>
struct describe<memory::CacheSpec> {
  using S = memory::CacheSpec;
  static constexpr auto fields = std::tuple{
      Field<S, std::int64_t>{"size", &S::size, Unit::bytes, "capacity; a multiple of line x ways", 0, 1e12},
      Field<S, std::int64_t>{"line", &S::line, Unit::bytes, "line size", 32, 256},
      Field<S, std::int64_t>{"ways", &S::ways, Unit::count, "associativity", 1, 64},
      Field<S, bool>{"sectored", &S::sectored, Unit::none,
                     "whether 32-byte sectors of a line are fetched one by one"},
      Field<S, std::string>{"replacement", &S::replacement, Unit::none,
                            "replacement policy: {replacement policy}"},
      Field<S, std::string>{"write", &S::write, Unit::none,
                            "back (written when evicted) or through (at once)"},
      Field<S, bool>{"allocate_on_write", &S::allocate_on_write, Unit::none,
                     "whether a write that misses takes a line; write-through private caches never do"},
      Field<S, std::int64_t>{"tag_latency", &S::tag_latency, Unit::cycles,
                             "cycles until hit or miss is known", 0, 1e6},
      Field<S, std::int64_t>{"data_latency", &S::data_latency, Unit::cycles, "cycles from there to the data",
                             0, 1e6},
      Field<S, std::int64_t>{"outstanding_misses", &S::outstanding_misses, Unit::count,
                             "MSHRs: lines that can be outstanding at a time", 1, 65536},
      Field<S, std::int64_t>{"merged_misses", &S::merged_misses, Unit::count,
                             "accesses that one MSHR can merge", 1, 65536},
      Field<S, std::int64_t>{"banks", &S::banks, Unit::count,
                             "banks, by line address; one access at a time each", 1, 1024},
      Field<S, std::int64_t>{"ports", &S::ports, Unit::count, "accesses that can begin in one cycle", 1, 64},
      Field<S, bool>{"hash_index", &S::hash_index, Unit::none,
                     "whether upper address bits are folded into the set index"},
      Field<S, bool>{"classify_misses", &S::classify_misses, Unit::none,
                     "whether misses are classified as cold, capacity and conflict"}};
};

}  // namespace manyscale

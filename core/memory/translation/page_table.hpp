// SPDX-License-Identifier: Apache-2.0
// Page tables in simulated memory: what a walk reads has physical addresses of its own.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/spec.hpp"

namespace manyscale::memory {

struct FrameSpec {
  std::int64_t memory_base = 0;
  std::int64_t memory_size = 16LL << 30;
  std::int64_t table_size = 256LL << 20;
  std::int64_t frame_size = 4096;
  std::string placement = "sequential";
  std::int64_t seed = 0;
};

// Stands for the operating system's choice of physical frames on first touch; leaves out freeing and reuse.
// Several page tables may share one. The tables themselves lie in the last `table_size` bytes of the memory.
class FrameAllocator {
 public:
  enum class Placement : std::uint8_t { identity, sequential, random };

  explicit FrameAllocator(const FrameSpec& spec);

  // The physical address for a page; throws where memory is used up, or `identity` would hit the tables.
  std::uint64_t allocate(std::uint64_t virtual_page_address, std::uint64_t page_size);
  // The physical address for a table of that many bytes, a power of two.
  std::uint64_t allocate_table(std::uint64_t bytes);

  const FrameSpec& spec() const { return spec_; }

 private:
  // The number of the n-th frame in an order drawn from the seed, without a list of all frames.
  std::uint64_t permuted(std::uint64_t number) const;

  const FrameSpec spec_;
  Placement placement_;
  std::uint64_t table_begin_ = 0;  // frames end here
  std::uint64_t end_ = 0;
  std::uint64_t next_ = 0;  // sequential: the next address; random: how many were given out
  std::uint64_t next_table_ = 0;
  std::uint64_t frames_ = 0;
  int half_bits_ = 0;
};

struct PageTableSpec {
  std::int64_t levels = 4;
  std::int64_t bits_per_level = 9;
  std::int64_t page_size = 4096;
  bool demand = true;
};

// A page and where it is.
struct Translation {
  std::uint64_t physical_address = 0;  // of the page's first byte
  std::uint64_t page_size = 0;

  std::uint64_t of(std::uint64_t virtual_address) const {
    return physical_address | (virtual_address & (page_size - 1));
  }
  bool operator==(const Translation&) const = default;
};

// Stands for one address space's radix page table, with entries of 8 bytes and pages of the base size or, by
// ending at a higher level, of 2^bits, 2^(2 bits), … times that; leaves out permissions, accessed and dirty
// bits, and levels of different width. Tables that become empty are kept.
class PageTable {
 public:
  static constexpr int most_levels = 6;
  static constexpr std::uint64_t entry_bytes = 8;

  // What a walk meets from the level it starts at: the entries it reads and the tables they lie in. Ends with
  // a page, or with an empty entry.
  struct Path {
    std::array<std::uint64_t, most_levels> entry_address{};
    std::array<std::uint32_t, most_levels> table{};
    int start_level = 0;  // 0 is the root
    int count = 0;
    bool mapped = false;
  };

  PageTable(const PageTableSpec& spec, FrameAllocator& frames);

  // Nothing where the address is not mapped, or beyond what the table can map.
  std::optional<Translation> find(std::uint64_t virtual_address) const {
    if (virtual_address >> address_bits_ != 0) return std::nullopt;
    std::uint64_t table = 0;
    for (int level = 0;; ++level) {
      const std::uint64_t entry = entries_[table << bits_ | index_at(virtual_address, level)];
      if ((entry & page_flag) != 0) return Translation{entry & ~flags, std::uint64_t{1} << shift_of(level)};
      if (entry == 0) return std::nullopt;
      table = entry >> flag_bits;
    }
  }
  // As find, but an address that is not mapped is given a page of the base size where `demand` is set; where
  // it is not, throws std::runtime_error, which names the address.
  Translation touch(std::uint64_t virtual_address);

  // Maps the page around the address to the frame around the other; throws std::invalid_argument where
  // something is mapped already or the size is none of the table's.
  void map(std::uint64_t virtual_address, std::uint64_t physical_address, std::uint64_t page_size);
  // As map, with a frame from the allocator.
  Translation map_new(std::uint64_t virtual_address, std::uint64_t page_size);
  // Returns what was mapped.
  std::optional<Translation> unmap(std::uint64_t virtual_address);

  // The way from the root, or from a table that a walk cache knows for the level.
  Path walk(std::uint64_t virtual_address, int level = 0, std::uint32_t table = 0) const;

  const PageTableSpec& spec() const { return spec_; }
  int levels() const { return levels_; }
  // What one entry of the level spans, as a power of two.
  int shift_of(int level) const { return page_shift_ + bits_ * (levels_ - 1 - level); }
  std::size_t tables() const { return table_address_.size(); }
  std::uint64_t table_address(std::uint32_t table) const { return table_address_.at(table); }

 private:
  // An entry is 0, or the number of a table above two flags, or the address of a page with its flag.
  static constexpr int flag_bits = 2;
  static constexpr std::uint64_t table_flag = 1;
  static constexpr std::uint64_t page_flag = 2;
  static constexpr std::uint64_t flags = 3;

  std::uint64_t index_at(std::uint64_t virtual_address, int level) const {
    return virtual_address >> shift_of(level) & ((std::uint64_t{1} << bits_) - 1);
  }
  std::uint32_t add_table();
  int level_for(std::uint64_t page_size) const;
  void check_range(std::uint64_t virtual_address) const;

  const PageTableSpec spec_;
  FrameAllocator& frames_;
  int levels_ = 0;
  int bits_ = 0;
  int page_shift_ = 0;
  int address_bits_ = 0;
  std::vector<std::uint64_t> entries_;  // of all tables, one after the other
  std::vector<std::uint64_t> table_address_;
};

}  // namespace manyscale::memory

namespace manyscale {

template <>
struct describe<memory::FrameSpec> {
  using Spec = memory::FrameSpec;
  static constexpr auto fields = std::tuple{
      Field<Spec, std::int64_t>{"memory_base", &Spec::memory_base, Unit::bytes,
                                "physical address at which the memory begins", 0, 1LL << 56},
      Field<Spec, std::int64_t>{"memory_size", &Spec::memory_size, Unit::bytes,
                                "of the memory for frames and tables", 4096, 1LL << 56},
      Field<Spec, std::int64_t>{"table_size", &Spec::table_size, Unit::bytes,
                                "of the part at the end of the memory that holds page tables", 64, 1LL << 50},
      Field<Spec, std::int64_t>{
          "frame_size", &Spec::frame_size, Unit::bytes,
          "of a frame, a power of two; random placement gives out frames of this size only", 64, 1LL << 40},
      Field<Spec, std::string>{"placement", &Spec::placement, Unit::none,
                               "identity (physical = virtual address), sequential or random"},
      Field<Spec, std::int64_t>{"seed", &Spec::seed, Unit::none, "of the order of random frames"}};
};

template <>
struct describe<memory::PageTableSpec> {
  using Spec = memory::PageTableSpec;
  static constexpr auto fields = std::tuple{
      Field<Spec, std::int64_t>{"levels", &Spec::levels, Unit::count, "tables on the way to a page", 1, 6},
      Field<Spec, std::int64_t>{"bits_per_level", &Spec::bits_per_level, Unit::count,
                                "address bits that select an entry of a table", 1, 16},
      Field<Spec, std::int64_t>{"page_size", &Spec::page_size, Unit::bytes,
                                "of the smallest pages, a power of two", 64, 1LL << 40},
      Field<Spec, bool>{"demand", &Spec::demand, Unit::none,
                        "whether touching an unmapped address maps it; else it is an error"}};
};

}  // namespace manyscale

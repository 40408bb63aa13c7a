// SPDX-License-Identifier: Apache-2.0
#include "memory/translation/page_table.hpp"

#include <bit>
#include <sstream>
#include <stdexcept>

#include "engine/random.hpp"

namespace manyscale::memory {

namespace {

std::string hex(std::uint64_t address) {
  std::ostringstream text;
  text << "0x" << std::hex << address;
  return text.str();
}

bool power_of_two(std::int64_t number) {
  return number > 0 && std::has_single_bit(static_cast<std::uint64_t>(number));
}

FrameAllocator::Placement placement_of(const std::string& name) {
  if (name == "identity") return FrameAllocator::Placement::identity;
  if (name == "sequential") return FrameAllocator::Placement::sequential;
  if (name == "random") return FrameAllocator::Placement::random;
  throw std::invalid_argument("no placement '" + name + "': identity, sequential or random");
}

std::uint64_t align_up(std::uint64_t address, std::uint64_t size) {
  return (address + size - 1) & ~(size - 1);
}

}  // namespace

FrameAllocator::FrameAllocator(const FrameSpec& spec)
    : spec_(spec), placement_(placement_of(spec.placement)) {
  if (!power_of_two(spec.frame_size)) {
    throw std::invalid_argument("the frame size is a power of two, not " + std::to_string(spec.frame_size));
  }
  if (spec.memory_base < 0 || spec.table_size < 0 || spec.table_size > spec.memory_size) {
    throw std::invalid_argument("the page tables do not fit into the memory");
  }
  const auto base = static_cast<std::uint64_t>(spec.memory_base);
  const auto frame_size = static_cast<std::uint64_t>(spec.frame_size);
  end_ = base + static_cast<std::uint64_t>(spec.memory_size);
  table_begin_ = end_ - static_cast<std::uint64_t>(spec.table_size);
  next_table_ = table_begin_;
  const std::uint64_t first = align_up(base, frame_size);
  frames_ = first < table_begin_ ? (table_begin_ - first) / frame_size : 0;
  half_bits_ = frames_ > 1 ? (std::bit_width(frames_ - 1) + 1) / 2 : 1;
  if (placement_ == Placement::sequential) next_ = base;
}

std::uint64_t FrameAllocator::allocate(std::uint64_t virtual_page_address, std::uint64_t page_size) {
  const auto used_up = [&] {
    return std::runtime_error("no frame of " + std::to_string(page_size) + " bytes is left for address " +
                              hex(virtual_page_address));
  };
  switch (placement_) {
    case Placement::identity:
      if (virtual_page_address < end_ && virtual_page_address + page_size > table_begin_) {
        throw std::runtime_error("with identity placement address " + hex(virtual_page_address) +
                                 " would lie on the page tables");
      }
      return virtual_page_address;
    case Placement::sequential: {
      const std::uint64_t frame = align_up(next_, page_size);
      if (frame > table_begin_ || table_begin_ - frame < page_size) throw used_up();
      next_ = frame + page_size;
      return frame;
    }
    case Placement::random:
      break;
  }
  const auto frame_size = static_cast<std::uint64_t>(spec_.frame_size);
  if (page_size != frame_size) {
    throw std::invalid_argument("random placement gives out frames of " + std::to_string(frame_size) +
                                " bytes, not " + std::to_string(page_size));
  }
  if (next_ == frames_) throw used_up();
  return align_up(static_cast<std::uint64_t>(spec_.memory_base), frame_size) + permuted(next_++) * frame_size;
}

std::uint64_t FrameAllocator::allocate_table(std::uint64_t bytes) {
  const std::uint64_t address = align_up(next_table_, bytes);
  if (address > end_ || end_ - address < bytes) {
    throw std::runtime_error("the memory for page tables is used up: " + std::to_string(spec_.table_size) +
                             " bytes");
  }
  next_table_ = address + bytes;
  return address;
}

// A Feistel network is a bijection of the next even power of two; numbers that fall outside go round again.
std::uint64_t FrameAllocator::permuted(std::uint64_t number) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  const std::uint64_t key = mix64(static_cast<std::uint64_t>(spec_.seed) + 0x9e3779b97f4a7c15u);
  do {
    std::uint64_t left = number >> half_bits_;
    std::uint64_t right = number & mask;
    for (std::uint64_t round = 1; round <= 4; ++round) {
      const std::uint64_t mixed = left ^ (mix64(key + round * 0x9e3779b97f4a7c15u + right) & mask);
      left = right;
      right = mixed;
    }
    number = left << half_bits_ | right;
  } while (number >= frames_);
  return number;
}

PageTable::PageTable(const PageTableSpec& spec, FrameAllocator& frames) : spec_(spec), frames_(frames) {
  if (spec.levels < 1 || spec.levels > most_levels) {
    throw std::invalid_argument("a page table has 1 to 6 levels, not " + std::to_string(spec.levels));
  }
  if (spec.bits_per_level < 1 || spec.bits_per_level > 16) {
    throw std::invalid_argument("a level of a page table has 1 to 16 bits, not " +
                                std::to_string(spec.bits_per_level));
  }
  if (!power_of_two(spec.page_size) || spec.page_size < 4) {
    throw std::invalid_argument("the page size is a power of two, not " + std::to_string(spec.page_size));
  }
  levels_ = static_cast<int>(spec.levels);
  bits_ = static_cast<int>(spec.bits_per_level);
  page_shift_ = std::countr_zero(static_cast<std::uint64_t>(spec.page_size));
  address_bits_ = page_shift_ + levels_ * bits_;
  if (address_bits_ > 63) {
    throw std::invalid_argument("the page table would map " + std::to_string(address_bits_) +
                                " address bits; at most 63 are possible");
  }
  add_table();
}

Translation PageTable::touch(std::uint64_t virtual_address) {
  if (const auto found = find(virtual_address)) return *found;
  if (!spec_.demand) throw std::runtime_error("address " + hex(virtual_address) + " is not mapped");
  return map_new(virtual_address, static_cast<std::uint64_t>(spec_.page_size));
}

void PageTable::map(std::uint64_t virtual_address, std::uint64_t physical_address, std::uint64_t page_size) {
  check_range(virtual_address);
  const int last = level_for(page_size);
  std::uint64_t table = 0;
  for (int level = 0;; ++level) {
    const std::uint64_t slot = table << bits_ | index_at(virtual_address, level);
    const std::uint64_t entry = entries_[slot];
    if ((entry & page_flag) != 0 || (level == last && entry != 0)) {
      throw std::invalid_argument("address " + hex(virtual_address) + " is mapped already");
    }
    if (level == last) {
      entries_[slot] = (physical_address & ~(page_size - 1)) | page_flag;
      return;
    }
    if (entry == 0) {
      table = add_table();
      entries_[slot] = table << flag_bits | table_flag;
    } else {
      table = entry >> flag_bits;
    }
  }
}

Translation PageTable::map_new(std::uint64_t virtual_address, std::uint64_t page_size) {
  check_range(virtual_address);
  level_for(page_size);
  const std::uint64_t frame = frames_.allocate(virtual_address & ~(page_size - 1), page_size);
  map(virtual_address, frame, page_size);
  return {frame, page_size};
}

std::optional<Translation> PageTable::unmap(std::uint64_t virtual_address) {
  const auto found = find(virtual_address);
  if (!found) return std::nullopt;
  const Path path = walk(virtual_address);
  const auto last = static_cast<std::size_t>(path.count - 1);
  const std::uint64_t table = path.table[last];
  entries_[table << bits_ | index_at(virtual_address, path.count - 1)] = 0;
  return found;
}

PageTable::Path PageTable::walk(std::uint64_t virtual_address, int level, std::uint32_t table) const {
  Path path;
  path.start_level = level;
  if (virtual_address >> address_bits_ != 0) return path;
  for (;; ++level) {
    const std::uint64_t index = index_at(virtual_address, level);
    const auto step = static_cast<std::size_t>(path.count++);
    path.entry_address[step] = table_address_[table] + index * entry_bytes;
    path.table[step] = table;
    const std::uint64_t entry = entries_[static_cast<std::uint64_t>(table) << bits_ | index];
    path.mapped = (entry & page_flag) != 0;
    if (path.mapped || entry == 0) return path;
    table = static_cast<std::uint32_t>(entry >> flag_bits);
  }
}

std::uint32_t PageTable::add_table() {
  const auto number = static_cast<std::uint32_t>(table_address_.size());
  table_address_.push_back(frames_.allocate_table(entry_bytes << bits_));
  entries_.resize(table_address_.size() << bits_);
  return number;
}

int PageTable::level_for(std::uint64_t page_size) const {
  for (int level = 0; level < levels_; ++level) {
    if (page_size == std::uint64_t{1} << shift_of(level)) return level;
  }
  throw std::invalid_argument("no level of the page table has pages of " + std::to_string(page_size) +
                              " bytes");
}

void PageTable::check_range(std::uint64_t virtual_address) const {
  if (virtual_address >> address_bits_ == 0) return;
  throw std::invalid_argument("address " + hex(virtual_address) + " has more than the " +
                              std::to_string(address_bits_) + " bits that the page table maps");
}

}  // namespace manyscale::memory

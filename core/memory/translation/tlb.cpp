// SPDX-License-Identifier: Apache-2.0
#include "memory/translation/tlb.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace manyscale::memory {

Tlb::Tlb(const TlbSpec& spec) : spec_(spec) {
  if (spec.entries < 1) throw std::invalid_argument("a TLB needs at least one entry");
  const std::int64_t ways = spec.ways == 0 ? spec.entries : spec.ways;
  if (ways < 1 || spec.entries % ways != 0) {
    throw std::invalid_argument("a TLB of " + std::to_string(spec.entries) + " entries has no sets of " +
                                std::to_string(ways) + " ways");
  }
  if (spec.page_size < 1 || !std::has_single_bit(static_cast<std::uint64_t>(spec.page_size))) {
    throw std::invalid_argument("the page size of a TLB is a power of two, not " +
                                std::to_string(spec.page_size));
  }
  page_shift_ = std::countr_zero(static_cast<std::uint64_t>(spec.page_size));
  sets_ = static_cast<std::uint64_t>(spec.entries / ways);

  const auto cells = std::bit_ceil(4 * static_cast<std::uint64_t>(spec.entries));
  index_.resize(cells);
  index_mask_ = static_cast<std::uint32_t>(cells - 1);
  index_shift_ = 64 - std::countr_zero(cells);

  entries_.resize(static_cast<std::size_t>(spec.entries));
  newest_.resize(sets_);
  const auto width = static_cast<std::uint32_t>(ways);
  for (std::uint32_t slot = 0; slot < entries_.size(); ++slot) {
    const std::uint32_t set = slot / width;
    const std::uint32_t first = set * width;
    entries_[slot].set = set;
    entries_[slot].older = first + (slot - first + 1) % width;
    entries_[slot].newer = first + (slot - first + width - 1) % width;
    newest_[set] = first;
  }
}

bool Tlb::fill(std::uint64_t virtual_address, std::uint32_t address_space, std::uint64_t frame) {
  const std::uint64_t page = virtual_address >> page_shift_;
  if (const std::uint32_t held = slot_of(page, address_space); held != none) {
    entries_[held].frame = frame;
    make_first(held);
    return false;
  }
  // The oldest of the ring becomes the newest by turning the ring. Empty slots are always the oldest.
  std::uint32_t& first = newest_[sets_ == 1 ? 0 : page % sets_];
  const std::uint32_t slot = entries_[first].newer;
  first = slot;
  Entry& entry = entries_[slot];
  const bool evicts = entry.valid;
  if (evicts) {
    leave_index(slot);
    ++statistics_.evictions;
  } else {
    ++size_;
  }
  entry.page = page;
  entry.address_space = address_space;
  entry.frame = frame;
  entry.valid = true;
  enter_index(slot);
  return evicts;
}

std::int64_t Tlb::invalidate(std::uint64_t virtual_address, std::uint32_t address_space) {
  const std::uint32_t slot = slot_of(virtual_address >> page_shift_, address_space);
  if (slot == none) return 0;
  remove(slot);
  return 1;
}

std::int64_t Tlb::invalidate_range(std::uint64_t virtual_address, std::uint64_t bytes,
                                   std::uint32_t address_space) {
  if (bytes == 0) return 0;
  const std::uint64_t first = virtual_address >> page_shift_;
  const std::uint64_t last = (virtual_address + (bytes - 1)) >> page_shift_;
  std::int64_t removed = 0;
  if (last - first < entries_.size()) {
    for (std::uint64_t page = first; page <= last; ++page) {
      removed += invalidate(page << page_shift_, address_space);
    }
    return removed;
  }
  for (std::uint32_t slot = 0; slot < entries_.size(); ++slot) {
    const Entry& entry = entries_[slot];
    if (!entry.valid || entry.address_space != address_space || entry.page < first || entry.page > last) {
      continue;
    }
    remove(slot);
    ++removed;
  }
  return removed;
}

std::int64_t Tlb::invalidate_address_space(std::uint32_t address_space) {
  std::int64_t removed = 0;
  for (std::uint32_t slot = 0; slot < entries_.size(); ++slot) {
    if (!entries_[slot].valid || entries_[slot].address_space != address_space) continue;
    remove(slot);
    ++removed;
  }
  return removed;
}

std::int64_t Tlb::invalidate_all() {
  const std::int64_t removed = size_;
  for (Entry& entry : entries_) entry.valid = false;
  std::fill(index_.begin(), index_.end(), Cell{});
  size_ = 0;
  statistics_.shootdowns += removed;
  return removed;
}

void Tlb::enter_index(std::uint32_t slot) {
  const Entry& entry = entries_[slot];
  std::uint32_t cell = home_of(entry.page, entry.address_space);
  while (index_[cell].slot != none) cell = (cell + 1) & index_mask_;
  index_[cell] = {entry.page, entry.address_space, slot};
}

// Takes the slot out of the index and closes the gap, so that no search ends too early.
void Tlb::leave_index(std::uint32_t slot) {
  const Entry& entry = entries_[slot];
  std::uint32_t gap = home_of(entry.page, entry.address_space);
  while (index_[gap].slot != slot) gap = (gap + 1) & index_mask_;
  for (std::uint32_t cell = (gap + 1) & index_mask_; index_[cell].slot != none;
       cell = (cell + 1) & index_mask_) {
    const std::uint32_t home = home_of(index_[cell].page, index_[cell].address_space);
    if (((cell - home) & index_mask_) < ((cell - gap) & index_mask_)) continue;
    index_[gap] = index_[cell];
    gap = cell;
  }
  index_[gap] = Cell{};
}

void Tlb::remove(std::uint32_t slot) {
  leave_index(slot);
  Entry& entry = entries_[slot];
  entry.valid = false;
  std::uint32_t& first = newest_[entry.set];
  if (slot == first) {
    first = entry.older;
  } else {
    move_before(slot, first);
  }
  --size_;
  ++statistics_.shootdowns;
}

TlbHierarchy::TlbHierarchy(const std::vector<std::vector<TlbSpec>>& levels) {
  if (levels.empty()) throw std::invalid_argument("a TLB hierarchy needs at least one level");
  std::int64_t latency = 0;
  for (const std::vector<TlbSpec>& specs : levels) {
    if (specs.empty()) throw std::invalid_argument("a level of a TLB hierarchy needs at least one TLB");
    auto sorted = specs;
    std::sort(sorted.begin(), sorted.end(),
              [](const TlbSpec& a, const TlbSpec& b) { return a.page_size < b.page_size; });
    Level& level = levels_.emplace_back();
    std::int64_t slowest = 0;
    for (const TlbSpec& spec : sorted) {
      if (!level.tlbs.empty() && level.tlbs.back().page_size() == spec.page_size) {
        throw std::invalid_argument("a level of a TLB hierarchy has one TLB for each page size");
      }
      level.tlbs.emplace_back(spec);
      slowest = std::max(slowest, spec.latency);
    }
    latency += slowest;
    level.latency = latency;
  }
}

template <class Action>
std::int64_t TlbHierarchy::shoot_down(Action&& action) {
  std::int64_t removed = 0;
  for (Level& level : levels_) {
    std::int64_t here = 0;
    for (Tlb& tlb : level.tlbs) here += action(tlb);
    level.statistics.shootdowns += here;
    removed += here;
  }
  return removed;
}

std::int64_t TlbHierarchy::invalidate(std::uint64_t virtual_address, std::uint32_t address_space,
                                      std::int64_t page_size) {
  const auto bytes = static_cast<std::uint64_t>(page_size);
  if (page_size < 1 || !std::has_single_bit(bytes)) {
    throw std::invalid_argument("a page size is a power of two, not " + std::to_string(page_size));
  }
  const std::uint64_t begin = virtual_address & ~(bytes - 1);
  return shoot_down([&](Tlb& tlb) { return tlb.invalidate_range(begin, bytes, address_space); });
}

std::int64_t TlbHierarchy::invalidate_address_space(std::uint32_t address_space) {
  return shoot_down([&](Tlb& tlb) { return tlb.invalidate_address_space(address_space); });
}

std::int64_t TlbHierarchy::invalidate_all() {
  return shoot_down([](Tlb& tlb) { return tlb.invalidate_all(); });
}

}  // namespace manyscale::memory

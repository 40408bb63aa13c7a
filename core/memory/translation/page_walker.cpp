// SPDX-License-Identifier: Apache-2.0
#include "memory/translation/page_walker.hpp"

#include <bit>
#include <stdexcept>
#include <string>

namespace manyscale::memory {

PageWalker::PageWalker(const PageWalkerSpec& spec, const WalkCacheSpec& cache, const PageTableSpec& shape)
    : spec_(spec), cache_spec_(cache) {
  if (spec.concurrent_walks < 1)
    throw std::invalid_argument("a page walker needs at least one walk at a time");
  if (shape.levels < 1 || shape.levels > PageTable::most_levels || shape.page_size < 1) {
    throw std::invalid_argument("a page walker needs the shape of a page table");
  }
  page_shift_ = std::countr_zero(static_cast<std::uint64_t>(shape.page_size));
  if (cache.entries > 0) {
    for (std::int64_t level = 0; level + 1 < shape.levels; ++level) {
      const auto shift = page_shift_ + shape.bits_per_level * (shape.levels - 1 - level);
      caches_.emplace_back(
          TlbSpec{cache.entries, cache.ways, static_cast<std::int64_t>(std::uint64_t{1} << shift), 0});
    }
  }
  const auto count = static_cast<std::uint32_t>(spec.concurrent_walks);
  keys_.resize(count);
  walks_.resize(count);
  free_.reserve(count);
  for (std::uint32_t walk = count; walk-- > 0;) free_.push_back(walk);
}

PageWalker::Ticket PageWalker::begin(const PageTable& table, std::uint64_t virtual_address,
                                     std::uint32_t address_space) {
  const std::uint64_t page = virtual_address >> page_shift_;
  if (free_.size() != walks_.size()) {
    for (std::uint32_t walk = 0; walk < keys_.size(); ++walk) {
      const Key& key = keys_[walk];
      if (!key.active || key.page != page || key.address_space != address_space) continue;
      ++statistics_.merged;
      ++walks_[walk].merged;
      return {Outcome::merged, walk};
    }
  }
  if (free_.empty()) {
    ++statistics_.refused;
    return {Outcome::full, 0};
  }
  const std::uint32_t number = free_.back();
  free_.pop_back();
  keys_[number] = {page, address_space, true};
  Walk& walk = walks_[number];
  walk.table = &table;
  walk.virtual_address = virtual_address;
  walk.merged = 0;

  int level = 0;
  std::uint32_t start = 0;
  for (auto cache = static_cast<int>(caches_.size()) - 1; cache >= 0; --cache) {
    const std::uint64_t* next = caches_[static_cast<std::size_t>(cache)].find(virtual_address, address_space);
    if (next == nullptr) continue;
    level = cache + 1;
    start = static_cast<std::uint32_t>(*next);
    break;
  }
  walk.path = table.walk(virtual_address, level, start);
  ++statistics_.walks;
  statistics_.reads += walk.path.count;
  statistics_.reads_per_walk.record(walk.path.count);
  statistics_.start_level.record(level);
  return {Outcome::started, number};
}

PageWalker::Result PageWalker::finish(std::uint32_t number) {
  if (number >= walks_.size() || !keys_[number].active) {
    throw std::invalid_argument("there is no outstanding walk " + std::to_string(number));
  }
  Walk& walk = walks_[number];
  const std::uint32_t address_space = keys_[number].address_space;
  const PageTable::Path& path = walk.path;
  if (!caches_.empty()) {
    for (int step = 1; step < path.count; ++step) {
      caches_[static_cast<std::size_t>(path.start_level + step - 1)].fill(
          walk.virtual_address, address_space, path.table[static_cast<std::size_t>(step)]);
    }
  }
  keys_[number].active = false;
  free_.push_back(number);
  // What was mapped during the walk counts only where the walk could have seen it.
  const Result result{path.mapped ? walk.table->find(walk.virtual_address) : std::nullopt, walk.merged};
  if (!result.translation) ++statistics_.faults;
  return result;
}

std::int64_t PageWalker::invalidate(std::uint64_t virtual_address, std::uint32_t address_space) {
  std::int64_t removed = 0;
  for (Tlb& cache : caches_) removed += cache.invalidate(virtual_address, address_space);
  return removed;
}

std::int64_t PageWalker::invalidate_all() {
  std::int64_t removed = 0;
  for (Tlb& cache : caches_) removed += cache.invalidate_all();
  return removed;
}

}  // namespace manyscale::memory

// SPDX-License-Identifier: Apache-2.0
#include "cpu/core/translation_unit.hpp"

#include <bit>

namespace manyscale::cpu {

namespace {

memory::Tlb tlb_of(const TlbSizeSpec& spec, std::int64_t page_size) {
  return memory::Tlb({spec.entries, spec.ways, page_size, spec.latency});
}

}  // namespace

TranslationUnit::TranslationUnit(const TranslationUnitSpec& spec)
    : spec_(spec),
      page_shift_(std::countr_zero(static_cast<std::uint64_t>(spec.page_size))),
      levels_(static_cast<int>(spec.levels)),
      first_latency_{spec.instruction.latency, spec.data.latency},
      first_{tlb_of(spec.instruction, spec.page_size), tlb_of(spec.data, spec.page_size)} {
  if (spec.second.entries > 0) second_.emplace(tlb_of(spec.second, spec.page_size));
  if (spec.walk_cache.entries > 0) {
    for (int level = 0; level + 1 < levels_; ++level)
      walk_caches_.push_back(tlb_of(spec.walk_cache, std::int64_t{1} << shift_of(level)));
  }
  walks_.resize(static_cast<std::size_t>(spec.walkers));
  for (auto walk = static_cast<std::uint32_t>(spec.walkers); walk-- > 0;) free_.push_back(walk);
}

TranslationUnit::Lookup TranslationUnit::look_up_page(std::uint64_t address, Side side) {
  using Outcome = Lookup::Outcome;
  const auto which = static_cast<std::size_t>(side);
  const bool is_instruction = side == Side::instruction;
  std::int64_t cycles = first_latency_[which];
  if (first_[which].find(address, 0) != nullptr) {
    ++(is_instruction ? statistics_.instruction_hits : statistics_.data_hits);
    last_page_[which] = address >> page_shift_;
    return {Outcome::known, cycles, 0};
  }
  // A look-up that found no walker comes again and is counted then.
  const auto count_misses = [&] {
    ++(is_instruction ? statistics_.instruction_misses : statistics_.data_misses);
    if (second_) ++statistics_.second_misses;
  };
  if (second_) {
    cycles += spec_.second.latency;
    if (second_->find(address, 0) != nullptr) {
      ++(is_instruction ? statistics_.instruction_misses : statistics_.data_misses);
      ++statistics_.second_hits;
      first_[which].fill(address, 0, address >> page_shift_);
      last_page_[which] = address >> page_shift_;
      return {Outcome::known, cycles, 0};
    }
  }
  if (spec_.walk_penalty > 0) {
    count_misses();
    ++statistics_.walks;
    fill(address, side);
    return {Outcome::known, cycles + spec_.walk_penalty, 0};
  }
  for (std::uint32_t number = 0; number < walks_.size(); ++number) {
    Walk& walk = walks_[number];
    if (!walk.active || (walk.address ^ address) >> page_shift_ != 0) continue;
    count_misses();
    ++statistics_.joined;
    walk.for_side[which] = true;
    return {Outcome::joined, cycles, number};
  }
  if (free_.empty()) {
    ++statistics_.refused;
    return {Outcome::full, cycles, 0};
  }
  count_misses();
  ++statistics_.walks;
  const std::uint32_t number = free_.back();
  free_.pop_back();
  Walk& walk = walks_[number];
  walk = {address, {false, false}, 0, true};
  walk.for_side[which] = true;
  for (auto level = static_cast<int>(walk_caches_.size()); level-- > 0;) {
    if (walk_caches_[static_cast<std::size_t>(level)].find(address, 0) == nullptr) continue;
    walk.level = level + 1;
    break;
  }
  if (!walk_caches_.empty()) cycles += spec_.walk_cache.latency;
  return {Outcome::walk, cycles, number};
}

TranslationUnit::Progress TranslationUnit::proceed(std::uint32_t number, memory::PrivateCaches& caches,
                                                   Time when, std::uint32_t token) {
  using memory::AccessResult;
  Walk& walk = walks_.at(number);
  while (walk.level < levels_) {
    memory::Access read;
    read.address = entry_address(walk.address, walk.level);
    read.token = token;
    const AccessResult result = caches.access(read, when);
    if (result.status == AccessResult::Status::blocked) return {Progress::Status::blocked, 0};
    ++statistics_.walk_reads;
    ++walk.level;
    if (result.status == AccessResult::Status::waiting) return {Progress::Status::waiting, 0};
    when = result.ready;
  }
  finish(number);
  return {Progress::Status::done, when};
}

void TranslationUnit::finish(std::uint32_t number) {
  Walk& walk = walks_.at(number);
  walk.active = false;
  free_.push_back(number);
  for (memory::Tlb& cache : walk_caches_) cache.fill(walk.address, 0, 0);
  for (const Side side : {Side::instruction, Side::data}) {
    if (walk.for_side[static_cast<std::size_t>(side)]) fill(walk.address, side);
  }
}

void TranslationUnit::fill(std::uint64_t address, Side side) {
  const std::uint64_t page = address >> page_shift_;
  const auto which = static_cast<std::size_t>(side);
  if (second_) second_->fill(address, 0, page);
  first_[which].fill(address, 0, page);
  // It may have pushed out the page that was used last.
  last_page_[which] = no_page;
}

// Beyond all addresses of records, which have 56 bits.
std::uint64_t TranslationUnit::entry_address(std::uint64_t address, int level) const {
  return (std::uint64_t{0x100} + static_cast<std::uint64_t>(level)) << 48 | (address >> shift_of(level)) * 8;
}

}  // namespace manyscale::cpu

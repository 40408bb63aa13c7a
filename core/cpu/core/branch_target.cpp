// SPDX-License-Identifier: Apache-2.0
#include "cpu/core/branch_target.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>

namespace manyscale::cpu {

BranchTargetBuffer::BranchTargetBuffer(std::int64_t entries, std::int64_t ways)
    : ways_(static_cast<std::uint64_t>(ways == 0 ? entries : ways)),
      sets_(static_cast<std::uint64_t>(entries) / ways_),
      mask_(std::has_single_bit(sets_) ? sets_ - 1 : 0),
      entries_(static_cast<std::size_t>(entries)) {
  if (static_cast<std::uint64_t>(entries) % ways_ != 0) {
    throw std::invalid_argument("btb_ways: " + std::to_string(entries) + " entries are no sets of " +
                                std::to_string(ways_));
  }
}

BranchTargetBuffer::Entry* BranchTargetBuffer::look_up(std::uint64_t pc) {
  Entry* const first = set_of(pc);
  for (Entry* entry = first; entry != first + ways_; ++entry) {
    if (entry->pc == pc) return entry;
  }
  return nullptr;
}

std::optional<std::uint64_t> BranchTargetBuffer::find(std::uint64_t pc) {
  Entry* const entry = look_up(pc);
  if (entry == nullptr) return std::nullopt;
  entry->used = ++clock_;
  return entry->target;
}

void BranchTargetBuffer::learn(std::uint64_t pc, std::uint64_t target) {
  Entry* entry = look_up(pc);
  if (entry == nullptr) {
    Entry* const first = set_of(pc);
    entry = std::min_element(first, first + ways_,
                             [](const Entry& a, const Entry& b) { return a.used < b.used; });
  }
  *entry = {pc, target, ++clock_};
}

namespace {

std::vector<std::uint32_t> checked_lengths(const BranchSpec& spec) {
  const std::int64_t shortest = std::min<std::int64_t>(4, spec.indirect_history);
  if (spec.indirect_history < shortest + spec.indirect_tables - 1) {
    throw std::invalid_argument("indirect_history: " + std::to_string(spec.indirect_history) +
                                " leaves no different length for each of " +
                                std::to_string(spec.indirect_tables) + " tables");
  }
  return geometric_lengths(shortest, spec.indirect_history, spec.indirect_tables);
}

}  // namespace

IndirectPredictor::IndirectPredictor(const BranchSpec& spec)
    : tables_(checked_lengths(spec), spec.indirect_entries, tag_bits) {}

std::optional<std::uint64_t> IndirectPredictor::predict_and_train(std::uint64_t pc,
                                                                  std::optional<std::uint64_t> fallback,
                                                                  std::uint64_t target,
                                                                  const BranchHistory& history) {
  const std::uint32_t matches = tables_.look_up(pc, history);
  Entry* provider = nullptr;
  Entry* alternate = nullptr;
  std::size_t longer = 0;  // the first table beyond the provider's
  const std::size_t count = tables_.count();
  for (std::size_t i = 0; i < count; ++i) {
    if ((matches >> i & 1) == 0 || tables_.entry(i).target == 0) continue;
    alternate = provider;
    provider = &tables_.entry(i);
    longer = i + 1;
  }
  const std::optional<std::uint64_t> other = alternate != nullptr ? alternate->target : fallback;
  const std::optional<std::uint64_t> predicted = provider != nullptr ? provider->target : fallback;
  if (provider != nullptr) {
    if (provider->target == target) {
      if (provider->confidence < 3) ++provider->confidence;
      if (other != target) provider->useful = true;
    } else if (provider->confidence > 0) {
      --provider->confidence;
    } else {
      provider->target = target;
      provider->useful = false;
    }
  }
  if (predicted == target) return predicted;
  for (std::size_t i = longer; i < count; ++i) {
    Entry& entry = tables_.entry(i);
    if (entry.useful) continue;
    entry = {target, tables_.tag(i), 0, false};
    return predicted;
  }
  for (std::size_t i = longer; i < count; ++i) tables_.entry(i).useful = false;
  return predicted;
}

}  // namespace manyscale::cpu

// SPDX-License-Identifier: Apache-2.0
// Lines that nobody asked for yet: what the prefetchers propose, and the instructions that follow.
#include "memory/cache/private_caches.hpp"

namespace manyscale::memory {

// Shows an access that left the L1 to the prefetcher, and fetches what it proposes.
void PrivateCaches::train(const Access& access, bool hit, Time when) {
  if (!prefetcher_.enabled() || access.kind == AccessKind::fetch) return;
  PrefetchCandidates candidates;
  prefetcher_.observe(access.address, access.id, hit, candidates);
  for (const std::uint64_t candidate : candidates) prefetch(outermost().array.line_address(candidate), when);
}

// Fetches a line into the outermost level if there is room for it without holding anybody up.
void PrivateCaches::prefetch(std::uint64_t line, Time when) {
  const bool held = outermost().array.find_present(line) != CacheArray::none;
  if (held || misses_.find(line) != nullptr) {
    prefetcher_.on_redundant();
    return;
  }
  if (auto* entry = open_prefetch(line, when)) entry->prefetch = true;
}

// Asks for a line that nobody waits for; nothing if there is no room for it now.
PrivateCaches::Table::Entry* PrivateCaches::open_prefetch(std::uint64_t line, Time when, AccessKind kind) {
  Level& level = outermost();
  std::uint32_t at = level.array.find(line);
  // The last free MSHR is for demand misses; and writing an owned line back may need one of its own.
  if (misses_.size() + 2 > misses_.capacity()) return nullptr;
  if (spec_.coherent &&
      (writing_back(line) || writebacks_.size() >= static_cast<std::size_t>(spec_.writeback_buffer)))
    return nullptr;
  if (at == CacheArray::none) at = level.array.victim(line);
  if (at == CacheArray::none) return nullptr;
  if (is_present(level.array.line(at).state)) evict(at, when + level.period());
  level.array.fill(at, line, LineState::pending, 0);
  level.array.line(at).pinned = true;
  auto& entry = misses_.open(line, when);
  entry.asked = level.spec.all_sectors();
  show_outstanding();
  ask(line, entry.asked, kind, false, when);
  return &entry;
}

// Shows an access to the prefetcher of the L1, and brings in what it proposes.
void PrivateCaches::train_first(const Access& access, bool hit, Time when) {
  PrefetchCandidates candidates;
  first_prefetcher_.observe(access.address, access.id, hit, candidates);
  for (const std::uint64_t candidate : candidates) {
    Access proposed = access;
    proposed.address = outermost().array.line_address(candidate);
    prefetch_first(proposed, when);
  }
}

// Brings a line into the L1, from the next or from outside, if there is room for it without holding
// anybody up. The prefetcher of the last level sees it like an access.
void PrivateCaches::prefetch_first(const Access& access, Time when) {
  const std::uint64_t line = access.address;
  Level& first = *levels_.front();
  auto* outstanding = misses_.find(line);
  if (outstanding != nullptr && outstanding->prefetch && !outstanding->to_first &&
      has_mshr(AccessKind::load)) {
    outstanding->to_first = true;  // it goes on to the L1
    ++demands_;
    return;
  }
  if (first.array.find_present(line) != CacheArray::none || outstanding != nullptr) {
    first_prefetcher_.on_redundant();
    return;
  }
  MshrPool& mshrs = mshrs_of(AccessKind::load);
  for (std::size_t i = 1; i < levels_.size(); ++i) {
    Level& level = *levels_[i];
    const std::uint32_t at = level.array.find_present(line);
    if (at == CacheArray::none) {
      when += level.tag_time;
      continue;
    }
    if (mshrs.next_free() > when) return;
    const Time begin = level.begin(line, when);
    const Time ready = begin + level.tag_time + level.data_time;
    mshrs.take(ready);
    level.array.touch(at);
    use_prefetched(level.array.line(at));
    first.statistics.bytes_in += level.spec.line;
    copy_inwards(AccessKind::load, line, i, level.array.line(at).valid, level.array.line(at).state, ready);
    first.array.line(first.array.find(line)).prefetched = true;
    train(access, true, begin + level.tag_time);
    return;
  }
  if (!has_mshr(AccessKind::load)) return;
  auto* entry = open_prefetch(line, when);
  if (entry == nullptr) return;
  entry->prefetch = entry->to_first = true;
  ++demands_;
  train(access, false, when);
}

// A line that the last level's prefetcher brought in is asked for.
void PrivateCaches::use_prefetched(CacheArray::Line& line) {
  if (!line.prefetched) return;
  line.prefetched = false;
  prefetcher_.on_use();
}

// Brings the lines that follow a fetched one, within its page, into the level of instructions.
void PrivateCaches::fetch_ahead(std::uint64_t line, Time when) {
  const auto size = static_cast<std::uint64_t>(instruction_->spec.line);
  for (std::int64_t count = 0; count < spec_.fetch_ahead; ++count) {
    line += size;
    if (line % page_size == 0) return;
    if (instruction_->array.find_present(line) != CacheArray::none || misses_.find(line) != nullptr) continue;
    Level& second = *levels_[1];
    const std::uint32_t at = second.array.find_present(line);
    if (at != CacheArray::none) {
      const Time ready = second.begin(line, when) + second.tag_time + second.data_time;
      take_fetched(line, ready);
      instruction_->statistics.bytes_in += second.spec.line;
      instruction_->array.line(instruction_->array.find(line)).prefetched = true;
    } else if (can_fetch()) {
      auto* entry = open_prefetch(line, when, AccessKind::fetch);
      if (entry == nullptr) return;
      entry->fetch = entry->prefetch = entry->to_first = true;
      ++fetches_;
    }
  }
}

}  // namespace manyscale::memory

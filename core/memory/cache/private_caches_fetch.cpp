// SPDX-License-Identifier: Apache-2.0
// The side of instructions: an L1 beside that of data, which only reads.
#include "memory/cache/private_caches.hpp"

namespace manyscale::memory {

AccessResult PrivateCaches::fetch(const Access& access, Time now) {
  if (!instruction_) throw SimulationError("a fetch of instructions came to caches without a level for them");
  Level& first = *instruction_;
  const std::uint64_t line = first.array.line_address(access.address);
  const Time begin = first.begin(line, now);
  const std::uint32_t at = first.array.find_present(line);
  if (at == CacheArray::none) {
    return levels_.size() > 1 ? access_beyond_first(access, line, first.spec.all_sectors(), begin)
                              : fetch_alone(access, line, begin);
  }
  ++first.statistics.reads;
  ++first.statistics.hits;
  first.classifier.access(line);
  first.array.touch(at);
  if (first.array.line(at).prefetched) {
    first.array.line(at).prefetched = false;
    fetch_ahead(line, begin + first.tag_time);
  }
  const Time ready = begin + first.tag_time + first.data_time;
  const bool arrives_later = first.available[at] > ready;
  return {AccessResult::Status::done, arrives_later ? first.available[at] : ready, 0,
          arrives_later ? Served::l2 : Served::l1};
}

// Where there is no L2, a fetch looks whether the data's cache beside it has the line, and else
// asks for itself.
AccessResult PrivateCaches::fetch_alone(const Access& access, std::uint64_t line, Time begin) {
  Level& first = *instruction_;
  Level& beside = outermost();
  const Time known = begin + first.tag_time;
  const std::uint32_t at = beside.array.find_present(line);
  if (at != CacheArray::none && beside.array.line(at).valid == beside.spec.all_sectors()) {
    const Time ready = beside.begin(line, known) + beside.tag_time + beside.data_time;
    ++first.statistics.reads;
    first.statistics.count_miss(first.classifier.access(line));
    first.statistics.miss_latency.record(ready - known);
    take_fetched(line, ready);
    return {AccessResult::Status::done, ready, 0, Served::l1};
  }
  if (misses_.find(line) != nullptr) {
    if (!merge(access, line, first.spec.all_sectors(), begin)) return blocked(access.kind);
    return {AccessResult::Status::waiting, 0, 0};
  }
  if (misses_.full() || !can_fetch() || (spec_.coherent && writing_back(line))) return blocked(access.kind);
  ++first.statistics.reads;
  const MissCause cause = first.classifier.access(line);
  const std::uint32_t index = first.array.find(line);
  const bool lost = index != CacheArray::none && first.array.line(index).state == LineState::lost;
  first.statistics.count_miss(lost ? MissCause::coherence : cause);
  auto& entry = misses_.open(line, known);
  entry.since_first = known;
  entry.asked = first.spec.all_sectors();
  entry.fetch = entry.alone = true;
  ++fetches_;
  misses_.wait(entry, access);
  show_outstanding();
  ask(line, entry.asked, access.kind, false, known);
  return {AccessResult::Status::waiting, 0, 0};
}

// The answer to a fetch for which no level of data waits.
void PrivateCaches::fetched_alone(const Message& message, Time now) {
  const std::uint64_t line = message.address;
  auto* entry = misses_.find(line);
  CacheStatistics& statistics = instruction_->statistics;
  statistics.bytes_in += sector_bytes * std::popcount(message.sectors);
  statistics.line_time += now - entry->since;
  if (!entry->outdated) take_fetched(line, now);
  if (spec_.coherent) send({line, 0, Op::done, 0, 0}, now);
  while (entry->waiters > 0) {
    const Access access = misses_.pop(*entry);
    statistics.miss_latency.record(now - entry->since_first);
    owner_.access_done(access.token, now, 0, message.served());
    entry = misses_.find(line);  // the owner may have begun other misses
  }
  --fetches_;
  misses_.close(line);
  show_outstanding();
  unblock();
}

// Copies a line into the level of instructions, where it is there at `when`.
void PrivateCaches::take_fetched(std::uint64_t line, Time when) {
  CacheArray& array = instruction_->array;
  std::uint32_t at = array.find(line);
  if (at == CacheArray::none) at = array.victim(line);
  if (is_present(array.line(at).state)) {
    if (array.tag(at) == line) return;
    ++instruction_->statistics.evictions;
  }
  array.fill(at, line, LineState::shared, instruction_->spec.all_sectors());
  instruction_->available[at] = when;
}

void PrivateCaches::drop_fetched(std::uint64_t line, LineState state) {
  if (!instruction_) return;
  const std::uint32_t at = instruction_->array.find_present(line);
  if (at != CacheArray::none) instruction_->array.remove(at, state);
}

}  // namespace manyscale::memory

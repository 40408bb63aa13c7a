// SPDX-License-Identifier: Apache-2.0
// What a home or memory sends to private caches: data, confirmations, and demands to give lines up.
#include "memory/cache/private_caches.hpp"

namespace manyscale::memory {

void PrivateCaches::receive(const Message& message, Time now) {
  switch (message.op) {
    case Op::data:
    case Op::upgrade_ack:
      data_arrived(message, now);
      return;
    case Op::invalidate:
    case Op::downgrade:
      give_up(message, now);
      return;
    case Op::write_ack:
      --pending_writes_;
      unblock();
      return;
    case Op::atomic_result: {
      --pending_writes_;
      const std::uint32_t token = atomics_[message.tag];
      free_tags_.push_back(message.tag);
      owner_.access_done(token, now, message.value, Served::shared);
      unblock();
      return;
    }
    case Op::put_ack:
      std::erase_if(writebacks_, [&](const Writeback& entry) { return entry.line == message.address; });
      unblock();
      return;
    default:
      throw SimulationError("a private cache got a message that is none for a requester");
  }
}

void PrivateCaches::data_arrived(const Message& message, Time now) {
  Level& level = outermost();
  const std::uint64_t line = message.address;
  auto* entry = misses_.find(line);
  if (entry != nullptr) entry->served = message.served();
  if (entry != nullptr && entry->alone) return fetched_alone(message, now);
  const std::uint32_t at = level.array.find(line);
  if (entry == nullptr || at == CacheArray::none)
    throw SimulationError("a private cache got data it did not ask for");
  CacheArray::Line& held = level.array.line(at);
  if (message.op == Op::data) {
    if (spec_.keep_values && !is_present(held.state)) values_[at] = message.value;
    const AccessKind asked_by = entry->fetch ? AccessKind::fetch : AccessKind::load;
    for (std::size_t i = 0; i < levels_.size(); ++i) {
      // What nobody asked for goes to the last level only.
      if (entry->prefetch && !entry->to_first && i + 1 < levels_.size()) continue;
      level_of(asked_by, i).statistics.bytes_in += sector_bytes * std::popcount(message.sectors);
    }
    held.valid |= message.sectors;
    entry->arrived |= message.sectors;
  } else {
    entry->arrived = entry->asked;
  }
  const bool writable = message.op == Op::upgrade_ack || message.has(Flag::modified);
  if (writable) {
    held.state = LineState::modified;
  } else if (!is_present(held.state)) {
    held.state = spec_.coherent && !message.has(Flag::exclusive) ? LineState::shared : LineState::exclusive;
  }
  for (std::size_t i = 1; i < levels_.size(); ++i)
    levels_[i]->statistics.miss_latency.record(now - entry->since);
  if (entry->prefetch && entry->to_first) {
    const AccessKind kind = entry->fetch ? AccessKind::fetch : AccessKind::load;
    copy_inwards(kind, line, levels_.size() - 1, held.valid, held.state, now);
    CacheArray& first = level_of(kind, 0).array;
    first.line(first.find(line)).prefetched = true;
  } else if (entry->prefetch) {
    held.prefetched = true;
  }
  if (spec_.coherent) send({line, 0, Op::done, 0, 0}, now);
  serve_waiters(line, at, now);
}

void PrivateCaches::serve_waiters(std::uint64_t line, std::uint32_t at, Time now) {
  Level& level = outermost();
  auto* entry = misses_.find(line);
  while (entry->waiters > 0) {
    const Access& next = misses_.front(*entry);
    const std::uint8_t sectors = wanted_sectors(next);
    if ((level.array.line(at).valid & sectors) != sectors) break;  // still outstanding
    if (!only_reads(next.kind) && level.array.line(at).state == LineState::shared) {
      // A write joined a read, and the answer came without permission to write.
      entry->for_write = true;
      ask(line, level.spec.all_sectors(), AccessKind::store, true, now);
      return;
    }
    const Access access = misses_.pop(*entry);
    if (!only_reads(access.kind)) make_modified(line, sectors);
    level_of(access.kind, 0).statistics.miss_latency.record(now - entry->since_first);
    const Value value = spec_.keep_values ? perform(access, at) : 0;
    copy_inwards(access.kind, line, levels_.size() - 1, level.array.line(at).valid,
                 level.array.line(at).state, now);
    owner_.access_done(access.token, now, value, entry->served);
    entry = misses_.find(line);  // the owner may have begun other misses
  }
  if (entry->waiters == 0 && (entry->arrived & entry->asked) == entry->asked) {
    for (auto& each : levels_) each->statistics.line_time += now - entry->since;
    const bool outdated = entry->outdated;
    if (entry->fetch) {
      --fetches_;
    } else if (!entry->prefetch || entry->to_first) {
      --demands_;
    }
    misses_.close(line);
    level.array.line(at).pinned = false;
    if (outdated) level.array.remove(at, LineState::invalid);
    show_outstanding();
    unblock();
  }
}

// Another cache wants the line: this one gives it up, or keeps it to read only.
void PrivateCaches::give_up(const Message& message, Time now) {
  Level& level = outermost();
  const std::uint64_t line = message.address;
  const bool keep_shared = message.op == Op::downgrade;
  Message answer{line, 0, Op::invalidate_ack, 0, level.spec.all_sectors()};
  if (!keep_shared) drop_fetched(line, LineState::lost);
  const std::uint32_t at = level.array.find_present(line);
  if (at != CacheArray::none) {
    CacheArray::Line& held = level.array.line(at);
    if (held.state == LineState::modified) {
      answer.flags = Flag::dirty;
      answer.value = spec_.keep_values ? values_[at] : 0;
      level.statistics.bytes_out += level.spec.line;
    }
    if (keep_shared) {
      held.state = LineState::shared;
      held.dirty = 0;
      set_inwards(line, LineState::shared);
    } else {
      ++level.statistics.invalidations;
      // While it asks to write the line, its entry stays reserved for the answer.
      if (misses_.find(line) != nullptr) {
        held.state = LineState::pending;
      } else {
        level.array.remove(at, LineState::lost);
      }
      held.valid = 0;
      set_inwards(line, LineState::lost);
    }
  } else {
    for (Writeback& entry : writebacks_) {
      if (entry.line != line || !entry.dirty) continue;
      // On its way back already; that message will come too late and say nothing new.
      answer.flags = Flag::dirty;
      answer.value = entry.value;
    }
  }
  send(answer, now + level.tag_time);
}

}  // namespace manyscale::memory

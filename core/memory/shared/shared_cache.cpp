// SPDX-License-Identifier: Apache-2.0
#include "memory/shared/shared_cache.hpp"

#include <algorithm>
#include <stdexcept>

#include "engine/registry.hpp"

namespace manyscale::memory {

namespace {
const Registered<SharedCache> registered{
    "memory.cache", "A slice of a shared cache without coherence, with atomic operations."};

// How often an atomic operation changes its busiest word.
std::int64_t rounds(const Message& message) {
  return message.has(Flag::rounds) ? message.tag : 1;
}

}  // namespace

SharedCache::SharedCache(const Spec& spec)
    : spec_(spec),
      period_(period_of(spec.clock)),
      write_back_(spec.cache.write == "back"),
      level_(spec.cache, period_, 0, spec.slices),
      misses_(spec.cache.outstanding_misses, spec.cache.merged_misses),
      memory_(*this, spec.memory_interleave) {
  if (!std::has_single_bit(static_cast<std::uint64_t>(spec.fetch_granularity)) ||
      spec.fetch_granularity > spec.cache.line)
    throw SimulationError("fetch_granularity: " + std::to_string(spec.fetch_granularity) +
                          "B is no power of two up to the line");
  declare(level_.statistics);
  if (spec.keep_values) values_.resize(level_.array.lines());
  requesters_.on_receive<&SharedCache::receive>();
  memory_.on_receive<&SharedCache::from_memory>();
}

void SharedCache::start() {
  level_.array.reseed(random().next());
}

void SharedCache::settle() {
  static_cast<CacheCounts&>(level_.statistics) = traffic_.total();
}

void SharedCache::empty() {
  if (spec_.keep_values) throw std::logic_error(name() + " keeps values and cannot be emptied");
  for (std::uint32_t at = 0; at < level_.array.lines(); ++at) {
    const CacheArray::Line& held = level_.array.line(at);
    if (is_present(held.state) && !held.pinned) level_.array.forget(at);
  }
}

void SharedCache::receive(const Message& message, std::uint32_t lane) {
  const Request request{message, lane};
  // Behind one that waits, all wait: requests are served in the order they came.
  if (!stalled_.empty() || !serve(request)) stalled_.push_back(request);
}

// Serves a request as far as it can be now; false when it must be tried again.
bool SharedCache::serve(const Request& request) {
  const Message& message = request.message;
  const bool is_read = message.op == Op::read;
  if (!is_read && message.op != Op::write && message.op != Op::atomic) {
    throw SimulationError(name() + " has no coherence: it takes read, write and atomic, not operation " +
                          std::to_string(static_cast<int>(message.op)));
  }
  const std::uint64_t line = level_.array.line_address(message.address);
  if (line != message.address) {
    throw SimulationError(
        name() + " has lines of " + std::to_string(spec_.cache.line) +
        " B and is asked for a shorter one: caches above and below need the same line size");
  }
  const std::uint8_t sectors =
      message.op == Op::write || spec_.cache.sectored ? message.sectors : spec_.cache.all_sectors();
  std::uint32_t at = level_.array.find_present(line);
  const bool has_all = at != CacheArray::none && (level_.array.line(at).valid & sectors) == sectors;
  const bool can_proceed =
      has_all || message.op == Op::write || misses_.find(line) != nullptr || !misses_.full();
  if (!can_proceed) {
    ++traffic_[message.origin].blocked;
    return false;
  }
  if (message.op == Op::write) return serve_write(request, at, level_.begin(line, now(), bank_time(message)));
  if (!has_all) return miss(request, sectors, now());
  CacheCounts& counts = traffic_[message.origin];
  ++(is_read ? counts.reads : counts.writes);
  ++counts.hits;
  level_.classifier.access(line);
  level_.array.touch(at);
  hit(request, at, level_.begin(line, now(), bank_time(message)) + level_.tag_time + level_.data_time,
      Served::shared);
  return true;
}

// For how long a request keeps its bank busy. A sector that is written in part is read first. The first
// words of an atomic operation are read while those of the request before are changed.
Time SharedCache::bank_time(const Message& message) const {
  const bool writes = message.op == Op::write;
  const auto sectors = static_cast<std::int64_t>(std::popcount(message.sectors));
  std::int64_t read = sectors;
  if (writes) read = message.has(Flag::partial) ? std::popcount(message.tag) : 0;
  std::int64_t cycles = (read * sector_bytes + spec_.width - 1) / spec_.width;
  if (writes) cycles += sectors * spec_.write_interval;
  if (message.op == Op::atomic)
    cycles = std::max(cycles, cycles - 1 + rounds(message) * spec_.atomic_interval);
  return cycles * period_;
}

bool SharedCache::serve_write(const Request& request, std::uint32_t at, Time begin) {
  const Message& message = request.message;
  const std::uint64_t line = level_.array.line_address(message.address);
  const bool present = at != CacheArray::none;
  const bool keeps = write_back_ && (present || spec_.cache.allocate_on_write);
  if (!can_write_down() &&
      (!keeps || level_.array.dirty_in(level_.array.set_of(line)).count >= spec_.dirty_ways)) {
    ++traffic_[message.origin].blocked;
    return false;
  }
  if (keeps && !present && misses_.find(line) == nullptr) {
    at = make_room(line, message.origin);
    if (at == CacheArray::none) {
      ++traffic_[message.origin].blocked;
      return false;
    }
    level_.array.fill(at, line, LineState::exclusive, 0);
  } else if (!present) {
    at = level_.array.find(line);  // the entry of an outstanding line
  }
  CacheCounts& counts = traffic_[message.origin];
  ++counts.writes;
  const MissCause cause = level_.classifier.access(line);
  if (present) {
    ++counts.hits;
  } else {
    counts.count_miss(cause);
  }
  if (at != CacheArray::none && (keeps || present)) {
    CacheArray::Line& held = level_.array.line(at);
    held.valid |= message.sectors;
    if (spec_.keep_values) values_[at] = message.value;
    if (present) level_.array.touch(at);
    if (keeps) {
      held.dirty |= message.sectors;
      if (held.state != LineState::pending) held.state = LineState::modified;
      clean_oldest(line, message.origin);
    }
  }
  if (!keeps) {
    write_down(line, message.sectors, message.value, begin - now() + level_.tag_time, message.origin);
  }
  if (message.has(Flag::wants_ack)) {
    answer(request, Op::write_ack, spec_.keep_values ? 0 : message.value, begin + level_.tag_time,
           message.tag);
  }
  return true;
}

bool SharedCache::miss(const Request& request, std::uint8_t sectors, Time begin) {
  const std::uint64_t line = level_.array.line_address(request.message.address);
  const Origin origin = request.message.origin;
  auto* entry = misses_.find(line);
  std::uint32_t at = level_.array.find(line);
  if (entry == nullptr) {
    if (at == CacheArray::none || !is_present(level_.array.line(at).state)) {
      at = make_room(line, origin);
      if (at == CacheArray::none) {
        ++traffic_[origin].blocked;
        return false;
      }
      level_.array.fill(at, line, LineState::pending, 0);
    }
    level_.array.line(at).pinned = true;
    entry = &misses_.open(line, begin);
    entry->origin = origin;
    traffic_.begin(origin);
  } else if (!misses_.can_wait(*entry)) {
    ++traffic_[origin].blocked;
    return false;
  }
  CacheCounts& counts = traffic_[origin];
  ++(request.message.op == Op::read ? counts.reads : counts.writes);
  const MissCause cause = level_.classifier.access(line);
  if (entry->waiters > 0) {
    ++counts.merged;
  } else {
    counts.count_miss(cause);
  }
  misses_.wait(*entry, request);
  show_outstanding();
  const auto held = static_cast<std::uint8_t>(entry->asked | level_.array.line(at).valid);
  if ((sectors & ~held) != 0) {
    const auto missing =
        static_cast<std::uint8_t>(fetched_with(static_cast<std::uint8_t>(sectors & ~held)) & ~held);
    entry->asked |= missing;
    memory_.read(line, missing, level_.begin(line, begin) - now() + level_.tag_time, origin);
  }
  return true;
}

// The sectors that a fetch of some brings: all of the aligned groups that these are in.
std::uint8_t SharedCache::fetched_with(std::uint8_t sectors) const {
  const auto together = static_cast<unsigned>(spec_.fetch_granularity / sector_bytes);
  const unsigned group = (1u << together) - 1;
  unsigned fetched = 0;
  for (unsigned first = 0; first < 8; first += together) {
    if ((sectors >> first & group) != 0) fetched |= group << first;
  }
  return static_cast<std::uint8_t>(fetched & spec_.cache.all_sectors());
}

void SharedCache::hit(const Request& request, std::uint32_t at, Time ready, Served served) {
  // Without values the answer gives back what the requester sent, so that it knows its own.
  Value value = request.message.value;
  if (spec_.keep_values) value = values_[at];
  if (request.message.op == Op::read) {
    answer(request, Op::data, value, ready, static_cast<std::uint8_t>(served));
    return;
  }
  CacheArray::Line& held = level_.array.line(at);
  held.state = LineState::modified;
  held.dirty |= request.message.sectors;
  if (spec_.keep_values) values_[at] += request.message.value;
  clean_oldest(request.message.address, request.message.origin);
  answer(request, Op::atomic_result, value,
         ready + (spec_.atomic_latency + (rounds(request.message) - 1) * spec_.atomic_interval) * period_,
         request.message.tag);
}

// An entry for the line, after writing back what was there; `none` when all are reserved for outstanding
// lines, or when no more can be sent down now.
std::uint32_t SharedCache::make_room(std::uint64_t line, Origin origin) {
  const std::uint32_t at = level_.array.victim(line);
  if (at == CacheArray::none) return at;
  CacheArray::Line& victim = level_.array.line(at);
  if (is_present(victim.state)) {
    const bool dirty = victim.state == LineState::modified;
    if (dirty && !can_write_down()) return CacheArray::none;
    ++traffic_[origin].evictions;
    if (dirty) {
      ++traffic_[origin].writebacks;
      write_down(level_.array.tag(at), victim.dirty, spec_.keep_values ? values_[at] : 0, level_.tag_time,
                 origin);
    }
    level_.array.remove(at, LineState::invalid);
  }
  return at;
}

// Writes a line back where the set of this one has more dirty lines than it may.
void SharedCache::clean_oldest(std::uint64_t line, Origin origin) {
  if (spec_.dirty_ways >= spec_.cache.ways) return;
  const CacheArray::Dirty dirty = level_.array.dirty_in(level_.array.set_of(line));
  if (dirty.count <= spec_.dirty_ways) return;
  CacheArray::Line& oldest = level_.array.line(dirty.oldest);
  ++traffic_[origin].writebacks;
  write_down(level_.array.tag(dirty.oldest), oldest.dirty, spec_.keep_values ? values_[dirty.oldest] : 0,
             level_.tag_time, origin);
  oldest.dirty = 0;
  oldest.state = LineState::exclusive;
}

void SharedCache::write_down(std::uint64_t line, std::uint8_t sectors, Value value, Time delay,
                             Origin origin) {
  traffic_[origin].bytes_out += sector_bytes * std::popcount(sectors);
  memory_.write(line, sectors, value, delay, Flag::wants_ack, origin);
  traffic_.begin(origin);
  ++writes_under_way_;
}

void SharedCache::from_memory(const Message& message, std::uint32_t) {
  if (message.op == Op::write_ack) {
    --writes_under_way_;
    traffic_.end(message.origin);
  } else {
    fill(message);
  }
  while (!stalled_.empty() && serve(stalled_.front())) stalled_.pop_front();
}

void SharedCache::fill(const Message& message) {
  const std::uint64_t line = message.address;
  const std::uint32_t at = level_.array.find(line);
  auto* entry = misses_.find(line);
  if (entry == nullptr || at == CacheArray::none)
    throw SimulationError(name() + " got data it did not ask for");
  CacheArray::Line& held = level_.array.line(at);
  traffic_[message.origin].bytes_in += sector_bytes * std::popcount(message.sectors);
  // What was written here meanwhile is newer.
  if (spec_.keep_values && held.dirty == 0) values_[at] = message.value;
  held.valid |= message.sectors;
  entry->arrived |= message.sectors;
  if (held.state == LineState::pending)
    held.state = held.dirty != 0 ? LineState::modified : LineState::exclusive;
  while (entry->waiters > 0) {
    const std::uint8_t sectors =
        spec_.cache.sectored ? misses_.front(*entry).message.sectors : spec_.cache.all_sectors();
    if ((held.valid & sectors) != sectors) break;
    level_.statistics.miss_latency.record(now() - entry->since);
    const Request request = misses_.pop(*entry);
    hit(request, at, level_.begin_fill(line, now(), bank_time(request.message)), message.served());
  }
  if (entry->waiters == 0 && (entry->arrived & entry->asked) == entry->asked) {
    traffic_[entry->origin].line_time += now() - entry->since;
    traffic_.end(entry->origin);
    misses_.close(line);
    held.pinned = false;
    show_outstanding();
  }
}

void SharedCache::show_outstanding() {
  const auto lines = static_cast<double>(misses_.size());
  level_.statistics.outstanding.set(lines);
  show_level("outstanding lines", lines);
}

void SharedCache::answer(const Request& request, Op op, Value value, Time when, std::uint8_t tag) {
  Message message = request.message;
  message.op = op;
  message.flags = 0;
  message.value = value;
  message.tag = tag;
  message.destination = request.message.source;
  requesters_.send(message, when - now(), request.lane);
}

std::vector<Wait> SharedCache::waits() const {
  if (misses_.size() == 0 && stalled_.empty()) return {};
  return {{std::to_string(misses_.size()) + " lines from memory, " + std::to_string(stalled_.size()) +
               " requests stalled",
           ""}};
}

}  // namespace manyscale::memory

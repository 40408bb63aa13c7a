// SPDX-License-Identifier: Apache-2.0
#include "memory/cache/private_caches.hpp"

namespace manyscale::memory {

namespace {

const PrivateCachesSpec& checked(const PrivateCachesSpec& spec) {
  for (const auto& level : spec.levels) level.check();
  return spec;
}

// A line under way takes a place at every level.
std::int64_t fewest_misses(const PrivateCachesSpec& spec) {
  std::int64_t fewest = spec.levels.front().outstanding_misses;
  for (const auto& level : spec.levels) fewest = std::min(fewest, level.outstanding_misses);
  return fewest;
}

}  // namespace

PrivateCaches::PrivateCaches(Owner& owner, const PrivateCachesSpec& spec, Time period, std::uint64_t seed)
    : owner_(owner),
      spec_(checked(spec)),
      write_through_(spec.levels.at(0).write == "through"),
      misses_(fewest_misses(spec), spec.levels.front().merged_misses),
      prefetcher_(spec.prefetcher),
      homes_({.slices = spec.homes, .line_size = spec.levels.front().line, .hash = spec.home_hash}) {
  for (const auto& level : spec.levels) {
    if (level.line != spec.levels.front().line)
      throw std::invalid_argument("line: all levels need the same line size");
    if ((level.write == "through") != write_through_ || (write_through_ && spec.levels.size() > 1)) {
      throw std::invalid_argument("write: a write-through cache is the only private level");
    }
    levels_.push_back(std::make_unique<Level>(level, period, seed + levels_.size()));
  }
  if (prefetcher_.kind() != Prefetcher::Kind::none && spec.prefetcher.line_size != spec.levels.front().line) {
    throw std::invalid_argument("prefetcher.line_size: must be the line size of the caches");
  }
  if (spec.coherent && !spec.levels.back().allocate_on_write) {
    throw std::invalid_argument("allocate_on_write: a coherent cache takes a line for every write");
  }
  if (write_through_ && spec.coherent) throw std::invalid_argument("write: coherent caches are write-back");
  if (spec.keep_values) values_.resize(outermost().array.lines());
  if (levels_.size() > 1) {
    places_to_miss_.assign(static_cast<std::size_t>(spec.levels.front().outstanding_misses), 0);
    for (auto& level : levels_) level->available.assign(level->array.lines(), 0);
  }
  if (write_through_) {
    atomics_.resize(256);
    for (int tag = 0; tag < 256; ++tag) free_tags_.push_back(static_cast<std::uint8_t>(tag));
  }
}

std::uint8_t PrivateCaches::wanted_sectors(const Access& access) const {
  const Level& first = *levels_.front();
  return first.spec.sectored ? first.array.sectors_of(access.address, access.size) : first.spec.all_sectors();
}

AccessResult PrivateCaches::access(const Access& access, Time now) {
  Level& first = *levels_.front();
  const std::uint64_t line = first.array.line_address(access.address);
  const std::uint8_t sectors = wanted_sectors(access);
  const Time begin = first.begin(line, now);
  const std::uint32_t at = first.array.find(line);
  const bool is_load = access.kind == AccessKind::load;
  if (!is_load && write_through_) return write_through(access, line, sectors, begin);
  if (at != CacheArray::none) {
    CacheArray::Line& held = first.array.line(at);
    // The common case first: there, and with the permission needed.
    if ((is_load ? is_present(held.state) : held.state == LineState::modified) &&
        (held.valid & sectors) == sectors) {
      ++(is_load ? first.statistics.reads : first.statistics.writes);
      ++first.statistics.hits;
      first.classifier.access(line);
      first.array.touch(at);
      if (held.prefetched) {
        held.prefetched = false;
        prefetcher_.on_use();
        train(access, true, begin + first.tag_time);
      }
      if (!is_load && (held.dirty & sectors) != sectors) make_modified(line, sectors);
      std::uint64_t value = 0;
      if (spec_.keep_values) value = perform(access, outermost().array.find(line));
      Time ready = begin + first.tag_time + first.data_time;
      if (levels_.size() > 1) ready = std::max(ready, first.available[at]);
      return {AccessResult::Status::done, ready, value};
    }
  }
  return access_beyond_first(access, line, sectors, begin);
}

// Looks through the levels for the line with the permission needed.
AccessResult PrivateCaches::access_beyond_first(const Access& access, std::uint64_t line,
                                                std::uint8_t sectors, Time begin) {
  const bool is_load = access.kind == AccessKind::load;
  Time time = begin;
  for (std::size_t i = 0; i < levels_.size(); ++i) {
    Level& level = *levels_[i];
    const std::uint32_t at = level.array.find_present(line);
    // A clean line that nobody else holds may be written without asking.
    if (at != CacheArray::none && (level.array.line(at).valid & sectors) == sectors &&
        (is_load || level.array.line(at).state != LineState::shared)) {
      if (i > 0) time = level.begin(line, std::max(time, next_place_to_miss()));
      const Time ready = time + level.tag_time + level.data_time;
      for (std::size_t above = 0; above < i; ++above) {
        Level& missed = *levels_[above];
        ++(is_load ? missed.statistics.reads : missed.statistics.writes);
        missed.statistics.count_miss(missed.classifier.access(line));
        missed.statistics.miss_latency.record(ready - begin - missed.tag_time);
        missed.statistics.bytes_in += level.spec.line;
      }
      if (i > 0) take_place_to_miss(ready);
      ++(is_load ? level.statistics.reads : level.statistics.writes);
      ++level.statistics.hits;
      level.classifier.access(line);
      level.array.touch(at);
      if (level.array.line(at).prefetched) {
        level.array.line(at).prefetched = false;
        prefetcher_.on_use();
      }
      if (!is_load) make_modified(line, sectors);
      copy_inwards(line, i, level.array.line(at).valid, level.array.line(at).state, ready);
      train(access, true, time + level.tag_time);
      std::uint64_t value = 0;
      if (spec_.keep_values) value = perform(access, outermost().array.find(line));
      return {AccessResult::Status::done, ready, value};
    }
    time += level.tag_time;
  }
  return miss(access, line, sectors, begin);
}

// With a second level, an access that the first level missed takes one of that level's places until its data
// is there.
Time PrivateCaches::next_place_to_miss() const {
  return places_to_miss_.empty() ? 0 : places_to_miss_[next_place_];
}

void PrivateCaches::take_place_to_miss(Time until) {
  if (places_to_miss_.empty()) return;
  places_to_miss_[next_place_] = until;
  if (++next_place_ == places_to_miss_.size()) next_place_ = 0;
}

AccessResult PrivateCaches::write_through(const Access& access, std::uint64_t line, std::uint8_t sectors,
                                          Time begin) {
  Level& level = outermost();
  const bool atomic = access.kind == AccessKind::atomic_add;
  if (pending_writes_ >= static_cast<std::size_t>(level.spec.outstanding_misses)) return blocked();
  if (atomic && free_tags_.empty()) return blocked();
  ++level.statistics.writes;
  const MissCause cause = level.classifier.access(line);
  // What is under way was read before this write: it serves those who wait and is not kept.
  auto* entry = misses_.find(line);
  if (entry != nullptr) entry->outdated = true;
  const std::uint32_t at = level.array.find_present(line);
  if (at != CacheArray::none && !atomic && entry == nullptr) {
    ++level.statistics.hits;
    level.array.touch(at);
    if (spec_.keep_values) values_[at] = access.value;
  } else {
    level.statistics.count_miss(cause);
    // An atomic operation happens at the responder, so a copy here would be old.
    if (at != CacheArray::none && entry == nullptr) level.array.remove(at, LineState::invalid);
  }
  level.statistics.bytes_out += sector_bytes * std::popcount(sectors);
  Message message{line, access.value, atomic ? Op::atomic : Op::write, Flag::wants_ack, sectors};
  ++pending_writes_;
  const Time when = begin + level.tag_time;
  if (!atomic) {
    send(message, when);
    return {AccessResult::Status::done, when, 0};
  }
  message.tag = free_tags_.back();
  free_tags_.pop_back();
  atomics_[message.tag] = access.token;
  send(message, when);
  return {AccessResult::Status::waiting, 0, 0};
}

AccessResult PrivateCaches::blocked() {
  somebody_blocked_ = true;
  levels_.front()->take_back();
  ++outermost().statistics.blocked;
  return {AccessResult::Status::blocked, 0, 0};
}

AccessResult PrivateCaches::miss(const Access& access, std::uint64_t line, std::uint8_t sectors, Time begin) {
  Level& level = outermost();
  if (misses_.find(line) != nullptr) {
    return merge(access, line, sectors, begin) ? AccessResult{AccessResult::Status::waiting, 0, 0}
                                               : blocked();
  }
  if (access.kind == AccessKind::store && !outermost().spec.allocate_on_write) {
    return write_around(access, line, sectors, begin);
  }
  if (misses_.full() || (spec_.coherent && writing_back(line))) return blocked();
  std::uint32_t at = level.array.find(line);
  const bool held = at != CacheArray::none && is_present(level.array.line(at).state);
  if (!held) {
    if (at == CacheArray::none) at = level.array.victim(line);
    if (at == CacheArray::none) return blocked();
    const LineState state = level.array.line(at).state;
    const bool gives_back = spec_.coherent && (state == LineState::exclusive || state == LineState::modified);
    if (gives_back && writebacks_.size() >= static_cast<std::size_t>(spec_.writeback_buffer))
      return blocked();
  }
  const Time known = begin + levels_.front()->tag_time;  // that it is a miss, at the first level
  Time when = known;
  for (std::size_t i = 1; i < levels_.size(); ++i)
    when = levels_[i]->begin(line, when) + levels_[i]->tag_time;
  count_miss(access, line);
  if (!held) {
    if (is_present(level.array.line(at).state)) evict(at, when + level.period());
    level.array.place(at, line, LineState::pending, 0);
  }
  level.array.line(at).pinned = true;
  auto& entry = misses_.open(line, when);
  entry.since_first = known;
  entry.asked = sectors;
  entry.for_write = access.kind != AccessKind::load;
  misses_.wait(entry, access);
  show_outstanding();
  ask(line, sectors, entry.for_write, held, when);
  train(access, false, when);
  return {AccessResult::Status::waiting, 0, 0};
}

// A store that misses goes down and takes no line.
AccessResult PrivateCaches::write_around(const Access& access, std::uint64_t line, std::uint8_t sectors,
                                         Time begin) {
  if (pending_writes_ >= misses_.capacity()) return blocked();
  Time when = begin + levels_.front()->tag_time;
  for (std::size_t i = 1; i < levels_.size(); ++i)
    when = levels_[i]->begin(line, when) + levels_[i]->tag_time;
  count_miss(access, line);
  outermost().statistics.bytes_out += sector_bytes * std::popcount(sectors);
  ++pending_writes_;
  send({line, access.value, Op::write, Flag::wants_ack, sectors}, when);
  return {AccessResult::Status::done, when, 0};
}

// Shows an access that left the first level to the prefetcher, and fetches what it proposes.
void PrivateCaches::train(const Access& access, bool hit, Time when) {
  if (prefetcher_.kind() == Prefetcher::Kind::none) return;
  PrefetchCandidates candidates;
  prefetcher_.observe(access.address, access.id, hit, candidates);
  for (const std::uint64_t candidate : candidates) prefetch(outermost().array.line_address(candidate), when);
}

// Fetches a line into the outermost level if there is room for it without holding anybody up.
void PrivateCaches::prefetch(std::uint64_t line, Time when) {
  Level& level = outermost();
  std::uint32_t at = level.array.find(line);
  if ((at != CacheArray::none && is_present(level.array.line(at).state)) || misses_.find(line) != nullptr) {
    prefetcher_.on_redundant();
    return;
  }
  // The last free place is for those who wait; and giving an owned line back may need a place of its own.
  if (misses_.size() + 2 > misses_.capacity()) return;
  if (spec_.coherent &&
      (writing_back(line) || writebacks_.size() >= static_cast<std::size_t>(spec_.writeback_buffer)))
    return;
  if (at == CacheArray::none) at = level.array.victim(line);
  if (at == CacheArray::none) return;
  if (is_present(level.array.line(at).state)) evict(at, when + level.period());
  level.array.place(at, line, LineState::pending, 0);
  level.array.line(at).pinned = true;
  auto& entry = misses_.open(line, when);
  entry.asked = level.spec.all_sectors();
  entry.prefetch = true;
  show_outstanding();
  ask(line, entry.asked, false, false, when);
}

// Joins a line under way; asks for sectors that were not asked for yet.
bool PrivateCaches::merge(const Access& access, std::uint64_t line, std::uint8_t sectors, Time begin) {
  auto& entry = *misses_.find(line);
  if (!misses_.can_wait(entry) || entry.outdated) return false;
  const bool prefetched = entry.prefetch;
  if (prefetched) {
    entry.prefetch = false;
    entry.since_first = begin + levels_.front()->tag_time;
    prefetcher_.on_use(true);
  }
  // It waits at the first level and goes no further.
  Level& first = *levels_.front();
  ++(access.kind == AccessKind::load ? first.statistics.reads : first.statistics.writes);
  ++first.statistics.merged;
  first.classifier.access(line);
  const auto more = static_cast<std::uint8_t>(
      sectors & ~(entry.asked | outermost().array.line(outermost().array.find(line)).valid));
  misses_.wait(entry, access);
  if (more != 0) {
    entry.asked |= more;
    ask(line, more, false, false, begin + levels_.front()->tag_time);
  }
  if (prefetched) train(access, false, begin + levels_.front()->tag_time);
  return true;
}

void PrivateCaches::show_outstanding() {
  for (auto& level : levels_) level->statistics.outstanding.set(static_cast<double>(misses_.size()));
}

void PrivateCaches::count_miss(const Access& access, std::uint64_t line) {
  for (auto& level : levels_) {
    ++(access.kind == AccessKind::load ? level->statistics.reads : level->statistics.writes);
    const MissCause cause = level->classifier.access(line);
    if (!spec_.coherent) {
      level->statistics.count_miss(cause);
      continue;
    }
    const std::uint32_t at = level->array.find(line);
    const bool lost = at != CacheArray::none && (level->array.line(at).state == LineState::lost ||
                                                 level->array.line(at).state == LineState::shared);
    level->statistics.count_miss(lost ? MissCause::coherence : cause);
  }
}

void PrivateCaches::ask(std::uint64_t line, std::uint8_t sectors, bool for_write, bool has_data, Time when) {
  Message message{line, 0, Op::read, 0, sectors};
  if (spec_.coherent) {
    message.op = for_write ? Op::get_modified : Op::get_shared;
    if (for_write && has_data) message.flags = Flag::has_data;
  }
  send(message, when);
}

// Gives up a line of the outermost level, and with it its copies further in. What is sent for it leaves a
// cycle after the request that takes its place.
void PrivateCaches::evict(std::uint32_t at, Time when) {
  Level& level = outermost();
  CacheArray::Line& victim = level.array.line(at);
  const std::uint64_t line = level.array.tag(at);
  const bool dirty = victim.state == LineState::modified;
  ++level.statistics.evictions;
  if (victim.prefetched) prefetcher_.on_evict_unused();
  set_inwards(line, LineState::invalid);
  const std::uint64_t value = spec_.keep_values ? values_[at] : 0;
  const std::uint8_t sent = spec_.coherent ? level.spec.all_sectors() : victim.dirty;
  if (dirty) {
    ++level.statistics.writebacks;
    level.statistics.bytes_out += sector_bytes * std::popcount(sent);
  }
  if (spec_.coherent && victim.state != LineState::shared) {
    writebacks_.push_back({line, value, dirty});
    send({line, value, Op::put, dirty ? Flag::dirty : std::uint8_t{0}, level.spec.all_sectors()}, when);
  } else if (dirty) {
    send({line, value, Op::write, 0, sent}, when);
  }
  level.array.remove(at, LineState::invalid);
}

// Does what the access says to the value of a line; gives what a load or an atomic operation returns.
std::uint64_t PrivateCaches::perform(const Access& access, std::uint32_t at) {
  const std::uint64_t before = values_[at];
  if (access.kind == AccessKind::store) values_[at] = access.value;
  if (access.kind == AccessKind::atomic_add) values_[at] += access.value;
  return before;
}

void PrivateCaches::make_modified(std::uint64_t line, std::uint8_t sectors) {
  for (auto& level : levels_) {
    const std::uint32_t at = level->array.find_present(line);
    if (at == CacheArray::none) continue;
    level->array.line(at).state = LineState::modified;
    level->array.line(at).dirty |= sectors;
  }
}

void PrivateCaches::copy_inwards(std::uint64_t line, std::size_t from_level, std::uint8_t sectors,
                                 LineState state, Time when) {
  for (std::size_t i = from_level; i-- > 0;) {
    CacheArray& array = levels_[i]->array;
    std::uint32_t at = array.find(line);
    if (at != CacheArray::none && is_present(array.line(at).state)) {
      array.line(at).state = state;
      array.line(at).valid |= sectors;
      array.touch(at);
      continue;
    }
    if (at == CacheArray::none) at = array.victim(line);
    if (is_present(array.line(at).state)) {
      ++levels_[i]->statistics.evictions;
      // The levels further in must not keep what this one loses.
      const std::uint64_t lost = array.tag(at);
      for (std::size_t inner = 0; inner < i; ++inner) {
        const std::uint32_t copy = levels_[inner]->array.find_present(lost);
        if (copy != CacheArray::none) levels_[inner]->array.remove(copy, LineState::invalid);
      }
    }
    array.place(at, line, state, sectors);
    if (state == LineState::modified)
      array.line(at).dirty = outermost().array.line(outermost().array.find(line)).dirty;
    levels_[i]->available[at] = when;
  }
}

void PrivateCaches::set_inwards(std::uint64_t line, LineState state) {
  for (std::size_t i = 0; i + 1 < levels_.size(); ++i) {
    const std::uint32_t at = levels_[i]->array.find_present(line);
    if (at == CacheArray::none) continue;
    if (is_present(state)) {
      levels_[i]->array.line(at).state = state;
    } else {
      levels_[i]->array.remove(at, state);
    }
  }
}

void PrivateCaches::unblock() {
  if (!somebody_blocked_) return;
  somebody_blocked_ = false;
  owner_.unblocked();
}

bool PrivateCaches::writing_back(std::uint64_t line) const {
  for (const Writeback& entry : writebacks_) {
    if (entry.line == line) return true;
  }
  return false;
}

void PrivateCaches::invalidate_all() {
  // What is under way may have been read before now: it serves those who wait and is not kept.
  misses_.for_each([](std::uint64_t, auto& entry) { entry.outdated = true; });
  for (auto& level : levels_) {
    for (std::uint32_t at = 0; at < level->array.lines(); ++at) {
      CacheArray::Line& held = level->array.line(at);
      if (held.pinned) {
        held.valid = 0;
      } else if (is_present(held.state)) {
        level->array.remove(at, LineState::invalid);
      }
    }
  }
}

void PrivateCaches::send(Message message, Time when) {
  message.destination = static_cast<std::uint16_t>(homes_.slice_of(message.address));
  owner_.send_to_memory(message, when);
}

std::string PrivateCaches::waits() const {
  std::string text;
  if (misses_.size() > 0) text += std::to_string(misses_.size()) + " lines under way";
  if (!writebacks_.empty())
    text += (text.empty() ? "" : ", ") + std::to_string(writebacks_.size()) + " lines being given back";
  if (pending_writes_ > 0)
    text += (text.empty() ? "" : ", ") + std::to_string(pending_writes_) + " writes not confirmed";
  return text;
}

}  // namespace manyscale::memory

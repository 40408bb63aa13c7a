// SPDX-License-Identifier: Apache-2.0
#include "memory/cache/private_caches.hpp"

namespace manyscale::memory {

namespace {

const PrivateCachesSpec& checked(const PrivateCachesSpec& spec) {
  for (const auto& level : spec.levels) level.check();
  if (spec.instruction) spec.instruction->check();
  return spec;
}

// An outstanding line takes an MSHR at every level.
std::int64_t fewest_misses(const PrivateCachesSpec& spec) {
  if (spec.mshrs_per_level) return spec.levels.back().outstanding_misses;
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
      first_prefetcher_(spec.first_prefetcher),
      has_first_prefetcher_(first_prefetcher_.enabled()),
      homes_({.slices = spec.homes, .line_size = spec.levels.front().line, .hash = spec.home_hash}) {
  for (const auto& level : spec.levels) {
    if (level.line != spec.levels.front().line)
      throw std::invalid_argument("line: all levels need the same line size");
    if ((level.write == "through") != write_through_ || (write_through_ && spec.levels.size() > 1)) {
      throw std::invalid_argument("write: a write-through cache is the only private level");
    }
    levels_.push_back(std::make_unique<Level>(level, period, seed + levels_.size()));
  }
  if (prefetcher_.enabled() && spec.prefetcher.line_size != spec.levels.front().line) {
    throw std::invalid_argument("prefetcher.line_size: must be the line size of the caches");
  }
  if (has_first_prefetcher_ && levels_.size() == 1)
    throw std::invalid_argument("first_prefetcher: a single level has one prefetcher, `prefetcher`");
  if (has_first_prefetcher_ && spec.first_prefetcher.line_size != spec.levels.front().line)
    throw std::invalid_argument("first_prefetcher.line_size: must be the line size of the caches");
  if (spec.fetch_ahead > 0 && levels_.size() == 1)
    throw std::invalid_argument("fetch_ahead: instructions are fetched ahead from an L2");
  if (spec.coherent && !spec.levels.back().allocate_on_write) {
    throw std::invalid_argument("allocate_on_write: a coherent cache takes a line for every write");
  }
  if (write_through_ && spec.coherent) throw std::invalid_argument("write: coherent caches are write-back");
  if (spec.keep_values) values_.resize(outermost().array.lines());
  if (levels_.size() > 1) {
    mshrs_of(AccessKind::load).resize(spec.levels.front().outstanding_misses);
    for (auto& level : levels_) level->available.assign(level->array.lines(), 0);
  }
  if (spec.instruction) {
    if (spec.instruction->line != spec.levels.front().line)
      throw std::invalid_argument("line: the cache of instructions needs the line size of the others");
    instruction_ = std::make_unique<Level>(*spec.instruction, period, seed + levels_.size());
    instruction_->available.assign(instruction_->array.lines(), 0);
    if (levels_.size() > 1) mshrs_of(AccessKind::fetch).resize(spec.instruction->outstanding_misses);
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
  if (access.kind == AccessKind::fetch) return fetch(access, now);
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
        if (has_first_prefetcher_) {
          first_prefetcher_.on_use(first.available[at] > begin + first.tag_time + first.data_time);
        } else {
          prefetcher_.on_use();
          train(access, true, begin + first.tag_time);
        }
      }
      if (!is_load && (held.dirty & sectors) != sectors) make_modified(line, sectors);
      Value value = 0;
      if (spec_.keep_values) value = perform(access, outermost().array.find(line));
      Time ready = begin + first.tag_time + first.data_time;
      Served served = Served::l1;
      if (levels_.size() > 1 && first.available[at] > ready) {
        ready = first.available[at];
        served = Served::l2;
      }
      if (has_first_prefetcher_) train_first(access, true, begin + first.tag_time);
      return {AccessResult::Status::done, ready, value, served};
    }
  }
  return access_beyond_first(access, line, sectors, begin);
}

// Looks through the levels for the line with the permission needed.
AccessResult PrivateCaches::access_beyond_first(const Access& access, std::uint64_t line,
                                                std::uint8_t sectors, Time begin) {
  const bool reads = only_reads(access.kind);
  MshrPool& mshrs = mshrs_of(access.kind);
  Time time = begin;
  for (std::size_t i = 0; i < levels_.size(); ++i) {
    Level& level = level_of(access.kind, i);
    const std::uint32_t at = level.array.find_present(line);
    // A clean line that nobody else holds may be written without asking.
    if (at != CacheArray::none && (level.array.line(at).valid & sectors) == sectors &&
        (reads || level.array.line(at).state != LineState::shared)) {
      if (i > 0) time = level.begin(line, std::max(time, mshrs.next_free()));
      const Time ready = time + level.tag_time + level.data_time;
      for (std::size_t above = 0; above < i; ++above) {
        Level& missed = level_of(access.kind, above);
        ++(reads ? missed.statistics.reads : missed.statistics.writes);
        missed.statistics.count_miss(missed.classifier.access(line));
        missed.statistics.miss_latency.record(ready - begin - missed.tag_time);
        missed.statistics.bytes_in += level.spec.line;
      }
      if (i > 0) mshrs.take(ready);
      ++(reads ? level.statistics.reads : level.statistics.writes);
      ++level.statistics.hits;
      level.classifier.access(line);
      level.array.touch(at);
      use_prefetched(level.array.line(at));
      if (!reads) make_modified(line, sectors);
      copy_inwards(access.kind, line, i, level.array.line(at).valid, level.array.line(at).state, ready);
      if (has_first_prefetcher_ && access.kind != AccessKind::fetch)
        train_first(access, i == 0, begin + levels_.front()->tag_time);
      train(access, true, time + level.tag_time);
      if (i > 0 && access.kind == AccessKind::fetch) fetch_ahead(line, begin + instruction_->tag_time);
      Value value = 0;
      if (spec_.keep_values) value = perform(access, outermost().array.find(line));
      return {AccessResult::Status::done, ready, value, static_cast<Served>(i)};
    }
    time += level.tag_time;
  }
  return miss(access, line, sectors, begin);
}

AccessResult PrivateCaches::write_through(const Access& access, std::uint64_t line, std::uint8_t sectors,
                                          Time begin) {
  Level& level = outermost();
  const bool atomic = access.kind == AccessKind::atomic_add;
  if (pending_writes_ >= static_cast<std::size_t>(level.spec.outstanding_misses)) return blocked(access.kind);
  if (atomic && free_tags_.empty()) return blocked(access.kind);
  ++level.statistics.writes;
  const MissCause cause = level.classifier.access(line);
  // What is outstanding was read before this write: it serves those who wait and is not kept.
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

AccessResult PrivateCaches::blocked(AccessKind kind) {
  somebody_blocked_ = true;
  level_of(kind, 0).take_back();
  ++outermost().statistics.blocked;
  return {AccessResult::Status::blocked, 0, 0};
}

AccessResult PrivateCaches::miss(const Access& access, std::uint64_t line, std::uint8_t sectors, Time begin) {
  Level& level = outermost();
  if (misses_.find(line) != nullptr) {
    return merge(access, line, sectors, begin) ? AccessResult{AccessResult::Status::waiting, 0, 0}
                                               : blocked(access.kind);
  }
  if (access.kind == AccessKind::store && !outermost().spec.allocate_on_write) {
    return write_around(access, line, sectors, begin);
  }
  if (misses_.full() || (spec_.coherent && writing_back(line))) return blocked(access.kind);
  if (!has_mshr(access.kind)) return blocked(access.kind);
  std::uint32_t at = level.array.find(line);
  const bool held = at != CacheArray::none && is_present(level.array.line(at).state);
  if (!held) {
    if (at == CacheArray::none) at = level.array.victim(line);
    if (at == CacheArray::none) return blocked(access.kind);
    const LineState state = level.array.line(at).state;
    const bool gives_back = spec_.coherent && (state == LineState::exclusive || state == LineState::modified);
    if (gives_back && writebacks_.size() >= static_cast<std::size_t>(spec_.writeback_buffer))
      return blocked(access.kind);
  }
  const Time known = begin + level_of(access.kind, 0).tag_time;  // that it is a miss, at the L1
  Time when = known;
  for (std::size_t i = 1; i < levels_.size(); ++i)
    when = levels_[i]->begin(line, when) + levels_[i]->tag_time;
  count_miss(access, line);
  if (!held) {
    if (is_present(level.array.line(at).state)) evict(at, when + level.period());
    level.array.fill(at, line, LineState::pending, 0);
  }
  level.array.line(at).pinned = true;
  auto& entry = misses_.open(line, when);
  entry.since_first = known;
  entry.asked = sectors;
  entry.for_write = !only_reads(access.kind);
  entry.fetch = access.kind == AccessKind::fetch;
  ++(entry.fetch ? fetches_ : demands_);
  misses_.wait(entry, access);
  show_outstanding();
  ask(line, sectors, access.kind, held, when);
  if (has_first_prefetcher_ && access.kind != AccessKind::fetch) train_first(access, false, known);
  train(access, false, when);
  if (access.kind == AccessKind::fetch) fetch_ahead(line, known);
  return {AccessResult::Status::waiting, 0, 0};
}

// Whether one more line may be outstanding to an L1.
bool PrivateCaches::has_mshr(AccessKind kind) const {
  if (kind == AccessKind::fetch) return can_fetch();
  return !spec_.mshrs_per_level ||
         demands_ < static_cast<std::size_t>(levels_.front()->spec.outstanding_misses);
}

// A store that misses goes down and takes no line.
AccessResult PrivateCaches::write_around(const Access& access, std::uint64_t line, std::uint8_t sectors,
                                         Time begin) {
  if (pending_writes_ >= misses_.capacity()) return blocked(access.kind);
  Time when = begin + levels_.front()->tag_time;
  for (std::size_t i = 1; i < levels_.size(); ++i)
    when = levels_[i]->begin(line, when) + levels_[i]->tag_time;
  count_miss(access, line);
  outermost().statistics.bytes_out += sector_bytes * std::popcount(sectors);
  ++pending_writes_;
  send({line, access.value, Op::write, Flag::wants_ack, sectors}, when);
  return {AccessResult::Status::done, when, 0};
}

// Joins an outstanding line; asks for sectors that were not asked for yet.
bool PrivateCaches::merge(const Access& access, std::uint64_t line, std::uint8_t sectors, Time begin) {
  auto& entry = *misses_.find(line);
  if (!misses_.can_wait(entry) || entry.outdated) return false;
  // Data that shares a line with outstanding instructions has no entry reserved for it.
  if (entry.alone && access.kind != AccessKind::fetch) return false;
  const bool prefetched = entry.prefetch;
  if (prefetched) {
    if (!entry.to_first) {
      if (!has_mshr(access.kind)) return false;
      entry.fetch = access.kind == AccessKind::fetch;
      ++(entry.fetch ? fetches_ : demands_);
    }
    entry.prefetch = false;
    entry.since_first = begin + level_of(access.kind, 0).tag_time;
    if (!entry.to_first) {
      prefetcher_.on_use(true);
    } else if (!entry.fetch) {
      first_prefetcher_.on_use(true);
    }
  }
  // It waits at the L1 and goes no further.
  Level& first = level_of(access.kind, 0);
  ++(only_reads(access.kind) ? first.statistics.reads : first.statistics.writes);
  ++first.statistics.merged;
  first.classifier.access(line);
  misses_.wait(entry, access);
  if (entry.alone) return true;
  const auto more = static_cast<std::uint8_t>(
      sectors & ~(entry.asked | outermost().array.line(outermost().array.find(line)).valid));
  if (more != 0) {
    entry.asked |= more;
    ask(line, more, AccessKind::load, false, begin + levels_.front()->tag_time);
  }
  const bool to_first = entry.to_first;
  if (prefetched && !to_first) train(access, false, begin + levels_.front()->tag_time);
  if (has_first_prefetcher_ && access.kind != AccessKind::fetch)
    train_first(access, false, begin + levels_.front()->tag_time);
  return true;
}

void PrivateCaches::show_outstanding() {
  for (auto& level : levels_) level->statistics.outstanding.set(static_cast<double>(misses_.size()));
  if (instruction_) instruction_->statistics.outstanding.set(static_cast<double>(fetches_));
}

void PrivateCaches::count_miss(const Access& access, std::uint64_t line) {
  for (std::size_t i = 0; i < levels_.size(); ++i) {
    Level& level = level_of(access.kind, i);
    ++(only_reads(access.kind) ? level.statistics.reads : level.statistics.writes);
    const MissCause cause = level.classifier.access(line);
    if (!spec_.coherent) {
      level.statistics.count_miss(cause);
      continue;
    }
    const std::uint32_t at = level.array.find(line);
    const bool lost = at != CacheArray::none && (level.array.line(at).state == LineState::lost ||
                                                 level.array.line(at).state == LineState::shared);
    level.statistics.count_miss(lost ? MissCause::coherence : cause);
  }
}

void PrivateCaches::ask(std::uint64_t line, std::uint8_t sectors, AccessKind kind, bool has_data, Time when) {
  Message message{line, 0, Op::read, 0, sectors};
  if (spec_.coherent) {
    const bool for_write = !only_reads(kind);
    message.op = for_write ? Op::get_modified : Op::get_shared;
    if (for_write && has_data) message.flags = Flag::has_data;
    if (kind == AccessKind::fetch) message.flags = Flag::fetch;
  }
  send(message, when);
}

// Gives up a line of the outermost level, and with it its copies further in. What is sent for it leaves a
// cycle after the request that replaces it.
void PrivateCaches::evict(std::uint32_t at, Time when) {
  Level& level = outermost();
  CacheArray::Line& victim = level.array.line(at);
  const std::uint64_t line = level.array.tag(at);
  const bool dirty = victim.state == LineState::modified;
  ++level.statistics.evictions;
  if (victim.prefetched) prefetcher_.on_evict_unused();
  set_inwards(line, LineState::invalid);
  // Beside a single level, instructions stay when data leaves, unless the home is told that the line is gone.
  if (levels_.size() > 1 || (spec_.coherent && victim.state != LineState::shared))
    drop_fetched(line, LineState::invalid);
  const Value value = spec_.keep_values ? values_[at] : 0;
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
Value PrivateCaches::perform(const Access& access, std::uint32_t at) {
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
  drop_fetched(line, LineState::lost);
}

void PrivateCaches::copy_inwards(AccessKind kind, std::uint64_t line, std::size_t from_level,
                                 std::uint8_t sectors, LineState state, Time when) {
  const bool is_fetch = kind == AccessKind::fetch;
  for (std::size_t i = from_level; i-- > (is_fetch ? 1u : 0u);) {
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
      if (array.line(at).prefetched && i == 0) first_prefetcher_.on_evict_unused();
      // The levels further in must not keep what this one loses.
      const std::uint64_t lost = array.tag(at);
      for (std::size_t inner = 0; inner < i; ++inner) {
        const std::uint32_t copy = levels_[inner]->array.find_present(lost);
        if (copy != CacheArray::none) levels_[inner]->array.remove(copy, LineState::invalid);
      }
      if (i > 0) drop_fetched(lost, LineState::invalid);
    }
    array.fill(at, line, state, sectors);
    if (state == LineState::modified)
      array.line(at).dirty = outermost().array.line(outermost().array.find(line)).dirty;
    levels_[i]->available[at] = when;
  }
  if (is_fetch) take_fetched(line, when);
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
  // What is outstanding may have been read before now: it serves those who wait and is not kept.
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
  if (!instruction_) return;
  for (std::uint32_t at = 0; at < instruction_->array.lines(); ++at)
    instruction_->array.remove(at, LineState::invalid);
}

void PrivateCaches::send(Message message, Time when) {
  message.destination = static_cast<std::uint16_t>(homes_.slice_of(message.address));
  owner_.send_to_memory(message, when);
}

std::string PrivateCaches::waits() const {
  std::string text;
  if (misses_.size() > 0) text += std::to_string(misses_.size()) + " outstanding lines";
  if (!writebacks_.empty())
    text += (text.empty() ? "" : ", ") + std::to_string(writebacks_.size()) + " lines being given back";
  if (pending_writes_ > 0)
    text += (text.empty() ? "" : ", ") + std::to_string(pending_writes_) + " writes not confirmed";
  return text;
}

}  // namespace manyscale::memory

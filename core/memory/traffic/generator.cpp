// SPDX-License-Identifier: Apache-2.0
#include "memory/traffic/generator.hpp"

#include <algorithm>
#include <utility>

#include "engine/registry.hpp"

namespace manyscale::memory {

namespace {

const Registered<Generator> registered{
    "memory.generator", "A core's stand-in that makes accesses by a pattern through its own caches."};

// So many accesses that need no event are made at a stretch before the engine may look up.
constexpr int most_at_a_stretch = 4096;
// What the accesses of a page walk are known by.
constexpr std::uint32_t walk_token = ~0u;

PrivateCachesSpec caches_spec(const GeneratorSpec& spec) {
  PrivateCachesSpec caches;
  caches.levels.push_back(spec.l1);
  if (spec.l2.size > 0) caches.levels.push_back(spec.l2);
  caches.coherent = spec.coherent;
  caches.keep_values = spec.log;
  caches.homes = spec.homes;
  caches.home_hash = spec.home_hash;
  caches.writeback_buffer = spec.writeback_buffer;
  caches.prefetcher = spec.prefetcher;
  return caches;
}

}  // namespace

Generator::Generator(const Spec& spec)
    : spec_(spec),
      pattern_([&] {
        static constexpr std::pair<std::string_view, Pattern> known[] = {
            {"stream", Pattern::stream}, {"triad", Pattern::triad}, {"stride", Pattern::stride},
            {"random", Pattern::random}, {"chase", Pattern::chase}, {"gups", Pattern::gups},
            {"trace", Pattern::trace}};
        for (const auto& [name, pattern] : known) {
          if (name == spec.pattern) return pattern;
        }
        throw std::invalid_argument("pattern: there is no pattern '" + spec.pattern +
                                    "'; known: stream, triad, stride, random, chase, gups, trace");
      }()),
      period_(period_of(spec.clock)),
      caches_(std::make_unique<PrivateCaches>(*this, caches_spec(spec), period_, 1)),
      total_(spec.accesses) {
  if (spec.size > spec.footprint) throw std::invalid_argument("footprint: smaller than one access");
  if (spec.invalidate_every > 0 && spec.l1.write != "through") {
    throw std::invalid_argument(
        "invalidate_every: a write-back cache would lose what it has not written yet");
  }
  if (pattern_ == Pattern::triad && spec.footprint / spec.size < 3) {
    throw std::invalid_argument("footprint: a triad needs three arrays of at least one element");
  }
  if (pattern_ == Pattern::chase && spec.footprint < spec.l1.line) {
    throw std::invalid_argument("footprint: a chase goes from line to line and needs at least one");
  }
  declare(statistics_);
  declare(caches_->levels()[0]->statistics, "l1.");
  if (caches_->levels().size() > 1) declare(caches_->levels()[1]->statistics, "l2.");
  memory_.on_receive<&Generator::receive>();
  timer_.on_expire<&Generator::wake>();
  walk_timer_.on_expire<&Generator::walk_on>();
  declare(caches_->prefetcher_statistics(), "prefetcher.");
  if (spec.translation.enabled) {
    translator_ = std::make_unique<Translator>(spec.translation);
    declare(translator_->tlb_statistics(0), "tlb.l1.");
    declare(translator_->tlb_statistics(1), "tlb.l2.");
    declare(translator_->walker_statistics(), "walker.");
  }
  slots_.resize(static_cast<std::size_t>(spec.window));
  for (auto slot = static_cast<std::uint32_t>(spec.window); slot-- > 0;) free_slots_.push_back(slot);
  done_at_.assign(static_cast<std::size_t>(spec.window), 0);
}

void Generator::set_trace(std::vector<Access> trace) {
  const auto line = static_cast<std::uint64_t>(spec_.l1.line);
  for (const Access& access : trace) {
    if (access.size == 0 || access.kind > AccessKind::atomic_add ||
        access.address % line + access.size > line) {
      throw std::invalid_argument("a trace's access has no size, an unknown kind, or crosses a line");
    }
  }
  trace_ = std::move(trace);
  total_ = static_cast<std::int64_t>(trace_.size());
}

void Generator::start() {
  caches_->reseed(random());
  pump();
}

void Generator::wake(const Wake&) {
  if (now() != wake_at_) return;  // an earlier wake came in between
  wake_at_ = never;
  pump();
}

void Generator::schedule(Time when) {
  if (when >= wake_at_) return;
  wake_at_ = when;
  timer_.after(when - now(), Wake{});
}

// Makes all accesses that can be made now. While nothing is outstanding nothing can come in, so accesses that
// hit need no event each; with coherence another cache may ask for a line at any time, so there every access
// has its event.
void Generator::pump() {
  for (int count = 0; count < most_at_a_stretch; ++count) {
    if (blocked_ || walking_ || free_slots_.empty()) return;
    if (!has_current_) {
      if (next_number_ == total_) {
        // The run lasts until the last data is there.
        if (last_ready_ > now()) schedule(last_ready_);
        return;
      }
      if (spec_.invalidate_every > 0 && next_number_ > 0 && next_number_ % spec_.invalidate_every == 0) {
        caches_->invalidate_all();
      }
      current_ = next_access();
      has_current_ = true;
      translated_ = translator_ == nullptr;
    }
    if (pattern_ == Pattern::chase && in_flight_ > 0) return;
    // Outstanding misses take some entries of the window; the rest is for the latest hits.
    const Time slot = done_at_[(ring_ + static_cast<std::size_t>(in_flight_)) % done_at_.size()];
    const Time when = std::max({now(), next_issue_, slot});
    if (when > now() && (spec_.coherent || caches_->outstanding() > 0)) {
      schedule(when);
      return;
    }
    if (!translated_) {
      if (!translate(when)) return;
      continue;  // the TLB's time may have moved the issue
    }
    if (!issue(when)) return;
  }
  schedule(std::max(now(), next_issue_));
}

// Finds the physical address of the current access; false when a page walk must do that first. Accesses wait
// behind it.
bool Generator::translate(Time when) {
  const TlbLookup found = translator_->lookup(current_.address);
  if (found.hit()) {
    current_.address = found.physical_address;
    translated_ = true;
    next_issue_ = std::max(next_issue_, when + found.latency * period_);
    return true;
  }
  virtual_address_ = current_.address;
  const auto reads = translator_->begin_walk(virtual_address_);
  walk_reads_.assign(reads.rbegin(), reads.rend());
  walking_ = true;
  const std::int64_t cycles = found.latency + translator_->walk_latency();
  walk_timer_.after(when + cycles * period_ - now(), Wake{});
  return false;
}

void Generator::walk_on(const Wake&) {
  walk(now());
}

// Reads the next page-table entry through the caches; after the last one the access can go on.
void Generator::walk(Time when) {
  if (walk_reads_.empty()) {
    translator_->finish_walk(virtual_address_);
    walking_ = false;
    next_issue_ = std::max(next_issue_, when);
    pump();
    return;
  }
  Access read;
  read.address = walk_reads_.back();
  read.token = walk_token;
  const AccessResult result = caches_->access(read, when);
  if (result.status == AccessResult::Status::blocked) {
    walk_blocked_ = true;
    return;
  }
  walk_reads_.pop_back();
  if (result.status == AccessResult::Status::done) walk_timer_.after(result.ready - now(), Wake{});
}

bool Generator::issue(Time when) {
  const std::uint32_t slot = free_slots_.back();
  current_.token = slot;
  const AccessResult result = caches_->access(current_, when);
  if (result.status == AccessResult::Status::blocked) {
    ++statistics_.stalled;
    blocked_ = true;
    return false;
  }
  has_current_ = false;
  ++statistics_.issued;
  next_issue_ = when + spec_.interval * period_;
  if (result.status == AccessResult::Status::done) {
    done_at_[ring_] = result.ready;
    if (++ring_ == done_at_.size()) ring_ = 0;
    if (pattern_ == Pattern::chase) next_issue_ = result.ready;
    completed(current_, when, when, result.ready, result.value);
    return true;
  }
  free_slots_.pop_back();
  slots_[slot] = {current_, when};
  ++in_flight_;
  show_level("outstanding misses", static_cast<double>(in_flight_));
  return true;
}

void Generator::access_done(std::uint32_t token, Time ready, Value value, Served) {
  if (token == walk_token) {
    walk_timer_.after(ready - now(), Wake{});
    return;
  }
  const Slot slot = slots_[token];
  free_slots_.push_back(token);
  --in_flight_;
  show_level("outstanding misses", static_cast<double>(in_flight_));
  completed(slot.access, slot.issued, now(), ready, value);
  if (pattern_ == Pattern::chase) next_issue_ = std::max(next_issue_, ready);
}

void Generator::completed(const Access& access, Time issued, Time performed, Time ready, Value value) {
  ++statistics_.completed;
  statistics_.bytes += access.size;
  statistics_.completions.add(ready, 1);
  if (ready > last_ready_) {
    last_ready_ = ready;
    statistics_.finished.set(static_cast<double>(ready));
  }
  statistics_.latency.record(ready - issued);
  if (spec_.log) {
    log_.push_back({performed, access.address, access.kind == AccessKind::store ? access.value : value,
                    static_cast<std::uint64_t>(access.kind)});
  }
}

void Generator::unblocked() {
  blocked_ = false;
  if (!std::exchange(walk_blocked_, false)) return;
  walk_timer_.after(0, Wake{});
}

void Generator::send_to_memory(const Message& message, Time when) {
  memory_.send(message, when - now());
}

void Generator::receive(const Message& message, std::uint32_t) {
  caches_->receive(message, now());
  pump();
}

Access Generator::next_access() {
  const auto number = static_cast<std::uint64_t>(next_number_++);
  const auto footprint = static_cast<std::uint64_t>(spec_.footprint);
  const auto size = static_cast<std::uint64_t>(spec_.size);
  const std::uint64_t elements = footprint / size;
  Access access;
  access.size = static_cast<std::uint32_t>(spec_.size);
  access.address = static_cast<std::uint64_t>(spec_.base);
  const auto mix_kinds = [&] {
    const double draw = spec_.writes + spec_.atomics > 0 ? random().uniform() : 1.0;
    if (draw <= spec_.writes)
      access.kind = AccessKind::store;
    else if (draw <= spec_.writes + spec_.atomics)
      access.kind = AccessKind::atomic_add;
  };
  switch (pattern_) {
    case Pattern::stream:
      access.address += number % elements * size;
      mix_kinds();
      break;
    case Pattern::triad: {
      // a[i] = b[i] + s c[i]: reads b and c, then writes a, three arrays one after the other.
      const std::uint64_t each = elements / 3;
      const std::uint64_t array = number % 3;
      access.address += ((array + 1) % 3 * each + number / 3 % each) * size;
      access.id = static_cast<std::uint32_t>(array);
      if (array == 2) access.kind = AccessKind::store;
      break;
    }
    case Pattern::stride:
      access.address += number * static_cast<std::uint64_t>(spec_.stride) % footprint / size * size;
      mix_kinds();
      break;
    case Pattern::random:
      access.address += random().below(elements) * size;
      mix_kinds();
      break;
    case Pattern::gups: {
      // Read a random element, then write it back changed.
      if (number % 2 == 0) chase_at_ = random().below(elements);
      access.address += chase_at_ * size;
      if (number % 2 == 1) access.kind = AccessKind::store;
      break;
    }
    case Pattern::chase: {
      // A full-period walk over the lines of the footprint in an order no prefetcher guesses.
      const auto lines = footprint / static_cast<std::uint64_t>(spec_.l1.line);
      access.address += chase_at_ * static_cast<std::uint64_t>(spec_.l1.line);
      // The generator x -> 5 x + 1 has full period on powers of two; positions beyond the footprint are
      // skipped.
      const std::uint64_t mask = std::bit_ceil(lines) - 1;
      do chase_at_ = (chase_at_ * 0x5851f42d4c957f2du + 0x14057b7ef767814fu) & mask;
      while (chase_at_ >= lines);
      break;
    }
    case Pattern::trace:
      access = trace_[number];
      break;
  }
  if (access.kind == AccessKind::store && access.value == 0) {
    // Its own, as long as there are fewer than 4,095 components and a million accesses of each.
    access.value = static_cast<Value>((id() + 1) << 20 | ((number + 1) & 0xfffff));
  } else if (access.kind == AccessKind::atomic_add && access.value == 0) {
    access.value = 1;
  }
  return access;
}

std::vector<Wait> Generator::waits() const {
  if (next_number_ == total_ && !has_current_ && in_flight_ == 0) return {};
  return {{std::to_string(in_flight_) + " accesses outstanding (" + caches_->waits() + ")",
           memory_.width() > 0 ? memory_.lanes()[0].peer->owner().name() : ""}};
}

}  // namespace manyscale::memory

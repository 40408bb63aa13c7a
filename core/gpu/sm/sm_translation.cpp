// SPDX-License-Identifier: Apache-2.0
// What an SM does with managed memory: its TLB, the lines that wait for pages, and accesses of the host's
// memory.
#include <algorithm>
#include <bit>

#include "gpu/sm/sm.hpp"

namespace manyscale::gpu {

using Request = TranslationRequest;
using Answer = TranslationAnswer;

namespace {

// What an entry of the TLB says of its page, in the bits of a frame number: whether writes have to ask first,
// whether a write was reported, the accesses since the last report, and the cycle of it.
struct Entry {
  bool read_only = false;
  bool written = false;
  std::uint32_t used = 0;
  Cycle reported = 0;

  static constexpr std::uint32_t kMostUsed = (1U << 14) - 1;

  static Entry of(std::uint64_t frame) {
    return {(frame & 1) != 0, (frame & 2) != 0, static_cast<std::uint32_t>(frame >> 2) & kMostUsed,
            static_cast<Cycle>(frame >> 16)};
  }
  std::uint64_t frame() const {
    return std::uint64_t{read_only} | std::uint64_t{written} << 1 | std::uint64_t{used} << 2 |
           static_cast<std::uint64_t>(reported) << 16;
  }
};

}  // namespace

// Checks what the SM was told of its TLB; whether that takes nobody in while a page is on its way.
bool Sm::faults_block(const SmTlbSpec& spec) {
  if (spec.faults != "replayable" && spec.faults != "blocking")
    throw SimulationError("an SM's faults are replayable or blocking, not '" + spec.faults + "'");
  if (spec.ways != 0 && spec.entries % spec.ways != 0)
    throw SimulationError("a TLB of " + std::to_string(spec.entries) + " entries has no sets of " +
                          std::to_string(spec.ways) + " ways");
  return spec.faults == "blocking";
}

void Sm::attach(std::shared_ptr<const ManagedRanges> managed) {
  if (translation_.width() == 0)
    throw SimulationError(name() + " has no link to unified memory, so it cannot use managed memory");
  managed_ = std::move(managed);
  const SmTlbSpec& spec = spec_.tlb;
  tlb_.emplace(memory::TlbSpec{spec.entries, spec.ways, static_cast<std::int64_t>(kPageBytes), spec.latency});
}

void Sm::attach(std::shared_ptr<const RemoteRanges> remote) {
  if (translation_.width() == 0)
    throw SimulationError(name() + " has no link to unified memory, so it cannot use memory beyond the link");
  remote_ranges_ = std::move(remote);
}

// Whether the TLB knows the page of a line that is looked up at a cycle; says at times that the page is used.
bool Sm::find_translation(std::uint64_t line, bool writes, Cycle now) {
  const std::uint64_t* frame = tlb_->find(line, 0);
  if (frame == nullptr) return false;
  Entry entry = Entry::of(*frame);
  if (writes && entry.read_only) {
    tlb_->invalidate(line);
    return false;
  }
  entry.used = std::min(entry.used + 1, Entry::kMostUsed);
  const bool first_write = writes && !entry.written;
  if (first_write || clock_.edge(now - entry.reported) >= spec_.tlb.report_interval) {
    translation_.send({line, 0, entry.used, Request::Kind::used, writes, 0},
                      std::max<Time>(0, clock_.edge(now) - this->now()));
    entry = {entry.read_only, entry.written || writes, 0, now};
  }
  tlb_->fill(line, 0, entry.frame());
  return true;
}

LaunchRecord& Sm::record_of(const ParkedLine& parked) {
  return *warps_[parked.has_result() ? loads_[parked.owner].warp : parked.owner]->record;
}

// Says of what waits for a line that it waits for a page to come.
void Sm::mark_faulted(const ParkedLine& parked) {
  if (parked.has_result())
    loads_[parked.owner].faulted = true;
  else
    warps_[parked.owner]->faulted_at_end = true;
}

// Whether the TLB takes nobody in, because a page of this SM is on its way or too many lines wait.
bool Sm::translations_full() const {
  return (open_faults_ != 0 && blocking_faults_) ||
         (spec_.tlb.outstanding != 0 && taken_in_ >= spec_.tlb.outstanding);
}

// Whether a further line has to wait outside of the TLB: nobody overtakes.
bool Sm::translations_blocked() const {
  return !held_.empty() || translations_full();
}

// Lets a line wait for its page from a cycle on, when the TLB has been looked up.
void Sm::park(const ParkedLine& parked, Cycle when) {
  if (parked.has_result()) ++parked_loads_;
  if (translations_blocked()) {
    mark_faulted(parked);
    held_.push_back(parked);
    return;
  }
  wait_for_translation(parked, when);
}

// Lets a line wait for the answer to the question where its page is, which is asked if no other line did.
void Sm::wait_for_translation(const ParkedLine& parked, Cycle when) {
  ++waiting_lines_;
  ++taken_in_;
  ++statistics_of(parked).tlb_misses;
  const auto [place, is_new] = parked_.place_of(parked.line);
  ParkedLines::Page& page = parked_.at(place);
  page.lines.push_back(parked);
  if (page.faulted) mark_faulted(parked);
  if (is_new)
    translation_.send({parked.line, place, 1, Request::Kind::translate, parked.writes(), 0},
                      std::max<Time>(0, clock_.edge(when) - now()));
}

void Sm::translated(const Answer& answer, std::uint32_t) {
  const Cycle cycle = clock_.cycle_at(now());
  switch (answer.kind) {
    case Answer::Kind::faulted: {
      ParkedLines::Page& page = parked_.at(answer.tag);
      page.faulted = true;
      ++open_faults_;
      ++statistics_of(page.lines.front()).faulted_translations;
      for (const ParkedLine& parked : page.lines) mark_faulted(parked);
      return;
    }
    case Answer::Kind::shootdown:
      taken_.tlb_shootdowns += tlb_->invalidate_range(answer.address, answer.tag * kPageBytes);
      return;
    case Answer::Kind::shootdown_all:
      taken_.tlb_shootdowns += tlb_->invalidate_all();
      return;
    case Answer::Kind::remote_done:
      remote_done(answer.tag, cycle);
      break;
    case Answer::Kind::mapped:
    case Answer::Kind::mapped_read_only:
    case Answer::Kind::remote:
      page_answered(answer, cycle);
      break;
  }
  make_room(cycle);
}

// Lets the lines that waited for a page go on, one each cycle, through the stage that they left.
void Sm::page_answered(const Answer& answer, Cycle cycle) {
  if (parked_.at(answer.tag).faulted) --open_faults_;
  const std::vector<ParkedLine> lines = parked_.take(answer.tag);
  waiting_lines_ -= static_cast<std::int64_t>(lines.size());
  if (waiting_lines_ == 0) taken_in_ = 0;
  const bool read_only = answer.kind == Answer::Kind::mapped_read_only;
  if (answer.kind != Answer::Kind::remote) {
    // The request of the first told whether it writes.
    const bool written = lines.front().writes();
    if (answer.chunk) fill_chunk(answer.address, cycle);
    tlb_->fill(answer.address, 0, Entry{read_only, written, 0, cycle}.frame());
  }
  Cycle at = std::max(cycle, data_free_);
  for (const ParkedLine& parked : lines) {
    if (parked.has_result()) --parked_loads_;
    if (read_only && parked.writes() && !lines.front().writes()) {
      tlb_->invalidate(parked.line);
      park(parked, at);  // a copy of the page can be read, but a write needs the page itself
    } else if (answer.kind == Answer::Kind::remote) {
      access_remote(parked, at);
    } else {
      if (parked.writes()) find_translation(parked.line, true, at);  // reports the first write
      go_on(parked, at);
    }
    ++at;
  }
  data_free_ = data_free_without_ = at;
  release_held();
}

// Takes the translations of the other pages of a chunk in; what is known of them already stays.
void Sm::fill_chunk(std::uint64_t address, Cycle cycle) {
  const std::uint64_t first = address / kChunkBytes * kChunkBytes;
  for (std::uint64_t page = first; page < first + kChunkBytes; page += kPageBytes)
    if (page != address && tlb_->find(page, 0) == nullptr)
      tlb_->fill(page, 0, Entry{false, false, 0, cycle}.frame());
}

// Looks up what had to wait outside of the TLB, as far as there is room.
void Sm::release_held() {
  while (!held_.empty() && !translations_full()) {
    const ParkedLine parked = held_.front();
    held_.pop_front();
    const Cycle when = data_free_++ + spec_.tlb.latency;
    data_free_without_ = data_free_;
    if (find_translation(parked.line, parked.writes(), when)) {
      taken_in_ += waiting_lines_ != 0;
      if (parked.has_result()) --parked_loads_;
      ++statistics_of(parked).tlb_hits;
      go_on(parked, when);
    } else {
      wait_for_translation(parked, when);
    }
  }
}

// Takes a line whose page is there to the L1 and on to the L2.
void Sm::go_on(const ParkedLine& parked, Cycle when) {
  switch (parked.operation) {
    case ParkedLine::Operation::write:
      request(record_of(parked), parked.line, parked.sectors, memory::Op::write, parked.owner, when);
      return;
    case ParkedLine::Operation::reduction:
    case ParkedLine::Operation::atomic:
      l1_.drop(parked.line, parked.sectors);
      request(record_of(parked), parked.line, parked.sectors, memory::Op::atomic,
              parked.owner | (parked.has_result() ? 0 : kReduction), when, parked.rounds);
      return;
    case ParkedLine::Operation::read: {
      const MissingSectors missing = look_up({parked.line, parked.sectors}, statistics_of(parked));
      if (missing.wanted == 0)
        load_arrived(parked.owner, when + spec_.l1.hit_latency);
      else
        wait_for(record_of(parked), parked.line, missing, parked.owner, when);
      return;
    }
  }
}

// Takes an access to the host's memory; nothing of it is kept here.
void Sm::access_remote(const ParkedLine& parked, Cycle when) {
  statistics_of(parked).remote_sectors += std::popcount(parked.sectors);
  std::uint32_t place = 0;
  if (free_remote_.empty()) {
    place = static_cast<std::uint32_t>(remote_.size());
    remote_.emplace_back();
  } else {
    place = free_remote_.back();
    free_remote_.pop_back();
  }
  remote_[place] = parked;
  Request::Kind kind = Request::Kind::remote_atomic;
  if (parked.operation == ParkedLine::Operation::read) kind = Request::Kind::remote_read;
  if (parked.operation == ParkedLine::Operation::write) kind = Request::Kind::remote_write;
  if (parked.has_result()) ++parked_loads_;
  const Cycle leaves = when + spec_.l1.miss_latency;
  translation_.send({parked.line, place, 1, kind, parked.writes(), parked.sectors},
                    std::max<Time>(0, clock_.edge(leaves) - now()));
}

void Sm::remote_done(std::uint32_t place, Cycle cycle) {
  const ParkedLine parked = remote_[place];
  free_remote_.push_back(place);
  if (parked.has_result()) {
    --parked_loads_;
    load_arrived(parked.owner, cycle + spec_.l1.return_latency);
  } else {
    write_done(parked.owner, cycle);
  }
}

}  // namespace manyscale::gpu

// SPDX-License-Identifier: Apache-2.0
// An SM's managed memory: its TLB, pending-translation queue and remote accesses of the host's memory.
#include <algorithm>
#include <bit>

#include "gpu/sm/sm.hpp"

namespace manyscale::gpu {

namespace {

// A TLB entry in the bits of a frame number: whether the page is read-only, whether a write was notified, the
// accesses since the last notification, and its cycle.
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

// Checks the parameters of the TLB; returns whether it blocks during a page fault.
bool Sm::faults_block(const SmTlbSpec& spec) {
  if (spec.faults != "replayable" && spec.faults != "blocking")
    throw SimulationError("page faults of an SM are 'replayable' or 'blocking', not '" + spec.faults + "'");
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

// Whether a look-up at a cycle hits in the TLB; notifies the GMMU of accesses from time to time.
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
    translation_.send({line, 0, entry.used, TranslationRequestKind::used, writes, 0},
                      std::max<Time>(0, clock_.edge(now) - this->now()));
    entry = {entry.read_only, entry.written || writes, 0, now};
  }
  tlb_->fill(line, 0, entry.frame());
  return true;
}

LaunchRecord& Sm::record_of(const PendingAccess& pending) {
  return *warps_[pending.has_result() ? loads_[pending.owner].warp : pending.owner]->record;
}

// Attributes the wait of a load or warp to a page fault.
void Sm::mark_faulted(const PendingAccess& pending) {
  if (pending.has_result())
    loads_[pending.owner].faulted = true;
  else
    warps_[pending.owner]->faulted_at_end = true;
}

// Whether the TLB accepts no access, because of a blocking fault or too many pending translations.
bool Sm::tlb_full() const {
  return (outstanding_faults_ != 0 && blocking_faults_) ||
         (spec_.tlb.outstanding != 0 && accepted_ >= spec_.tlb.outstanding);
}

// Whether a further access stalls in front of the TLB; accesses do not overtake each other.
bool Sm::tlb_stalled() const {
  return !stalled_accesses_.empty() || tlb_full();
}

// Queues an access that missed the TLB at a cycle.
void Sm::queue_for_translation(const PendingAccess& pending, Cycle when) {
  if (pending.has_result()) ++untranslated_loads_;
  if (tlb_stalled()) {
    if (outstanding_faults_ != 0) mark_faulted(pending);
    stalled_accesses_.push_back(pending);
    return;
  }
  request_translation(pending, when);
}

// Adds an access to the pending-translation queue, and requests the translation if it is the first of its
// page.
void Sm::request_translation(const PendingAccess& pending, Cycle when) {
  ++untranslated_lines_;
  ++accepted_;
  ++statistics_of(pending).tlb_misses;
  const auto [entry, is_new] = translations_pending_.entry_of(pending.line);
  PendingTranslations::Page& page = translations_pending_.at(entry);
  page.accesses.push_back(pending);
  if (page.faulted) mark_faulted(pending);
  if (is_new)
    translation_.send({pending.line, entry, 1, TranslationRequestKind::translate, pending.writes(), 0},
                      std::max<Time>(0, clock_.edge(when) - now()));
}

void Sm::translated(const TranslationResponse& answer, std::uint32_t) {
  const Cycle cycle = clock_.cycle_at(now());
  switch (answer.kind) {
    case TranslationResponseKind::faulted: {
      PendingTranslations::Page& page = translations_pending_.at(answer.tag);
      page.faulted = true;
      // What stalls in front of the TLB waits for the page from now on; before, it waited for translations.
      if (outstanding_faults_++ == 0)
        for (const PendingAccess& pending : stalled_accesses_) mark_faulted(pending);
      ++statistics_of(page.accesses.front()).faulted_translations;
      for (const PendingAccess& pending : page.accesses) mark_faulted(pending);
      return;
    }
    case TranslationResponseKind::shootdown:
      taken_.tlb_shootdowns += tlb_->invalidate_range(answer.address, answer.tag * kPageBytes);
      return;
    case TranslationResponseKind::shootdown_all:
      taken_.tlb_shootdowns += tlb_->invalidate_all();
      return;
    case TranslationResponseKind::remote_done:
      remote_done(answer.tag, cycle);
      break;
    case TranslationResponseKind::mapped:
    case TranslationResponseKind::mapped_read_only:
    case TranslationResponseKind::remote:
      page_translated(answer, cycle);
      break;
  }
  make_room(cycle);
}

// Resumes the accesses of a translated page, one each cycle.
void Sm::page_translated(const TranslationResponse& answer, Cycle cycle) {
  if (translations_pending_.at(answer.tag).faulted) --outstanding_faults_;
  const std::vector<PendingAccess> accesses = translations_pending_.take(answer.tag);
  untranslated_lines_ -= static_cast<std::int64_t>(accesses.size());
  if (untranslated_lines_ == 0) accepted_ = 0;
  const bool read_only = answer.kind == TranslationResponseKind::mapped_read_only;
  if (answer.kind != TranslationResponseKind::remote) {
    // The request was the first access's.
    const bool written = accesses.front().writes();
    if (answer.chunk) fill_chunk(answer.address, cycle);
    tlb_->fill(answer.address, 0, Entry{read_only, written, 0, cycle}.frame());
  }
  Cycle at = std::max(cycle, data_stage_.free_at());
  for (const PendingAccess& pending : accesses) {
    if (pending.has_result()) --untranslated_loads_;
    if (read_only && pending.writes() && !accesses.front().writes()) {
      tlb_->invalidate(pending.line);
      queue_for_translation(pending, at);  // a write needs a writable translation
    } else if (answer.kind == TranslationResponseKind::remote) {
      access_remote(pending, at);
    } else {
      if (pending.writes()) find_translation(pending.line, true, at);  // notifies of the first write
      resume_access(pending, at);
    }
    ++at;
  }
  data_stage_.use_until(at);
  release_stalled();
}

// Fills the entries of the other pages of a chunk; existing entries stay.
void Sm::fill_chunk(std::uint64_t address, Cycle cycle) {
  const std::uint64_t first = address / kChunkBytes * kChunkBytes;
  for (std::uint64_t page = first; page < first + kChunkBytes; page += kPageBytes)
    if (page != address && tlb_->find(page, 0) == nullptr)
      tlb_->fill(page, 0, Entry{false, false, 0, cycle}.frame());
}

// Looks up stalled accesses while the TLB accepts them.
void Sm::release_stalled() {
  while (!stalled_accesses_.empty() && !tlb_full()) {
    const PendingAccess pending = stalled_accesses_.front();
    stalled_accesses_.pop_front();
    const Cycle when = data_stage_.free_at() + spec_.tlb.latency;
    data_stage_.use_until(data_stage_.free_at() + 1);
    if (find_translation(pending.line, pending.writes(), when)) {
      accepted_ += untranslated_lines_ != 0;
      if (pending.has_result()) --untranslated_loads_;
      ++statistics_of(pending).tlb_hits;
      resume_access(pending, when);
    } else {
      request_translation(pending, when);
    }
  }
}

// Resumes a translated access at the L1.
void Sm::resume_access(const PendingAccess& pending, Cycle when) {
  switch (pending.operation) {
    case PendingAccess::Operation::write:
      resume_write(pending, memory::Op::write, when);
      return;
    case PendingAccess::Operation::reduction:
      l1_.drop(pending.line, pending.sectors);
      resume_write(pending, memory::Op::atomic, when);
      return;
    case PendingAccess::Operation::atomic:
      l1_.drop(pending.line, pending.sectors);
      request(record_of(pending), pending.line, pending.sectors, memory::Op::atomic, pending.owner, when,
              pending.tag);
      return;
    case PendingAccess::Operation::read: {
      const MissingSectors missing = look_up({pending.line, pending.sectors}, statistics_of(pending));
      if (missing.wanted == 0)
        load_arrived(pending.owner, when + spec_.l1.hit_latency);
      else
        wait_for(record_of(pending), pending.line, missing, pending.owner, when);
      return;
    }
  }
}

// Sends a translated write to the L2; its warp may now leave.
void Sm::resume_write(const PendingAccess& pending, memory::Op op, Cycle when) {
  WarpSlot& slot = *warps_[pending.owner];
  write(*slot.record, {pending.line, pending.sectors, pending.tag}, op, pending.owner, when);
  --slot.unsent_writes;
  if (slot.at == nullptr) finish_if_done(pending.owner, when);
}

// Sends an access to the host's memory; it is not cached.
void Sm::access_remote(const PendingAccess& pending, Cycle when) {
  statistics_of(pending).remote_sectors += std::popcount(pending.sectors);
  std::uint32_t entry = 0;
  if (free_remote_.empty()) {
    entry = static_cast<std::uint32_t>(remote_.size());
    remote_.emplace_back();
  } else {
    entry = free_remote_.back();
    free_remote_.pop_back();
  }
  remote_[entry] = pending;
  TranslationRequestKind kind = TranslationRequestKind::remote_atomic;
  if (pending.operation == PendingAccess::Operation::read) kind = TranslationRequestKind::remote_read;
  if (pending.operation == PendingAccess::Operation::write) kind = TranslationRequestKind::remote_write;
  if (pending.has_result()) ++untranslated_loads_;
  const Cycle leaves = when + spec_.l1.miss_latency;
  translation_.send({pending.line, entry, 1, kind, pending.writes(), pending.sectors},
                    std::max<Time>(0, clock_.edge(leaves) - now()));
}

void Sm::remote_done(std::uint32_t entry, Cycle cycle) {
  const PendingAccess pending = remote_[entry];
  free_remote_.push_back(entry);
  if (pending.has_result()) {
    --untranslated_loads_;
    load_arrived(pending.owner, cycle + spec_.l1.return_latency);
  } else {
    WarpSlot& slot = *warps_[pending.owner];
    --slot.unsent_writes;
    write_done(*slot.record, &slot, pending.owner, cycle);
  }
}

}  // namespace manyscale::gpu

// SPDX-License-Identifier: Apache-2.0
// What an SM does with memory instructions: address generation units, shared memory, the L1 and requests to
// the L2.
#include <algorithm>
#include <bit>

#include "gpu/exec/address_space.hpp"
#include "gpu/sm/sm.hpp"

namespace manyscale::gpu {

using memory::Message;
using ptx::Space;

namespace {

// Where local memory lies among the addresses that L1 and L2 see: words of a warp's lanes beside each other.
constexpr std::uint64_t kLocalBase = std::uint64_t{1} << 52;
constexpr std::uint64_t kLocalPerWarp = std::uint64_t{1} << 24;
constexpr std::uint64_t kSpilledBase = kLocalBase + (std::uint64_t{1} << 40);
// Where constants lie among the addresses of instructions.
constexpr std::uint64_t kConstantBase = std::uint64_t{1} << 52;

bool is_atomic(Kind kind) {
  return kind == Kind::atomic_global || kind == Kind::reduce_global;
}
bool is_local(Kind kind) {
  return kind == Kind::load_local || kind == Kind::store_local;
}
bool is_store(Kind kind) {
  return kind == Kind::store_global || kind == Kind::store_local;
}

PendingAccess::Operation operation_of(Kind kind) {
  using Operation = PendingAccess::Operation;
  if (kind == Kind::atomic_global) return Operation::atomic;
  if (kind == Kind::reduce_global) return Operation::reduction;
  return is_store(kind) ? Operation::write : Operation::read;
}

}  // namespace

void Sm::set_ready(WarpSlot& slot, const SassInstruction& instruction, Cycle when, Stall writer, Pipe pipe,
                   std::uint32_t load, Cycle conflict) {
  if (slot.function->scheduled) {
    if (instruction.control.copies && when != kPending) slot.copied = std::max(slot.copied, when);
    return count(slot, instruction.control.write_counter, when, writer, load,
                 static_cast<std::uint32_t>(conflict));
  }
  const std::uint8_t* registers = slot.function->registers.data() + instruction.first + instruction.reads;
  for (unsigned i = 0; i < instruction.writes; ++i) {
    slot.board->ready[registers[i]] = when;
    slot.board->writer[registers[i]] = writer;
    slot.board->pipe[registers[i]] = pipe;
    if (writer != Stall::wait) slot.board->conflict[registers[i]] = static_cast<std::uint32_t>(conflict);
  }
}

// Passes the sub-core's address generation unit; returns when the access reaches the stage that the sub-cores
// share.
Cycle Sm::enter_memory(SubCore& sub, Cycle now) {
  const Cycle begin = std::max(now, sub.address_free);
  sub.address_free = begin + spec_.address_interval;
  sub.queue[sub.next_in_queue] = begin + 1;
  sub.next_in_queue = (sub.next_in_queue + 1) % sub.queue.size();
  conflict_ = std::max(begin, data_free_) - std::max(begin, data_free_without_);
  return std::max(begin, data_free_);
}

// Keeps the stage that L1, shared memory and constants share busy; `needed` passes would do without
// conflicts.
void Sm::use_data_stage(Cycle begin, Cycle passes, Cycle needed, SmStatistics& statistics) {
  data_free_ = begin + passes;
  data_free_without_ = begin - conflict_ + needed;
  conflict_ += passes - needed;
  statistics.data_cycles += passes;
}

void Sm::access(SubCore& sub, std::uint32_t index, const SassInstruction& instruction, bool executed,
                Cycle now) {
  WarpSlot& slot = *warps_[index];
  if (is_local(instruction.kind) && !instruction.executes)
    return access_spilled(index, instruction, enter_memory(sub, now));
  if (!executed) {  // no lane takes part
    const Cycle done = now + spec_.timing.other.latency;
    set_ready(slot, instruction, done, Stall::wait);
    count(slot, instruction.control.read_counter, done, Stall::wait);
    return;
  }
  const Cycle begin = enter_memory(sub, now);
  count(slot, instruction.control.read_counter, begin + spec_.timing.operand_read, Stall::wait);
  Access& access = *slot.warp->access;
  if (instruction.kind == Kind::load_constant || access.mask == 0)
    return access_constants(index, instruction, access, begin);
  if (instruction.warp_aggregated && access.mask == kAllLanes) access.mask = 1;
  const std::uint64_t first = access.addresses[static_cast<unsigned>(std::countr_zero(access.mask))];
  if (access.space == Space::generic && in_window(first, kSharedWindow)) access.space = Space::shared;
  if (access.space == Space::generic && in_window(first, kLocalWindow)) access.space = Space::local;
  if (access.space == Space::shared) {
    access.bytes = static_cast<std::uint8_t>(access.bytes * instruction.vectorised);
    if (instruction.vectorised > 1)
      for (std::uint64_t& address : access.addresses) address &= ~(std::uint64_t{access.bytes} - 1);
    return access_shared(index, instruction, access, begin);
  }
  if (access.space == Space::local) {
    for (Mask left = access.mask; left != 0; left &= left - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(left));
      std::uint64_t& address = access.addresses[lane];
      const std::uint64_t offset = address % kLocalPerWarp;
      address = kLocalBase + index * kLocalPerWarp * kLanes + offset / 4 * 4 * kLanes + lane * 4 + offset % 4;
    }
    access.bytes = std::min<std::uint8_t>(access.bytes, 4);  // further words are in further rows
  }
  access_global(index, instruction, access, begin);
}

// A value that found no register: a word of all lanes lies together, at a place of its register's own.
void Sm::access_spilled(std::uint32_t index, const SassInstruction& instruction, Cycle begin) {
  Access access;
  access.mask = kAllLanes;
  access.bytes = 4;
  const std::uint64_t number = warps_[index]->function->registers[instruction.first];
  for (unsigned lane = 0; lane < kLanes; ++lane)
    access.addresses[lane] = kSpilledBase + index * kLocalPerWarp + (number * kLanes + lane) * 4;
  access_global(index, instruction, access, begin);
}

// Constants are read one address after the other. Kernel parameters and textures leave no addresses: they
// take the time of a constant that is there.
void Sm::access_constants(std::uint32_t index, const SassInstruction& instruction, const Access& access,
                          Cycle begin) {
  Cycle ready = begin + spec_.constant_latency;
  Cycle passes = 0;
  for (Mask left = access.mask; left != 0; ++passes) {
    const std::uint64_t address = access.addresses[static_cast<unsigned>(std::countr_zero(left))];
    for (Mask rest = left; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(rest));
      if (access.addresses[lane] == address) left &= ~(Mask{1} << lane);
    }
    ready = std::max(ready, begin + passes + constant_latency(address));
  }
  SmStatistics& statistics = warps_[index]->record->statistics;
  if (passes != 0) ++statistics.constant_requests;
  statistics.constant_wavefronts += passes;
  use_data_stage(begin, std::max<Cycle>(1, passes), 1, statistics);
  set_ready(*warps_[index], instruction, ready, Stall::long_scoreboard, Pipe::lsu, 0, conflict_);
}

// Looks a constant up in the SM's constant cache, then in the cache that it shares with instructions.
Cycle Sm::constant_latency(std::uint64_t address) {
  const std::uint64_t line = address / kConstantLine * kConstantLine;
  if (constants_.look_up(line, 1) != 0) return spec_.constant_latency;
  constants_.fill(line, 1);
  const auto wide = static_cast<std::uint64_t>(spec_.instruction_line);
  const std::uint64_t shared_line = kConstantBase + address / wide * wide;
  if (instructions_.look_up(shared_line, 1) != 0) return spec_.constant_l15_latency;
  instructions_.fill(shared_line, 1);
  return spec_.constant_miss_latency;
}

void Sm::access_shared(std::uint32_t index, const SassInstruction& instruction, const Access& access,
                       Cycle begin) {
  const bool atomic = instruction.kind == Kind::atomic_shared;
  const auto [taken, needed] = bank_passes(access, static_cast<unsigned>(spec_.shared_banks), atomic);
  const Cycle passes = taken;
  SmStatistics& statistics = warps_[index]->record->statistics;
  ++statistics.shared_requests;
  statistics.shared_wavefronts += passes;
  (atomic ? statistics.shared_atomic_conflicts : statistics.shared_conflicts) += taken - needed;
  use_data_stage(begin, passes, needed, statistics);
  const Cycle update = atomic ? spec_.shared_latency : 0;
  set_ready(*warps_[index], instruction, begin + spec_.shared_latency + update + passes - 1,
            Stall::short_scoreboard, Pipe::lsu, 0, conflict_);
}

void Sm::access_global(std::uint32_t index, const SassInstruction& instruction, const Access& access,
                       Cycle begin) {
  WarpSlot& slot = *warps_[index];
  coalesce(access, static_cast<std::uint64_t>(spec_.l1.line), lines_);
  SmStatistics& statistics = slot.record->statistics;
  ++statistics.global_requests;
  use_data_stage(begin, lines_.count, lines_.count, statistics);
  const bool at_l2 = is_atomic(instruction.kind);
  const bool local = access.space == Space::local || is_local(instruction.kind);
  count_sectors(access, instruction.kind, local, statistics);
  const Stall why = at_l2 ? Stall::atomic : local ? Stall::local : Stall::long_scoreboard;
  if (is_store(instruction.kind) || instruction.kind == Kind::reduce_global) {
    slot.reduces = at_l2;
    slot.store_conflict = static_cast<std::uint32_t>(conflict_);
  }
  const auto rounds = static_cast<std::uint8_t>(at_l2 ? lanes_of_busiest_word(access) : 0);
  const PendingAccess::Operation operation = operation_of(instruction.kind);
  Cycle translation = 0;
  std::uint32_t load = PendingLines::kEnd;
  std::uint32_t missing_lines = 0;
  // Makes the load, or of others the warp, wait for a line that does not go to the L1 now.
  const auto let_wait = [&](PendingAccess& pending) {
    if (pending.has_result()) {
      if (load == PendingLines::kEnd) load = new_load(index, instruction);
      ++missing_lines;
      pending.owner = load;
    } else {
      ++slot.writes;
      ++writes_under_way_;
    }
  };
  for (unsigned i = 0; i < lines_.count; ++i) {
    const LineAccess& touched = lines_.at[i];
    Cycle when = begin + i;
    if (remote_ranges_ != nullptr && remote_ranges_->contains(touched.line)) [[unlikely]] {
      PendingAccess pending{touched.line, index, touched.sectors, rounds, operation};
      let_wait(pending);
      access_remote(pending, when);
      continue;
    }
    if (managed_ != nullptr && managed_->contains(touched.line)) [[unlikely]] {
      translation = spec_.tlb.latency;
      when += translation;
      PendingAccess pending{touched.line, index, touched.sectors, rounds, operation};
      if (tlb_stalled() || !find_translation(touched.line, pending.writes(), when)) {
        let_wait(pending);
        queue_for_translation(pending, when);
        continue;
      }
      accepted_ += untranslated_lines_ != 0;
      ++statistics.tlb_hits;
    }
    if (is_store(instruction.kind)) {
      ++slot.writes;
      ++writes_under_way_;
      request(*slot.record, touched.line, touched.sectors, memory::Op::write, index, when);
      continue;
    }
    if (at_l2) {
      l1_.drop(touched.line, touched.sectors);
      if (instruction.kind == Kind::reduce_global) {
        ++slot.writes;
        ++writes_under_way_;
        request(*slot.record, touched.line, touched.sectors, memory::Op::atomic, index | kReduction, when,
                rounds);
      } else {
        if (load == PendingLines::kEnd) load = new_load(index, instruction);
        ++missing_lines;
        request(*slot.record, touched.line, touched.sectors, memory::Op::atomic, load, when, rounds);
      }
      continue;
    }
    const MissingSectors missing = look_up(touched, statistics);
    if (missing.wanted == 0) continue;
    if (load == PendingLines::kEnd) load = new_load(index, instruction);
    ++missing_lines;
    wait_for(*slot.record, touched.line, missing, load, when);
  }
  if (load == PendingLines::kEnd) {
    const Cycle latency = spec_.l1.hit_latency + translation;
    set_ready(slot, instruction, begin + latency + lines_.count - 1, why, Pipe::lsu, 0, conflict_);
    return;
  }
  loads_[load].lines = missing_lines;
  loads_[load].conflict = static_cast<std::uint32_t>(conflict_);
  loads_[load].begin = begin;
  ++slot.loads;
  if (instruction.control.copies) {
    loads_[load].copy = slot.next_copy++;
    ++slot.copies_left;
  }
  set_ready(slot, instruction, kPending, why, Pipe::lsu, load, conflict_);
}

// Of an access whose lines are known: its bytes, and the sectors and lines that coalesced ones would touch.
void Sm::count_sectors(const Access& access, Kind kind, bool local, SmStatistics& statistics) const {
  const std::int64_t bytes = std::int64_t{std::popcount(access.mask)} * std::max<unsigned>(access.bytes, 1);
  std::int64_t sectors = 0;
  for (unsigned i = 0; i < lines_.count; ++i) sectors += std::popcount(lines_.at[i].sectors);
  statistics.global_sectors += sectors;
  statistics.global_lines += lines_.count;
  statistics.global_bytes += bytes;
  if (local) {
    ++statistics.local_requests;
    statistics.local_lines += lines_.count;
    if (is_store(kind)) statistics.local_store_sectors += sectors;
  }
  if (local || is_atomic(kind)) {
    statistics.lines_needed += lines_.count;
    return;
  }
  const std::int64_t needed = std::min(sectors, (bytes + 31) / 32);
  (is_store(kind) ? statistics.store_sectors : statistics.load_sectors) += sectors;
  (is_store(kind) ? statistics.store_sectors_needed : statistics.load_sectors_needed) += needed;
  const std::int64_t sectors_of_line = spec_.l1.line / 32;
  statistics.lines_needed +=
      std::min<std::int64_t>(lines_.count, (needed + sectors_of_line - 1) / sectors_of_line);
}

// Looks a line of a load up in the L1.
Sm::MissingSectors Sm::look_up(const LineAccess& touched, SmStatistics& statistics) {
  const std::uint8_t there = l1_.look_up(touched.line, touched.sectors);
  const auto wanted = static_cast<std::uint8_t>(touched.sectors & ~there);
  const std::uint8_t asked = wanted == 0 ? 0 : pending_.not_asked(touched.line, wanted);
  statistics.l1_hits += std::popcount(touched.sectors) - std::popcount(asked);
  statistics.l1_misses += std::popcount(asked);
  return {wanted, asked};
}

// Lets a load wait for sectors, and asks the L2 for those that are not on their way.
void Sm::wait_for(LaunchRecord& record, std::uint64_t line, MissingSectors missing, std::uint32_t load,
                  Cycle when) {
  pending_.wait(line, missing.wanted, missing.asked, load);
  if (missing.asked != 0) request(record, line, missing.asked, memory::Op::read, 0, when);
}

std::uint32_t Sm::new_load(std::uint32_t warp, const SassInstruction& instruction) {
  if (free_loads_.empty()) {
    free_loads_.push_back(static_cast<std::uint32_t>(loads_.size()));
    loads_.push_back({});
  }
  const std::uint32_t id = free_loads_.back();
  free_loads_.pop_back();
  const std::uint8_t* registers =
      warps_[warp]->function->registers.data() + instruction.first + instruction.reads;
  loads_[id] = Load{.warp = warp,
                    .destination = registers,
                    .registers = instruction.writes,
                    .counter = instruction.control.write_counter};
  return id;
}

void Sm::request(LaunchRecord& record, std::uint64_t line, std::uint8_t sectors, memory::Op op,
                 memory::Value value, Cycle when, std::uint8_t rounds) {
  ++record.statistics.l2_requests;
  const Cycle leaves = std::max(when + spec_.l1.miss_latency, request_free_);
  request_free_ = leaves + spec_.l1.request_interval;
  Message message;
  message.address = line;
  message.sectors = sectors;
  message.op = op;
  message.value = value;
  message.tag = rounds;
  message.flags = op == memory::Op::write ? memory::Flag::wants_ack : rounds != 0 ? memory::Flag::rounds : 0;
  message.origin = record.origin;
  message.destination = static_cast<std::uint16_t>(slices_.slice_of(line));
  if (op == memory::Op::atomic) record.count_atomic(message.destination, rounds);
  memory_.send(message, clock_.edge(leaves) - now());
}

void Sm::receive(const Message& message, std::uint32_t) {
  const Cycle cycle = clock_.cycle_at(now());
  const Cycle ready = cycle + spec_.l1.return_latency;
  switch (message.op) {
    case memory::Op::data:
      l1_.fill(message.address, message.sectors);
      pending_.arrive(message.address, message.sectors,
                      [&](std::uint32_t load) { load_arrived(load, ready); });
      break;
    case memory::Op::atomic_result:
      if (message.value & kReduction)
        write_done(static_cast<std::uint32_t>(message.value & ~kReduction), cycle);
      else
        load_arrived(static_cast<std::uint32_t>(message.value), ready);
      break;
    case memory::Op::write_ack:
      write_done(static_cast<std::uint32_t>(message.value), cycle);
      break;
    default:
      throw SimulationError(name() + " got an answer that it did not ask for");
  }
  make_room(cycle);
}

// A line of a store or of an atomic operation without a result is complete.
void Sm::write_done(std::uint32_t index, Cycle cycle) {
  WarpSlot& slot = *warps_[index];
  --writes_under_way_;
  if (--slot.writes != 0) return;
  if (slot.at == nullptr) {
    finish_if_done(index, cycle);
  } else if (slot.at->kind == Kind::fence) {
    find_earliest(index);
    if (earliest(index) != kPending) clock_.wake_at(std::max(earliest(index), cycle));
  }
  slot.faulted_at_end = false;
}

void Sm::load_arrived(std::uint32_t id, Cycle when) {
  Load& load = loads_[id];
  load.ready = when = std::max(load.ready, when);
  if (--load.lines != 0) return;
  WarpSlot& slot = *warps_[load.warp];
  ++slot.record->statistics.missed_loads;
  slot.record->statistics.missed_load_cycles += when - load.begin;
  count_down(slot, load.counter, when, load.faulted, id, load.conflict);
  if (load.copy != kNoCopy) copy_arrived(slot, load.copy, when, load.faulted);
  for (unsigned i = 0; i < load.registers; ++i) {
    slot.board->ready[load.destination[i]] = when;
    if (load.faulted) slot.board->writer[load.destination[i]] = Stall::page_fault;
  }
  const std::uint32_t warp = load.warp;
  free_loads_.push_back(id);
  --slot.loads;
  if (slot.at == nullptr) {
    slot.faulted_at_end |= load.faulted;
    finish_if_done(warp, when);
    return;
  }
  if (earliest(warp) != kPending && slot.at->control.limited == IssueControl::kNone) return;
  find_earliest(warp);
  if (earliest(warp) != kPending) clock_.wake_at(std::max(earliest(warp), clock_.cycle_at(now())));
}

}  // namespace manyscale::gpu

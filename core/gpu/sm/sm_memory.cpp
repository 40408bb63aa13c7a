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

bool is_atomic(InstructionKind kind) {
  return kind == InstructionKind::atomic_global || kind == InstructionKind::reduce_global;
}
bool is_local(InstructionKind kind) {
  return kind == InstructionKind::load_local || kind == InstructionKind::store_local;
}
// Whether the L1's tags are looked up.
bool has_tags(InstructionKind kind) {
  return kind != InstructionKind::load_shared && kind != InstructionKind::store_shared &&
         kind != InstructionKind::atomic_shared && kind != InstructionKind::load_constant;
}
bool is_store(InstructionKind kind) {
  return kind == InstructionKind::store_global || kind == InstructionKind::store_local;
}

PendingAccess::Operation operation_of(InstructionKind kind) {
  using Operation = PendingAccess::Operation;
  if (kind == InstructionKind::atomic_global) return Operation::atomic;
  if (kind == InstructionKind::reduce_global) return Operation::reduction;
  return is_store(kind) ? Operation::write : Operation::read;
}

}  // namespace

void Sm::set_ready(WarpSlot& slot, const SassInstruction& instruction, Cycle when, Stall writer, Pipe pipe,
                   std::uint32_t load, Cycle conflict) {
  const auto added = static_cast<std::uint32_t>(conflict);
  if (slot.function->scheduled) {
    if (instruction.control.copies && when != kPending) slot.counters.copied(when);
    return count(slot, instruction.control.write_counter, {when, writer, load, added});
  }
  const std::uint8_t* registers = slot.function->registers.data() + instruction.first + instruction.reads;
  slot.board->set(registers, instruction.writes, when, writer, pipe, added);
}

// Passes the MIO queue and the sub-core's address generation unit; returns when the LSU, which the sub-cores
// share, takes the instruction.
Cycle Sm::enter_memory(SubCore& sub, InstructionKind kind, Cycle now) {
  const bool global = has_tags(kind) && kind != InstructionKind::texture;
  Cycle ready =
      sub.queue.enter(now, MioUnit::address, global ? spec_.global_interval : spec_.address_interval);
  if (has_tags(kind)) ready = std::max(ready, tags_.free_at());
  const Cycle begin = data_stage_.begin(std::max(ready, lsu_free_));
  lsu_free_ = begin + spec_.lsu_interval;
  sub.queue.leave(begin);
  return begin;
}

// Passes the MIO queue to the XU pipe, or for a shuffle to the stage that moves data between lanes; returns
// when it is there.
Cycle Sm::enter_queue(SubCore& sub, const SassInstruction& instruction, Cycle interval, Cycle now,
                      SmStatistics& statistics) {
  const bool shuffles = instruction.kind == InstructionKind::shuffle;
  Cycle begin = sub.queue.enter(now, shuffles ? MioUnit::shuffle : MioUnit::xu, interval);
  if (shuffles) {
    begin = data_stage_.begin(begin);
    data_stage_.use(begin, 1, 1, statistics);
  }
  sub.queue.leave(begin);
  return begin;
}

void Sm::access(SubCore& sub, std::uint32_t index, const SassInstruction& instruction, bool executed,
                Cycle now) {
  WarpSlot& slot = *warps_[index];
  if (is_local(instruction.kind) && !instruction.executes && !slot.predicated_off)
    return access_spilled(index, instruction, enter_memory(sub, instruction.kind, now));
  if (!executed) {  // no lane takes part
    const Cycle done = now + spec_.timing.other.latency;
    set_ready(slot, instruction, done, Stall::wait);
    count(slot, instruction.control.read_counter, {done, Stall::wait});
    return;
  }
  const Cycle begin = enter_memory(sub, instruction.kind, now);
  count(slot, instruction.control.read_counter, {begin + spec_.timing.operand_read, Stall::wait});
  Access& access = *slot.warp->access;
  if (instruction.kind == InstructionKind::texture)
    return access_texture(index, instruction, access.texture, begin);
  if (instruction.kind == InstructionKind::load_constant || access.mask == 0)
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
  }
  access_global(index, instruction, access, begin);
}

// A value that found no register: a word of all lanes lies together, at an address of its register's own.
void Sm::access_spilled(std::uint32_t index, const SassInstruction& instruction, Cycle begin) {
  Access access;
  access.mask = kAllLanes;
  access.bytes = 4;
  const std::uint64_t number = warps_[index]->function->registers[instruction.first];
  for (unsigned lane = 0; lane < kLanes; ++lane)
    access.addresses[lane] = kSpilledBase + index * kLocalPerWarp + (number * kLanes + lane) * 4;
  access_global(index, instruction, access, begin);
}

// Lets an instruction wait for the lines that are not there.
void Sm::wait_for_load(const GlobalAccess& global, Stall why, Cycle begin) {
  Load& load = loads_[global.load];
  load.lines = global.missing_lines;
  load.conflict = static_cast<std::uint32_t>(data_stage_.conflict());
  load.begin = begin;
  ++global.slot.loads;
  if (global.instruction.control.copies) load.copy = global.slot.counters.begin_copy();
  set_ready(global.slot, global.instruction, kPending, why, Pipe::lsu, global.load, data_stage_.conflict());
}

void Sm::access_shared(std::uint32_t index, const SassInstruction& instruction, const Access& access,
                       Cycle begin) {
  const bool atomic = instruction.kind == InstructionKind::atomic_shared;
  const auto [taken, needed] = bank_passes(access, static_cast<unsigned>(spec_.shared_banks), atomic,
                                           instruction.kind == InstructionKind::load_shared);
  const Cycle passes = taken;
  SmStatistics& statistics = warps_[index]->record->statistics;
  ++statistics.shared_requests;
  statistics.shared_wavefronts += passes;
  (atomic ? statistics.shared_atomic_conflicts : statistics.shared_conflicts) += taken - needed;
  data_stage_.use(begin, passes, needed, statistics);
  const Cycle update = atomic ? spec_.shared_latency : 0;
  set_ready(*warps_[index], instruction, begin + spec_.shared_latency + update + passes - 1,
            Stall::short_scoreboard, Pipe::lsu, 0, data_stage_.conflict());
}

void Sm::access_global(std::uint32_t index, const SassInstruction& instruction, const Access& access,
                       Cycle begin) {
  WarpSlot& slot = *warps_[index];
  const bool local = access.space == Space::local || is_local(instruction.kind);
  Passes passes = bank_passes(access, static_cast<unsigned>(spec_.l1.banks));
  find_lines(access, local);
  SmStatistics& statistics = slot.record->statistics;
  ++statistics.global_requests;
  statistics.global_wavefronts += passes.taken;
  statistics.global_wavefronts_needed += passes.needed;
  data_stage_.use(begin, passes.taken, passes.taken, statistics);
  const bool at_l2 = is_atomic(instruction.kind);
  count_sectors(access, instruction.kind, local, statistics);
  if (is_store(instruction.kind) || instruction.kind == InstructionKind::reduce_global) {
    slot.reduces = at_l2;
    slot.store_conflict = static_cast<std::uint32_t>(data_stage_.conflict());
  }
  GlobalAccess global{
      .slot = slot, .instruction = instruction, .warp = index, .operation = operation_of(instruction.kind)};
  if (at_l2) find_atomic_rounds(access, statistics);
  if (is_store(instruction.kind) && !local) find_partial_sectors(access, lines_);
  const Stall why = at_l2 ? Stall::atomic : local ? Stall::local : Stall::long_scoreboard;
  access_lines(global, why, begin, spec_.l1.hit_latency + passes.taken - 1);
}

// The rounds that each line of an atomic operation takes at the L2.
void Sm::find_atomic_rounds(const Access& access, SmStatistics& statistics) {
  for (unsigned i = 0; i < lines_.count; ++i) {
    const AtomicRounds rounds =
        atomic_rounds(access, lines_.at[i], static_cast<unsigned>(spec_.l1.atomic_width));
    lines_.at[i].tag = static_cast<std::uint8_t>(std::min(rounds.taken, 255U));
    statistics.atomic_conflicts += rounds.conflicts;
  }
}

// The lines that an access touches. Of local memory, words of all lanes lie beside each other, further words
// of a lane in further rows.
void Sm::find_lines(const Access& access, bool local) {
  const auto line_bytes = static_cast<std::uint64_t>(spec_.l1.line);
  if (!local || access.bytes <= 4) return coalesce(access, line_bytes, lines_);
  Access row = access;
  row.bytes = 4;
  coalesce(row, line_bytes, lines_);
  const unsigned first = lines_.count;
  for (unsigned word = 1; word < access.bytes / 4U; ++word)
    for (unsigned i = 0; i < first; ++i)
      lines_.at[lines_.count++] = {lines_.at[i].line + std::uint64_t{word} * kLanes * 4, lines_.at[i].sectors,
                                   0};
}

// Looks up the lines of an access, from `begin` on as the tag stage takes them; `hit` is the latency if all
// are there.
void Sm::access_lines(GlobalAccess& global, Stall why, Cycle begin, Cycle hit) {
  if (lines_.count != 0) tags_.enter(begin, lines_.count);
  for (unsigned i = 0; i < lines_.count; ++i) access_line(global, lines_.at[i], tags_.look_up(i));
  if (global.load != PendingLines::kEnd) return wait_for_load(global, why, begin);
  const Cycle looked_up = lines_.count != 0 ? tags_.look_up(lines_.count - 1) - begin : 0;
  const Cycle latency = std::max(hit, spec_.l1.hit_latency + looked_up) + global.translation;
  set_ready(global.slot, global.instruction, begin + latency, why, Pipe::lsu, 0, data_stage_.conflict());
}

// Makes the load of an access wait for one more line.
std::uint32_t Sm::wait_for_line(GlobalAccess& global) {
  if (global.load == PendingLines::kEnd) global.load = new_load(global.warp, global.instruction);
  ++global.missing_lines;
  return global.load;
}

// Whether a line passes to the L1 at `when`; one that is remote, or whose page is not translated, waits.
bool Sm::pass_translation(GlobalAccess& global, const LineAccess& touched, Cycle& when) {
  const bool remote = remote_ranges_ != nullptr && remote_ranges_->contains(touched.line);
  if (!remote && (managed_ == nullptr || !managed_->contains(touched.line))) [[likely]]
    return true;
  PendingAccess pending{touched.line, global.warp, touched.sectors, touched.tag, global.operation};
  if (!remote) {
    global.translation = spec_.tlb.latency;
    when += global.translation;
    if (!tlb_stalled() && find_translation(touched.line, pending.writes(), when)) {
      accepted_ += untranslated_lines_ != 0;
      ++global.slot.record->statistics.tlb_hits;
      return true;
    }
  }
  if (pending.has_result()) {
    pending.owner = wait_for_line(global);
  } else {
    ++global.slot.writes;
    ++global.slot.unsent_writes;
    ++global.slot.record->unconfirmed_writes;
    ++outstanding_writes_;
  }
  if (remote)
    access_remote(pending, when);
  else
    queue_for_translation(pending, when);
  return false;
}

// One line of an access of global or local memory.
inline void Sm::access_line(GlobalAccess& global, const LineAccess& touched, Cycle when) {
  using Operation = PendingAccess::Operation;
  WarpSlot& slot = global.slot;
  if ((remote_ranges_ != nullptr || managed_ != nullptr) && !pass_translation(global, touched, when)) return;
  if (global.operation == Operation::write) {
    ++slot.writes;
    ++slot.record->unconfirmed_writes;
    ++outstanding_writes_;
    write(*slot.record, touched, memory::Op::write, global.warp, when);
    return;
  }
  if (global.operation != Operation::read) {
    l1_.drop(touched.line, touched.sectors);
    if (global.operation == Operation::reduction) {
      ++slot.writes;
      ++slot.record->unconfirmed_writes;
      ++outstanding_writes_;
      write(*slot.record, touched, memory::Op::atomic, global.warp, when);
    } else {
      request(*slot.record, touched.line, touched.sectors, memory::Op::atomic, wait_for_line(global), when,
              touched.tag);
    }
    return;
  }
  const MissingSectors missing = look_up(touched, slot.record->statistics);
  if (missing.wanted == 0) return;
  wait_for(*slot.record, touched.line, missing, wait_for_line(global), when);
}

// Of an access whose lines are known: its bytes, and the sectors and lines that coalesced ones would touch.
void Sm::count_sectors(const Access& access, InstructionKind kind, bool local,
                       SmStatistics& statistics) const {
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

// Sends a store or an atomic operation without a result to the L2.
void Sm::write(LaunchRecord& record, const LineAccess& touched, memory::Op op, std::uint32_t warp,
               Cycle when) {
  WarpSlot& slot = *warps_[warp];
  const memory::Value value =
      warp | slot.tenant << kSlotBits | (op == memory::Op::atomic ? kReduction : memory::Value{0});
  slot.stores_leave =
      request(record, touched.line, touched.sectors, op, value, when, touched.tag) + spec_.l1.drain_latency;
}

// Sends a request to the L2; returns when it leaves the SM.
Cycle Sm::request(LaunchRecord& record, std::uint64_t line, std::uint8_t sectors, memory::Op op,
                  memory::Value value, Cycle when, std::uint8_t tag) {
  ++record.statistics.l2_requests;
  const Cycle translation = device_tlb_.look_up(line, when);
  if (translation != 0) ++record.statistics.device_tlb_misses;
  const Cycle leaves = std::max(when + spec_.l1.miss_latency, request_free_);
  request_free_ = leaves + spec_.l1.request_interval;
  if (op == memory::Op::write)
    request_free_ = std::max(request_free_, leaves + std::popcount(sectors) * spec_.l1.write_interval);
  Message message;
  message.address = line;
  message.sectors = sectors;
  message.op = op;
  message.value = value;
  message.tag = tag;
  if (op == memory::Op::write)
    message.flags = tag != 0 ? memory::Flag::wants_ack | memory::Flag::partial : memory::Flag::wants_ack;
  if (op == memory::Op::atomic) message.flags = memory::Flag::rounds;
  message.origin = record.origin;
  message.destination = static_cast<std::uint16_t>(slices_.slice_of(line));
  if (op == memory::Op::atomic) record.count_atomic(message.destination, tag);
  // Those behind it do not wait for its translation.
  memory_.send(message, clock_.edge(leaves + translation) - now());
  return leaves + translation;
}

void Sm::receive(const Message& message, std::uint32_t) {
  const Cycle cycle = clock_.cycle_at(now());
  const Cycle ready = cycle + spec_.l1.return_latency;
  switch (message.op) {
    case memory::Op::data:
      if (constant_lines_.lines() != 0)
        constant_lines_.arrive(message.address, message.sectors,
                               [&](std::uint32_t load) { load_arrived(load, cycle); });
      if (!pending_.contains(message.address)) break;
      l1_.fill(message.address, message.sectors);
      pending_.arrive(message.address, message.sectors,
                      [&](std::uint32_t load) { load_arrived(load, ready); });
      break;
    case memory::Op::atomic_result:
      if (message.value & kReduction)
        write_confirmed(message, cycle);
      else
        load_arrived(static_cast<std::uint32_t>(message.value), ready);
      break;
    case memory::Op::write_ack:
      write_confirmed(message, cycle);
      break;
    default:
      throw SimulationError(name() + " got an answer that it did not ask for");
  }
  make_room(cycle);
}

// The L2 has confirmed a line of a store or of an atomic operation without a result. Its warp may have left.
void Sm::write_confirmed(const Message& message, Cycle cycle) {
  const std::uint32_t index = message.value & kSlotMask;
  WarpSlot& slot = *warps_[index];
  const std::uint32_t tenant = (message.value & ~kReduction) >> kSlotBits;
  if (slot.warp == nullptr || slot.tenant != tenant)
    write_done(record_of_origin(message.origin), nullptr, index, cycle);
  else
    write_done(*slot.record, &slot, index, cycle);
}

// A line of a write is complete; `slot` is null where the warp has left.
void Sm::write_done(LaunchRecord& record, WarpSlot* slot, std::uint32_t index, Cycle cycle) {
  --outstanding_writes_;
  if (--record.unconfirmed_writes == 0 && record.incomplete_ctas != 0)
    scheduler_.send({record.launch, 0, std::exchange(record.incomplete_ctas, 0)},
                    std::max<Time>(0, clock_.edge(cycle) - now()));
  if (slot == nullptr) return;
  --slot->writes;
  if (slot->at == nullptr) return finish_if_done(index, cycle);
  if (slot->writes != 0) return;
  if (slot->at->kind == InstructionKind::fence) {
    find_earliest(index);
    if (earliest(index) != kPending) clock_.wake_at(std::max(earliest(index), cycle));
  }
  slot->faulted_at_end = false;
}

void Sm::load_arrived(std::uint32_t id, Cycle when) {
  Load& load = loads_[id];
  load.ready = when = std::max(load.ready, when);
  if (--load.lines != 0) return;
  WarpSlot& slot = *warps_[load.warp];
  ++slot.record->statistics.missed_loads;
  slot.record->statistics.missed_load_cycles += when - load.begin;
  slot.counters.count_down(load.counter, when, load.faulted, id, load.conflict);
  if (load.copy != kNoCopy) slot.counters.copy_arrived(load.copy, when, load.faulted);
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

// SPDX-License-Identifier: Apache-2.0
// What operations need besides the registers: ways to memory, where records go, and why they stopped.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <tuple>

#include "cpu/riscv/block.hpp"
#include "cpu/riscv/interpreter.hpp"
#include "cpu/stream/record_ring.hpp"
#include "cpu/virtual_memory/address_space.hpp"

namespace manyscale::cpu::riscv {

// Pages used lately: from virtual pages to the host's memory. Direct mapped; holds only pages for which the
// access is allowed.
class PageCache {
 public:
  static constexpr std::size_t entries = 1024;
  struct Entry {
    std::uint64_t page = ~std::uint64_t{0};  // virtual page number
    std::uintptr_t to_host = 0;              // to be added to a virtual address
  };

  explicit PageCache(std::uint8_t permission) : permission_(permission) {}

  // The host's address of `bytes` bytes that lie in one page; nullptr if that page is not here.
  std::uint8_t* find(std::uint64_t address, std::uint64_t bytes) const {
    const Entry& entry = entries_[address / page_bytes % entries];
    // The page of the last byte is compared in the entry of the first: an access across pages never matches.
    if (entry.page != (address + bytes - 1) / page_bytes) [[unlikely]]
      return nullptr;
    return reinterpret_cast<std::uint8_t*>(entry.to_host + address);
  }
  // As the caches see an address whose page is here.
  std::uint64_t physical(std::uint64_t address) const {
    return address + to_physical_[address / page_bytes % entries];
  }
  // Takes in the page of an address; false if the access is not allowed.
  bool fill(AddressSpace& memory, std::uint64_t address) {
    std::uint8_t* host = memory.host(address, permission_);
    if (host == nullptr) return false;
    const std::size_t index = address / page_bytes % entries;
    entries_[index] = {address / page_bytes, reinterpret_cast<std::uintptr_t>(host) - address};
    to_physical_[index] = memory.physical(address) - address;
    return true;
  }
  void forget() { entries_.fill({}); }

 private:
  std::array<Entry, entries> entries_{};
  std::array<std::uint64_t, entries> to_physical_{};
  std::uint8_t permission_;
};

// Why operations stopped: for the caller, or for the loop that finds blocks.
enum class Pause : std::uint8_t { find_block, drop_code, caller };

struct Machine {
  explicit Machine(AddressSpace& space) : memory(space) {}

  // Of the block that is being executed: instructions of the budget that were left when it was entered.
  std::int64_t remaining = 0;
  PageCache loads{Permission::read};
  PageCache stores{Permission::write};
  std::tuple<BlockCache<PlainOperation>, BlockCache<RecordingOperation>> blocks;

  // Records.
  RecordRing* ring = nullptr;
  std::uint64_t end = 0;
  Producers* producers = nullptr;
  std::uint64_t space_base = 0;  // what makes a virtual pc one that the caches see
  std::uint16_t thread = 0;

  // Whether floating-point instructions with the dynamic rounding mode must look at it: it is one that the
  // host does not have, or not valid.
  bool unusual_rounding = false;

  Pause pause = Pause::find_block;
  Stop stop = Stop::budget;
  const void* unlinked = nullptr;  // the operation whose target is looked for, to be linked
  std::int64_t budget = 0;         // at the start of the run, for instret
  std::uint64_t cycles = 0, ticks = 0;
  AddressSpace& memory;
  Fault fault;
  Marker marker;

  template <class Op>
  BlockCache<Op>& cache() {
    return std::get<BlockCache<Op>>(blocks);
  }
};

// Whether operations go on by calls in tail position, which needs a compiler that turns them into jumps.
// Otherwise each returns to a loop: gcov counts after a call, too.
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !defined(MANYSCALE_COVERAGE)
inline constexpr bool tail_calls = true;
#else
inline constexpr bool tail_calls = false;
#endif

template <class Op>
[[gnu::always_inline]] inline const Op* enter(const Op* operation, Hart* hart, Machine* machine) {
  if constexpr (tail_calls) {
    return operation->run(operation, hart, machine);
  } else {
    return operation;
  }
}

template <class Op>
[[gnu::always_inline]] inline const Op* next(const Op* operation, Hart* hart, Machine* machine) {
  return enter(operation + 1, hart, machine);
}

// Stops before this operation's instruction.
template <class Op>
[[gnu::cold, gnu::noinline]] const Op* stop_before(const Op* op, Hart* hart, Machine* m, Stop why) {
  m->remaining -= op->done - 1;
  m->pause = Pause::caller;
  m->stop = why;
  hart->pc = op->pc;
  return nullptr;
}

// The bits at a pc of code that was decoded, for messages.
inline std::uint32_t fetch_again(AddressSpace& memory, std::uint64_t pc) {
  std::uint32_t bits = 0;
  for (unsigned half = 0; half < 4; half += 2) {
    const std::uint8_t* host = memory.host(pc + half, Permission::execute);
    if (host == nullptr) break;
    std::uint16_t piece = 0;
    std::memcpy(&piece, host, 2);
    bits |= std::uint32_t{piece} << 8 * half;
    if ((bits & 3) != 3) break;
  }
  return bits;
}

template <class Op>
[[gnu::cold, gnu::noinline]] const Op* fault(const Op* op, Hart* hart, Machine* m, Fault::Cause cause,
                                             std::uint64_t address) {
  const bool by_access = cause == Fault::Cause::load || cause == Fault::Cause::store;
  if (by_access && m->memory.exhausted()) cause = Fault::Cause::exhausted;
  m->fault = {cause, address, fetch_again(m->memory, op->pc)};
  return stop_before(op, hart, m, Stop::fault);
}

// Leaves a block for one that is not known, or does not fit in the budget.
template <class Op>
[[gnu::noinline]] const Op* find_block(const Op* op, Hart* hart, Machine* m, std::uint64_t target,
                                       bool link) {
  m->remaining -= op->done;
  m->pause = Pause::find_block;
  m->unlinked = link ? op : nullptr;
  hart->pc = target;
  return nullptr;
}

// Leaves a block for the one at this operation's target.
template <class Op>
[[gnu::always_inline]] inline const Op* follow_link(const Op* op, Hart* hart, Machine* m) {
  const Block<Op>* block = op->link;
  const std::int64_t remaining = m->remaining - op->done;
  if (remaining < block->length) [[unlikely]] {
    return find_block(op, hart, m, op->pc + static_cast<std::int64_t>(op->immediate), true);
  }
  m->remaining = remaining;
  return enter(block->operations, hart, m);
}

// Writes a record, except for what only a few kinds have.
[[gnu::always_inline]] inline Record& write_record(const RecordingOperation* op, Machine* m) {
  Producers& producers = *m->producers;
  const std::uint64_t number = ++producers.number;  // of this record, plus one
  auto distance = [&](std::uint8_t source) -> std::uint16_t {
    const std::uint64_t writer = producers.last_writer[source];
    const std::uint64_t back = number - writer;
    return writer != 0 && back <= Record::furthest_producer ? static_cast<std::uint16_t>(back) : 0;
  };
  const Note& note = op->note;
  Record record;
  record.pc = op->pc | m->space_base;
  record.producers = {distance(note.sources[0]), distance(note.sources[1]), distance(note.sources[2])};
  record.kind = note.kind;
  record.flags = note.flags;
  record.size = note.size;
  record.format = note.format;
  record.thread = m->thread;
  producers.last_writer[note.destination] = number;
  producers.last_writer[0] = 0;
  return (*m->ring)[m->end++] = record;
}

// A record of an instruction that touches no memory and goes on behind itself.
template <class Op>
[[gnu::always_inline]] inline void note(const Op* op, Machine* m) {
  if constexpr (Op::records) write_record(op, m);
}

template <class Op>
[[gnu::always_inline]] inline void note_access(const Op* op, Machine* m, std::uint64_t physical) {
  if constexpr (Op::records) write_record(op, m).address = physical;
}

// Of control flow: where it goes, and whether that was a choice.
template <class Op>
[[gnu::always_inline]] inline void note_jump(const Op* op, Machine* m, std::uint64_t target, bool taken) {
  if constexpr (Op::records) {
    Record& record = write_record(op, m);
    record.address = target | m->space_base;
    if (taken) record.flags |= Trait::taken;
  }
}

}  // namespace manyscale::cpu::riscv

// SPDX-License-Identifier: Apache-2.0
// An instruction decoded once, to be executed many times: one cache line with everything its handler needs.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace manyscale::gpu {

inline constexpr unsigned kLanes = 32;
using Mask = std::uint32_t;  // one bit per lane
inline constexpr Mask kAllLanes = ~Mask{0};

class Warp;
struct Op;
using Handler = void (*)(Warp&, const Op&);

// Where an operand's 32 lanes lie: the byte offset from one of the bases of a warp, and which base in the two
// lowest bits. A value of n bytes takes 32 * n bytes, a predicate a Mask. While a program is being decoded a
// slot names a register that has no offset yet.
using Slot = std::uint32_t;
enum class Base : std::uint32_t { frame, constants, warp, unplaced };
inline constexpr Slot kNoSlot = ~Slot{0};

constexpr Slot make_slot(Base base, std::uint32_t offset) {
  return offset | static_cast<std::uint32_t>(base);
}
constexpr Slot unplaced(std::uint32_t register_id) {
  return register_id << 2 | 3;
}

// What the instruction does to the flow of a warp. Only `next` is run by its handler alone.
enum class Flow : std::uint8_t {
  next,
  join,           // not an instruction: lanes that went separate ways meet here
  branch,         // target in aux
  branch_table,   // index in src[0], table in aux
  call,           // callee in aux
  call_indirect,  // address in src[0]
  ret,
  exit,          // of lanes for which the predicate in src[0] holds, if there is one; flags: it is negated
  barrier,       // of the CTA: the handler says whether the lanes must wait
  warp_sync,     // the handler runs when all lanes of the member mask in src[3] are here
  warp_barrier,  // like warp_sync, but lanes may be at different instructions
  yield,         // the handler runs and others may be worth running first (nanosleep, a failed wait)
  // Of SASS:
  branch_if,            // target in aux, taken where the predicate in src[0] holds too; flags: it is negated
  branch_if_divergent,  // target in aux, taken by all unless the lanes of the mask in src[0] are here and
                        // pass the guard; flags: taken if they do
  jump,               // to the address in src[0], two words, + immediate; flags: counted from the code window
  converge,           // waits for all lanes that the convergence barrier in src[3] names
  break_convergence,  // lanes leave the convergence barrier in src[3]: those who wait there may go on
};

// Which part of the hardware an instruction belongs to.
enum class Class : std::uint8_t {
  integer,
  logic,
  multiply,
  fp16,
  fp32,
  fp64,
  special_function,
  convert,
  move,
  compare,
  tensor,
  load,
  store,
  atomic,
  texture,
  warp,
  barrier,
  fence,
  branch,
  other,
};

struct alignas(64) Op {
  Handler handler = nullptr;
  Slot dst = kNoSlot;
  Slot dst2 = kNoSlot;  // the second result: q of p|q, the predicate of a shuffle
  std::array<Slot, 4> src{kNoSlot, kNoSlot, kNoSlot, kNoSlot};
  std::int64_t immediate = 0;  // added to an address; or what the handler wants
  std::uint32_t aux = 0;       // a branch's target; or the start of the operand list in Code::slots
  Slot guard = kNoSlot;        // the predicate that lets lanes take part
  std::uint32_t info = 0;      // index into Code::infos
  Flow flow = Flow::next;
  bool guard_negated = false;
  std::uint8_t bytes = 0;  // of one element in memory
  std::uint8_t count = 0;  // elements of a vector access, slots in the operand list
  std::uint8_t flags = 0;  // the two highest as below, the others as the handler wants
};
// Other CTAs can see when this is executed (a lock, a flag, a text); or only the program that reads its
// result can.
inline constexpr std::uint8_t kOrdered = 0x80;
inline constexpr std::uint8_t kOrderedIfRead = 0x40;
static_assert(sizeof(Op) == 64);

}  // namespace manyscale::gpu

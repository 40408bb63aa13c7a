// SPDX-License-Identifier: Apache-2.0
// Barriers of a CTA and fences, as PTX and SASS have them.
#pragma once
#include "gpu/exec/op.hpp"

namespace manyscale::gpu {

// How a barrier reduces a predicate, in the lowest bits of Op::flags, and more of them.
enum class BarrierReduction : std::uint8_t { none, all, any, count };
inline constexpr std::uint8_t kBarrierReduction = 3;
inline constexpr std::uint8_t kBarrierNegated = 4;
inline constexpr std::uint8_t kBarrierKeepsResult = 8;  // the warp keeps it until it is asked for
// src[0] holds both, as SASS has them: the barrier in the lowest bits, the threads from bit 16 on.
inline constexpr std::uint8_t kBarrierPacked = 16;

// src[0]: which barrier; src[1]: how many threads, kNoSlot for all; src[2]: a predicate to reduce.
void wait_at_barrier(Warp& warp, const Op& op);
void arrive_at_barrier(Warp& warp, const Op& op);

// Accesses of a warp happen in order and are seen by all at once: a fence has nothing left to do, but a
// program may rely on the order it makes.
void memory_fence(Warp& warp, const Op& op);

}  // namespace manyscale::gpu

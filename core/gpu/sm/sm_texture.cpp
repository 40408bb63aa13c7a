// SPDX-License-Identifier: Apache-2.0
// What an SM does with textures and constants.
#include <algorithm>
#include <bit>

#include "gpu/sm/sm.hpp"

namespace manyscale::gpu {

// Constants are read one address after the other. Kernel parameters leave no addresses: they take the time of
// a constant that is there.
void Sm::access_constants(std::uint32_t index, const SassInstruction& instruction, const Access& access,
                          Cycle begin) {
  WarpSlot& slot = *warps_[index];
  GlobalAccess missing{.slot = slot, .instruction = instruction, .warp = index};
  const auto line_bytes = static_cast<std::uint64_t>(spec_.l1.line);
  const auto all = static_cast<std::uint8_t>((1U << line_bytes / 32) - 1);
  Cycle ready = begin + constants_.hit_latency();
  Cycle passes = 0;
  for (Mask left = access.mask; left != 0; ++passes) {
    const std::uint64_t address = access.addresses[static_cast<unsigned>(std::countr_zero(left))];
    for (Mask rest = left; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(rest));
      if (access.addresses[lane] == address) left &= ~(Mask{1} << lane);
    }
    const ConstantCache::Found found = constants_.look_up(address, instructions_);
    ready = std::max(ready, begin + passes + found.latency);
    const std::uint64_t line = address / line_bytes * line_bytes;
    const bool pending = constant_lines_.contains(line);
    if (!found.missed && !pending) continue;
    constant_lines_.wait(line, all, all, wait_for_line(missing));
    // The request leaves when both caches have been looked up; request() adds what the L1 takes.
    if (!pending)
      request(*slot.record, line, all, memory::Op::read, 0,
              begin + passes + found.latency - spec_.l1.miss_latency);
  }
  SmStatistics& statistics = slot.record->statistics;
  if (passes != 0) ++statistics.constant_requests;
  statistics.constant_wavefronts += passes;
  data_stage_.use(begin, std::max<Cycle>(1, passes), 1, statistics);
  if (missing.load != PendingLines::kEnd) return wait_for_load(missing, Stall::long_scoreboard, begin);
  set_ready(slot, instruction, ready, Stall::long_scoreboard, Pipe::lsu, 0, data_stage_.conflict());
}

// A texture instruction: texture units take some lanes in a cycle, as long as each needs no more than 16 B of
// texels; what they read passes the L1.
void Sm::access_texture(std::uint32_t index, const SassInstruction& instruction,
                        const TextureFootprint& texture, Cycle begin) {
  constexpr unsigned kLaneBytes = 16;
  WarpSlot& slot = *warps_[index];
  const auto units = static_cast<unsigned>(spec_.texture_units);
  unsigned groups = 0;
  for (unsigned first = 0; first < kLanes; first += units)
    groups += (slot.warp->mask >> first & kAllLanes >> (kLanes - units)) != 0;
  const Cycle passes = std::max(1U, (texture.lane_bytes + kLaneBytes - 1) / kLaneBytes);
  const Cycle busy = std::max<Cycle>(1, groups * passes);
  coalesce(texture, static_cast<std::uint64_t>(spec_.l1.line), lines_);
  SmStatistics& statistics = slot.record->statistics;
  ++statistics.texture_requests;
  statistics.texture_cycles += busy;
  for (unsigned i = 0; i < lines_.count; ++i)
    statistics.texture_sectors += std::popcount(lines_.at[i].sectors);
  const Cycle entered = std::max(begin, texture_free_);
  texture_free_ = entered + busy;
  GlobalAccess global{.slot = slot, .instruction = instruction, .warp = index};
  access_lines(global, Stall::long_scoreboard, entered, spec_.texture_latency + busy - 1);
}

}  // namespace manyscale::gpu

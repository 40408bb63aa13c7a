// SPDX-License-Identifier: Apache-2.0
// Issue ports of instructions that wait for the same result: when it is there, they all could issue at once,
// but have only so many ports. Ports are assigned to them in program order.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace manyscale::cpu {

class PortBursts {
 public:
  // What waits for a result is less than so many instructions behind it.
  explicit PortBursts(std::uint64_t distance) : bursts_(std::bit_ceil(distance)), mask_(bursts_.size() - 1) {}

  void clear() {
    for (Burst& burst : bursts_) burst.position = none;
  }
  // Takes one of the ports for an instruction that could issue `delay` cycles after the result at `position`;
  // returns after how many it does. What is further away than is looked at issues when it could.
  std::uint32_t take(std::uint64_t position, std::uint32_t delay, std::uint32_t ports) {
    Burst& burst = bursts_[position & mask_];
    if (burst.position != position) burst = {position, {}};
    for (std::uint32_t cycle = delay; cycle < cycles; ++cycle) {
      const std::uint32_t free = ports & ~burst.taken[cycle];
      if (free == 0) continue;
      burst.taken[cycle] |= free & (~free + 1);
      return cycle;
    }
    return delay;
  }

 private:
  static constexpr std::uint32_t cycles = 64;
  static constexpr std::uint64_t none = ~std::uint64_t{0};
  struct Burst {
    std::uint64_t position = none;
    std::array<std::uint32_t, cycles> taken{};  // ports in each cycle after the result
  };

  std::vector<Burst> bursts_;
  std::size_t mask_;
};

}  // namespace manyscale::cpu

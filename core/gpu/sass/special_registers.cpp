// SPDX-License-Identifier: Apache-2.0
#include "gpu/sass/special_registers.hpp"

namespace manyscale::sass {

std::string special_register_name(unsigned number) {
  for (const SpecialRegister& known : kSpecialRegisters) {
    if (known.number == number) {
      return std::string{known.name};
    }
  }
  // Sixteen registers hold performance counters: PM0, PM_HI0, PM1, … and the snapshots of them.
  constexpr unsigned kFirstCounter = 100;
  constexpr unsigned kFirstSnapshot = 116;
  constexpr unsigned kLastSnapshot = 131;
  if (number >= kFirstCounter && number <= kLastSnapshot) {
    const bool snapshot = number >= kFirstSnapshot;
    const unsigned counter = number - (snapshot ? kFirstSnapshot : kFirstCounter);
    return std::string{snapshot ? "SR_SNAP_PM" : "SR_PM"} + (counter % 2 != 0 ? "_HI" : "") +
           std::to_string(counter / 2);
  }
  return "SR" + std::to_string(number);
}

}  // namespace manyscale::sass

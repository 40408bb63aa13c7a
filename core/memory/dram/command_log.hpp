// SPDX-License-Identifier: Apache-2.0
// What passed on the command bus, for tests and for the eye.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/time.hpp"

namespace manyscale::memory {

enum class DramCommand : std::uint8_t {
  activate,
  precharge,
  precharge_all,
  read,
  read_precharge,
  write,
  write_precharge,
  refresh,
  refresh_bank
};

inline constexpr std::array<std::string_view, 9> dram_command_names{"ACT", "PRE", "PREA", "RD",   "RDA",
                                                                    "WR",  "WRA", "REF",  "REFSB"};

// One command; bank group, bank, row and column are -1 where the command has none.
struct DramCommandRecord {
  Cycle cycle;
  DramCommand command;
  std::int16_t rank;
  std::int16_t bank_group;
  std::int16_t bank;  // within the bank group
  std::int32_t row;
  std::int32_t column;  // in bursts
};

using CommandLog = std::vector<DramCommandRecord>;

}  // namespace manyscale::memory

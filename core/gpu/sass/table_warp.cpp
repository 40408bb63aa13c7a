// SPDX-License-Identifier: Apache-2.0
// Instructions by which the lanes of a warp exchange values.
#include "gpu/sass/table.hpp"

namespace manyscale::sass {

std::vector<Row> warp_rows() {
  const std::vector<ModifierField> shuffle = {choice(58, 2, {"IDX", "UP", "DOWN", "BFLY"})};
  const OperandField found = predicate(81).written();
  return {
      {"SHFL", 0x189, form(1), shuffle, {found, destination(), general(24), general(32), general(64)}},
      {"SHFL", 0x189, form(2), shuffle, {found, destination(), general(24), general(32), number(40, 13)}},
      {"SHFL", 0x189, form(4), shuffle, {found, destination(), general(24), number(53, 5), general(64)}},
      {"SHFL", 0x189, form(7), shuffle, {found, destination(), general(24), number(53, 5), number(40, 13)}},
      {"VOTE",
       0x006,
       form(4),
       {choice(72, 2, {"ALL", "ANY", "EQ"})},
       {destination().hidden_when_nothing(), found, predicate(87, 90)}},
      {"MATCH",
       0x1a1,
       form(1),
       {choice(79, 1, {"ALL", "ANY"}), bit(73, "U64")},
       {found.hidden_when_nothing().when(79, 1, 1), found.when(79, 1, 0), destination(), general(24)}},
  };
}

}  // namespace manyscale::sass

// SPDX-License-Identifier: Apache-2.0
// Instructions that move, select and read special registers.
#include "gpu/sass/table.hpp"

namespace manyscale::sass {

std::vector<Row> move_rows() {
  return {
      {"MOV", 0x002, kTwoSources, {}, {destination(), wide(), number(72, 4).shown_unless(72, 4, 15)}},
      {"SEL", 0x007, kTwoSources, {}, {destination(), general(24), wide(), predicate(87, 90)}},
      {"CS2R", 0x005, form(4), {clear_bit(80, "32")}, {destination(), special(72)}},
      {"S2R", 0x119, form(4), {}, {destination(), special(72)}},
      {"LEPC", 0x14e, form(1), {}, {destination()}},
      {"LEPC", 0x14e, form(4), {}, {destination(), target(24, 58)}, 90},
      {"MOVM", 0x03a, form(1), {always("16"), always("MT88")}, {destination(), general(24)}},
  };
}

}  // namespace manyscale::sass

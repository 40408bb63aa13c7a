// SPDX-License-Identifier: Apache-2.0
// Matrix multiply-accumulate instructions.
#include "gpu/sass/table.hpp"

namespace manyscale::sass {

std::vector<Row> tensor_rows() {
  const OperandField a = general(24).suffix(choice(73, 1, {"ROW", "COL"}));
  const OperandField b = general(32).suffix(choice(74, 1, {"ROW", "COL"}));
  const OperandField c = general(64);
  const ModifierField rounding = choice(78, 2, {"", "RM", "RP", "RZ"});
  return {
      {"HMMA",
       0x036,
       form(1),
       {always("884"), choice(76, 1, {"F16", "F32"}), choice(78, 1, {"F16", "F32"}),
        choice(79, 2, {"STEP0", "STEP1", "STEP2", "STEP3"})},
       {destination(), a, b, c}},
      {"HMMA",
       0x03c,
       form(1),
       {choice(75, 1, {"1688", "16816"}).when(78, 1, 0), choice(75, 1, {"1684", "?"}).when(78, 1, 1),
        choice(76, 1, {"F16", "F32"}), choice(82, 2, {"", "BF16", "TF32"})},
       {destination(), general(24), general(32), c}},
      {"IMMA",
       0x037,
       form(1),
       {choice(75, 1, {"8816", "?"}).when(85, 2, 0), choice(75, 1, {"8832", "?"}).when(85, 2, 1),
        choice(75, 1, {"16816", "16832"}).when(85, 2, 2), choice(75, 1, {"16864", "?"}).when(85, 2, 3),
        choice(76, 1, {"U8", "S8"}).when(83, 1, 0), choice(76, 1, {"U4", "S4"}).when(83, 1, 1),
        choice(78, 1, {"U8", "S8"}).when(84, 1, 0), choice(78, 1, {"U4", "S4"}).when(84, 1, 1),
        bit(82, "SAT")},
       {destination(), a, b, c}},
      {"BMMA",
       0x03d,
       form(1),
       {choice(75, 2, {"88128", "168128", "168256"}), choice(78, 1, {"XOR", "AND"}), bit(80, "POPC")},
       {destination(), a, b, c},
       75},
      {"DMMA",
       0x03f,
       form(1),
       {always("884"), rounding},
       {destination(), general(24), general(32), c},
       80,
       89},
      {"DMMA",
       0x03f,
       form(1),
       {choice(76, 2, {"8x8x4", "16x8x4", "16x8x8", "16x8x16"}), rounding},
       {destination(), general(24), general(32), c},
       90},
  };
}

}  // namespace manyscale::sass

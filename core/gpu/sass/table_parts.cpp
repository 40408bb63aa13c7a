// SPDX-License-Identifier: Apache-2.0
#include "gpu/sass/table_parts.hpp"

namespace manyscale::sass {

ModifierField access_size() {
  return choice(73, 3, {"U8", "S8", "U16", "S16", "", "64", "128", "U.128"});
}

ModifierField eviction() {
  return choice(84, 3, {"EF", "", "EL", "LU", "EU", "NA"});
}

ModifierField cache_hint() {
  return choice(68, 2, {"", "LTC64B", "LTC128B", "LTC256B"}).when(0, 9, 0x181);
}

std::vector<ModifierField> memory_order() {
  return {choice(79, 2, {"CONSTANT", "", "STRONG", "MMIO"}).on(70, 75),
          choice(77, 2, {"CTA", "SM", "GPU", "SYS"}).on(70, 75),
          choice(77, 4,
                 {"", "?", "?", "?", "CONSTANT", "STRONG", "?", "STRONG", "?", "?", "STRONG", "?", "MMIO",
                  "?", "?", "?"})
              .on(80),
          choice(77, 4, {"", "?", "?", "?", "", "SM", "?", "GPU", "?", "?", "SYS", "?", "SYS", "?", "?", "?"})
              .on(80)};
}

}  // namespace manyscale::sass

// SPDX-License-Identifier: Apache-2.0
// Fields that memory instructions of several tables share.
#pragma once
#include <vector>

#include "gpu/sass/table.hpp"

namespace manyscale::sass {

// U8, S8, U16, S16, nothing for 32 bits, 64, 128.
ModifierField access_size();
ModifierField eviction();
ModifierField cache_hint();
// The kind of order and who sees it: words like STRONG, GPU, SYS.
std::vector<ModifierField> memory_order();

inline void append(std::vector<ModifierField>& fields, const std::vector<ModifierField>& more) {
  fields.insert(fields.end(), more.begin(), more.end());
}

}  // namespace manyscale::sass

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>

#include "gpu/sass/cubin.hpp"

namespace manyscale::sass {

// Gives each function its lines of source and of PTX, as the sections .debug_line and .nv_debug_line_sass
// (DWARF 2 to 4) say. `starts` are the relocations of these sections: they name the function that a sequence
// of lines begins with. A table that cannot be read is as good as none.
void read_lines(Cubin& cubin, std::span<const CubinRelocation> starts);

}  // namespace manyscale::sass

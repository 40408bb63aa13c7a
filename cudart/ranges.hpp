// SPDX-License-Identifier: Apache-2.0
// NVTX ranges around what a program launches and copies.
#pragma once

namespace manyscale::cudart {

// Tells the server which ranges this thread is in, if they have changed since the last time.
void announce_ranges();

}  // namespace manyscale::cudart

// SPDX-License-Identifier: Apache-2.0
// Functions of NVML for what a simulated GPU does not have: each returns NVML_ERROR_NOT_SUPPORTED, which
// programs expect of many functions, so nothing is said. Functions that are defined elsewhere override these
// weak ones.
#define FUNCTION(symbol)                                               \
  extern "C" [[gnu::weak, gnu::section("unsupported")]] int symbol() { \
    constexpr int not_supported = 3;                                   \
    return not_supported;                                              \
  }
#include "functions.inc"

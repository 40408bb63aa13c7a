// SPDX-License-Identifier: Apache-2.0
// What programs of the driver alone share: its functions, without the toolkit's headers, and checks.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define EXPECT(condition)                                                                 \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      std::fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                                       \
    }                                                                                     \
  } while (false)
#define GIVES(result, call)                                                           \
  do {                                                                                \
    const int got_ = (call);                                                          \
    if (got_ != (result)) {                                                           \
      std::fprintf(stderr, "%s:%d: %d instead of %d: %s\n", __FILE__, __LINE__, got_, \
                   static_cast<int>(result), #call);                                  \
      std::exit(1);                                                                   \
    }                                                                                 \
  } while (false)
#define MUST(call) GIVES(0, call)

// Any numbers and pointers; sizes are written as std::size_t, since there is nothing that would convert them.
#define FUNCTION(name) extern "C" int name(...);

using Address = std::uint64_t;
using Size = std::size_t;

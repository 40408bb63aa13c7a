// SPDX-License-Identifier: Apache-2.0
// Loaded before the interpreter's libraries (LD_PRELOAD), so that a test in Python can let allocations of the
// core fail.
#include "../core/failing_new.hpp"

extern "C" void fail_from(std::int64_t first, int only_one) {
  manyscale::test::fail_from(first, only_one != 0);
}
extern "C" int count_allocations(int wanted) {
  return manyscale::test::counts.exchange(wanted != 0) ? 1 : 0;
}
extern "C" std::int64_t fail_none() {
  return manyscale::test::fail_none();
}

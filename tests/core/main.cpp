// SPDX-License-Identifier: Apache-2.0
// The main of every program of this folder: runs the test cases whose names hold one of the arguments, or
// all. An exception fails its test case, and so does a test case that checks nothing.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>

#include "test_checks.hpp"

using namespace manyscale::test;

namespace {

bool is_chosen(std::string_view name, int count, char** words) {
  for (int i = 1; i < count; ++i) {
    if (name.find(words[i]) != std::string_view::npos) return true;
  }
  return count < 2;
}

// Whether it passed.
bool run(const TestCase& test_case) {
  const std::int64_t failed_before = failed, before = passed + failed + skipped;
  try {
    test_case.run();
  } catch (const std::exception& error) {
    check(false, std::string("an exception: ") + error.what());
  }
  if (passed + failed + skipped == before) check(false, "nothing was checked");
  return failed == failed_before;
}

}  // namespace

int main(int count, char** words) {
  int run_cases = 0;
  for (const TestCase& test_case : test_cases()) {
    if (!is_chosen(test_case.name, count, words)) continue;
    ++run_cases;
    if (!run(test_case)) std::fprintf(stderr, "in %s\n", test_case.name);
  }
  std::printf("%d of %zu test cases: %lld checks passed, %lld failed\n", run_cases, test_cases().size(),
              static_cast<long long>(passed), static_cast<long long>(failed));
  return failed == 0 && run_cases > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

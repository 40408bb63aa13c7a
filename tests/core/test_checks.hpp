// SPDX-License-Identifier: Apache-2.0
// Counting checks, for test programs without a framework.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>

namespace manyscale::test {

inline int passed = 0;
inline int failed = 0;

inline void check(bool condition, const std::string& what) {
  ++(condition ? passed : failed);
  if (!condition) std::fprintf(stderr, "failed: %s\n", what.c_str());
}

inline void check_equal(std::int64_t found, std::int64_t expected, const std::string& what) {
  check(found == expected, what + ": " + std::to_string(found) + " instead of " + std::to_string(expected));
}

inline void check_between(double found, double least, double most, const std::string& what) {
  check(found >= least && found <= most, what + ": " + std::to_string(found) + " is not between " +
                                             std::to_string(least) + " and " + std::to_string(most));
}

template <class Error = std::exception>
void check_refused(const std::function<void()>& action, const std::string& word) {
  try {
    action();
    check(false, "should be refused, with the word '" + word + "'");
  } catch (const Error& error) {
    check(std::string(error.what()).find(word) != std::string::npos,
          "'" + word + "' should be in: " + std::string(error.what()));
  }
}

inline int finish() {
  std::printf("%d checks passed, %d failed\n", passed, failed);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace manyscale::test

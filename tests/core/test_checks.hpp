// SPDX-License-Identifier: Apache-2.0
// Test cases that register themselves, and checks that are counted. A new test case is a definition,
// `TEST(its_name) {`, and no more: the main of every program (main.cpp) runs all that there are.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace manyscale::test {

struct TestCase {
  const char* name;
  void (*run)();
};

// In the order of their definitions.
inline std::vector<TestCase>& test_cases() {
  static std::vector<TestCase> all;
  return all;
}

struct Registration {
  Registration(const char* name, void (*run)()) { test_cases().push_back({name, run}); }
};

inline std::int64_t passed = 0;
inline std::int64_t failed = 0;
inline std::int64_t skipped = 0;

// A test case that cannot run on this host says why and returns.
inline void skip(const char* reason) {
  ++skipped;
  std::printf("skipped: %s\n", reason);
}

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

}  // namespace manyscale::test

#define TEST(name)                                                               \
  static void name();                                                            \
  static const ::manyscale::test::Registration name##_registration(#name, name); \
  static void name()

// SPDX-License-Identifier: Apache-2.0
// Exceptions: through many frames, with destructors on the way, thrown again, from threads of control that
// never return.
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "programs.hpp"

namespace {

int alive = 0;

struct Guard {
  Guard() { ++alive; }
  ~Guard() { --alive; }
};

struct Special : std::runtime_error {
  int depth;
  explicit Special(int at) : std::runtime_error("special at " + std::to_string(at)), depth(at) {}
};

[[gnu::noinline]] int fall(int depth, int kind) {
  Guard guard;
  std::vector<int> held(static_cast<std::size_t>(depth) + 1, depth);
  if (depth == 0) {
    switch (kind) {
      case 0:
        throw 42;
      case 1:
        throw Special(alive);
      case 2:
        throw std::string("text");
      case 3:
        return std::stoi("no number");
      default:
        return static_cast<int>(std::vector<int>(3).at(7));
    }
  }
  try {
    return fall(depth - 1, kind) + held.back();
  } catch (const Special& special) {
    if (depth == special.depth / 2) throw std::logic_error("changed");
    throw;
  }
}

}  // namespace

int run_exceptions(int argc, char** argv) {
  for (int kind = 0; kind < 5; ++kind) {
    try {
      std::printf("%d\n", fall(10, kind));
    } catch (int number) {
      std::printf("int %d\n", number);
    } catch (const std::string& text) {
      std::printf("string %s\n", text.c_str());
    } catch (const std::out_of_range& error) {
      std::printf("range %d\n", error.what()[0] != 0);
    } catch (const std::exception& error) {
      std::printf("exception %s\n", error.what());
    }
    std::printf("alive %d\n", alive);
  }
  try {
    try {
      throw std::runtime_error("inner");
    } catch (...) {
      std::throw_with_nested(std::runtime_error("outer"));
    }
  } catch (const std::exception& outer) {
    try {
      std::rethrow_if_nested(outer);
    } catch (const std::exception& inner) {
      std::printf("%s in %s\n", inner.what(), outer.what());
    }
  }
  try {
    std::unique_ptr<char[]> impossible(new char[static_cast<std::size_t>(1) << 60]);
    std::printf("%p\n", static_cast<void*>(impossible.get()));
  } catch (const std::bad_alloc&) {
    std::printf("bad_alloc\n");
  }
  std::fflush(stdout);
  if (argc > 1 && argv[1][0] == 'u') throw Special(0);  // nobody catches it
  return 0;
}

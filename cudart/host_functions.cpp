// SPDX-License-Identifier: Apache-2.0
#include "host_functions.hpp"

#include <map>
#include <mutex>
#include <utility>

namespace manyscale::cudart {

namespace {

struct Waiting {
  std::mutex table;
  std::recursive_mutex running;  // one at a time, as they come from one thread of the driver
  std::uint64_t last = 0;
  std::map<std::uint64_t, std::function<void()>> by_number;
};

Waiting& waiting() {
  static Waiting& only = *new Waiting;
  return only;
}

}  // namespace

std::uint64_t keep_host_function(std::function<void()> function) {
  Waiting& kept = waiting();
  const std::lock_guard lock(kept.table);
  kept.by_number.emplace(++kept.last, std::move(function));
  return kept.last;
}

void run_host_function(std::uint64_t number) {
  Waiting& kept = waiting();
  const std::lock_guard running(kept.running);
  std::function<void()> function;
  {
    const std::lock_guard lock(kept.table);
    const auto found = kept.by_number.find(number);
    if (found == kept.by_number.end()) return;
    function = std::move(found->second);
    kept.by_number.erase(found);
  }
  function();
}

}  // namespace manyscale::cudart

// SPDX-License-Identifier: Apache-2.0
// Activities: the collectives in flight of the ranks of a node. Each stays where it is in memory, because its
// schedule refers to its call.
#pragma once
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "mpi/collectives/schedule.hpp"

namespace manyscale::mpi {

// One rank's part in a collective.
struct Activity {
  Schedule schedule;
  Call call;
  std::uint64_t incoming = 0;  // check mode: sum of what came since the last wait
  std::uint32_t request = none;
  std::uint32_t rank = 0;         // of this node
  std::uint32_t outstanding = 0;  // sends and receives
  std::int32_t tag = 0;
  std::uint32_t context = 0;
  bool waiting = false;  // for all that is outstanding

  // What came since the last wait is what the schedule goes on with.
  void take_received() { call.received = std::exchange(incoming, 0); }
};

class Activities {
 public:
  // The number of a new one.
  std::uint32_t add() {
    auto number = static_cast<std::uint32_t>(activities_.size());
    if (free_.empty()) {
      activities_.emplace_back();
    } else {
      number = free_.back();
      free_.pop_back();
    }
    activities_[number] = std::make_unique<Activity>();
    return number;
  }
  void remove(std::uint32_t number) {
    activities_[number].reset();
    free_.push_back(number);
  }
  Activity& operator[](std::uint32_t number) { return *activities_[number]; }
  const Activity& operator[](std::uint32_t number) const { return *activities_[number]; }

 private:
  std::vector<std::unique_ptr<Activity>> activities_;
  std::vector<std::uint32_t> free_;
};

}  // namespace manyscale::mpi

// SPDX-License-Identifier: Apache-2.0
// Objects of one type in one array, named by number and used again after release: no allocation one by one,
// and nothing held for ranks that do nothing.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "mpi/program/communicator.hpp"

namespace manyscale::mpi {

// T has a member `next` (a number), which is free for its user while the object is in use.
template <class T>
class Pool {
 public:
  std::uint32_t take() {
    if (free_ == none) {
      objects_.emplace_back();
      return static_cast<std::uint32_t>(objects_.size() - 1);
    }
    const std::uint32_t number = free_;
    free_ = objects_[number].next;
    objects_[number] = T{};
    return number;
  }
  void release(std::uint32_t number) {
    objects_[number].next = free_;
    free_ = number;
  }
  T& operator[](std::uint32_t number) { return objects_[number]; }
  const T& operator[](std::uint32_t number) const { return objects_[number]; }
  // Numbers go from 0 to this, free ones among them.
  std::uint32_t limit() const { return static_cast<std::uint32_t>(objects_.size()); }

 private:
  std::vector<T> objects_;
  std::uint32_t free_ = none;
};

}  // namespace manyscale::mpi

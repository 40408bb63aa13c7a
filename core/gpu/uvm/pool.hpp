// SPDX-License-Identifier: Apache-2.0
// Outstanding items by number; numbers are reused.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

namespace manyscale::gpu {

template <class T>
class Pool {
 public:
  std::uint32_t add(T thing) {
    if (free_.empty()) {
      things_.push_back(std::move(thing));
      return static_cast<std::uint32_t>(things_.size() - 1);
    }
    const std::uint32_t number = free_.back();
    free_.pop_back();
    things_[number] = std::move(thing);
    return number;
  }
  T take(std::uint32_t number) {
    free_.push_back(number);
    return std::move(things_[number]);
  }
  T& operator[](std::uint32_t number) { return things_[number]; }
  const T& operator[](std::uint32_t number) const { return things_[number]; }
  // Outstanding items.
  std::size_t size() const { return things_.size() - free_.size(); }

 private:
  std::vector<T> things_;
  std::vector<std::uint32_t> free_;
};

}  // namespace manyscale::gpu

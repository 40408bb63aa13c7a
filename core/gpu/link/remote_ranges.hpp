// SPDX-License-Identifier: Apache-2.0
// Which addresses lie beyond the link: pinned memory of the host, and memory of other GPUs. Changed between
// runs only, so that all SMs may read it at any time.
#pragma once
#include <cstdint>
#include <iterator>
#include <map>
#include <stdexcept>

namespace manyscale::gpu {

class RemoteRanges {
 public:
  bool contains(std::uint64_t address) const {
    const auto after = ranges_.upper_bound(address);
    return after != ranges_.begin() && address - std::prev(after)->first < std::prev(after)->second;
  }
  bool empty() const { return ranges_.empty(); }

  void add(std::uint64_t address, std::uint64_t bytes) {
    if (bytes == 0 || !ranges_.emplace(address, bytes).second)
      throw std::invalid_argument("remote memory is given twice, or has no bytes");
  }
  // False if none begins there.
  bool remove(std::uint64_t address) { return ranges_.erase(address) != 0; }

 private:
  std::map<std::uint64_t, std::uint64_t> ranges_;  // address and bytes
};

}  // namespace manyscale::gpu

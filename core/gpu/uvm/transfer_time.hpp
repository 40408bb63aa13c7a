// SPDX-License-Identifier: Apache-2.0
// Duration of a transfer between host and device, by its size.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/time.hpp"
#include "gpu/uvm/uvm_driver_spec.hpp"

namespace manyscale::gpu {

// Measured sizes and durations, linear between two of them, below the first and beyond the last.
class MeasuredTransfers {
 public:
  // Reads a text such as "4KiB 1760ns, 60KiB 5800ns". Throws std::invalid_argument, with the parameter's
  // name, unless it has two points or more with growing sizes.
  MeasuredTransfers(std::string_view parameter, std::string_view text);
  Time operator()(std::uint64_t bytes) const;

 private:
  struct Point {
    std::int64_t bytes;
    Time time;
  };
  std::vector<Point> points_;
};

class TransferTime {
 public:
  // Throws std::invalid_argument for an unknown curve, or for measured times that cannot be read.
  explicit TransferTime(const UvmDriverSpec& spec);
  Time operator()(std::uint64_t bytes, bool to_host) const;

 private:
  enum class Curve : std::uint8_t { measured, arctangent, line };
  Curve curve_;
  UvmDriverSpec spec_;
  MeasuredTransfers to_device_;
  MeasuredTransfers to_host_;
};

}  // namespace manyscale::gpu

// SPDX-License-Identifier: Apache-2.0
// Duration of a transfer between host and device, by its size.
#pragma once
#include <cstdint>

#include "engine/time.hpp"
#include "gpu/uvm/uvm_driver_spec.hpp"

namespace manyscale::gpu {

class TransferTime {
 public:
  // Throws std::invalid_argument for an unknown curve.
  explicit TransferTime(const UvmDriverSpec& spec);
  Time operator()(std::uint64_t bytes, bool to_host) const;

 private:
  enum class Curve : std::uint8_t { measured, arctangent, line };
  Curve curve_;
  UvmDriverSpec spec_;
};

}  // namespace manyscale::gpu

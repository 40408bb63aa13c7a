// SPDX-License-Identifier: Apache-2.0
#include "gpu/uvm/transfer_time.hpp"

#include <array>
#include <cmath>
#include <numbers>
#include <stdexcept>

namespace manyscale::gpu {

namespace {

struct Point {
  std::int64_t bytes;
  Time time;
};

// Migrations to a GeForce GTX 1080 Ti over PCIe 3.0 x16 that nvprof showed for faults one at a time (medians
// of 6 to 41 transfers of each size; micro-benchmarks of gpgpu-sim_UVMSmart).
constexpr std::array kToDevice{
    Point{4 << 10, 1'760 * nanosecond},    Point{60 << 10, 5'800 * nanosecond},
    Point{124 << 10, 11'200 * nanosecond}, Point{252 << 10, 21'800 * nanosecond},
    Point{508 << 10, 43'300 * nanosecond}, Point{1020 << 10, 86'400 * nanosecond},
};
// Evictions and returns of the same GPU: the line through mean size and mean time of whole applications (17.9
// us for 221 KiB to 78.4 us for 1000 KiB; none is further from it than 2%).
constexpr std::array kToHost{Point{221 << 10, 17'917 * nanosecond}, Point{1000 << 10, 78'408 * nanosecond}};

// Piecewise linear through the points, extrapolated below the first and beyond the last.
template <std::size_t count>
Time through(const std::array<Point, count>& points, std::int64_t bytes) {
  std::size_t i = 1;
  while (i + 1 < count && bytes > points[i].bytes) ++i;
  const Point& a = points[i - 1];
  const Point& b = points[i];
  const double slope = static_cast<double>(b.time - a.time) / static_cast<double>(b.bytes - a.bytes);
  return a.time + std::llround(slope * static_cast<double>(bytes - a.bytes));
}

}  // namespace

TransferTime::TransferTime(const UvmDriverSpec& spec) : spec_(spec) {
  if (spec.curve == "measured")
    curve_ = Curve::measured;
  else if (spec.curve == "arctangent")
    curve_ = Curve::arctangent;
  else if (spec.curve == "line")
    curve_ = Curve::line;
  else
    throw std::invalid_argument("there is no curve '" + spec.curve +
                                "', but there are: measured arctangent line");
}

Time TransferTime::operator()(std::uint64_t bytes, bool to_host) const {
  const auto size = static_cast<double>(bytes);
  const auto seconds = static_cast<double>(second);
  switch (curve_) {
    case Curve::measured:
      return to_host ? through(kToHost, static_cast<std::int64_t>(bytes))
                     : through(kToDevice, static_cast<std::int64_t>(bytes));
    case Curve::arctangent: {
      const double rate = static_cast<double>(spec_.peak_bandwidth) * 2 / std::numbers::pi *
                          std::atan(spec_.steepness * size / 1024);
      return std::llround(size / rate * seconds);
    }
    case Curve::line:
      break;
  }
  return spec_.transfer_latency + std::llround(size / static_cast<double>(spec_.bandwidth) * seconds);
}

}  // namespace manyscale::gpu

// SPDX-License-Identifier: Apache-2.0
#include "gpu/uvm/transfer_time.hpp"

#include <charconv>
#include <cmath>
#include <numbers>
#include <optional>
#include <stdexcept>

namespace manyscale::gpu {

namespace {

// Takes a whole number with its unit, such as "60KiB", from the front of a text.
std::optional<std::int64_t> take_number(std::string_view& text, std::string_view unit) {
  constexpr std::int64_t kMost = 1'000'000'000;  // GiB, and seconds
  while (text.starts_with(' ')) text.remove_prefix(1);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || number < 1 || number > kMost) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (!text.starts_with(unit)) return std::nullopt;
  text.remove_prefix(unit.size());
  return number;
}

}  // namespace

MeasuredTransfers::MeasuredTransfers(std::string_view parameter, std::string_view text) {
  const auto refuse = [&] {
    throw std::invalid_argument("'" + std::string(parameter) +
                                "' is a list of sizes and durations, such as 4KiB 1760ns, 60KiB 5800ns, of "
                                "growing size");
  };
  for (std::string_view left = text;;) {
    const auto kibibytes = take_number(left, "KiB");
    const auto nanoseconds = kibibytes ? take_number(left, "ns") : std::nullopt;
    if (!nanoseconds || (!points_.empty() && *kibibytes * 1024 <= points_.back().bytes)) refuse();
    points_.push_back({*kibibytes * 1024, *nanoseconds * nanosecond});
    if (left.empty()) break;
    if (!left.starts_with(',')) refuse();
    left.remove_prefix(1);
  }
  if (points_.size() < 2) refuse();
}

Time MeasuredTransfers::operator()(std::uint64_t bytes) const {
  const auto size = static_cast<std::int64_t>(bytes);
  std::size_t i = 1;
  while (i + 1 < points_.size() && size > points_[i].bytes) ++i;
  const Point& a = points_[i - 1];
  const Point& b = points_[i];
  const double slope = static_cast<double>(b.time - a.time) / static_cast<double>(b.bytes - a.bytes);
  return a.time + std::llround(slope * static_cast<double>(size - a.bytes));
}

TransferTime::TransferTime(const UvmDriverSpec& spec)
    : spec_(spec),
      to_device_("times_to_device", spec.times_to_device),
      to_host_("times_to_host", spec.times_to_host) {
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
      return to_host ? to_host_(bytes) : to_device_(bytes);
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

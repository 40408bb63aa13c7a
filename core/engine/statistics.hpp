// SPDX-License-Identifier: Apache-2.0
// Statistics: plain members of a model that it updates and never prints. Each is declared once, with unit and
// description, in a table beside the struct that holds it; one exporter makes rows of them.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/spec.hpp"
#include "engine/time.hpp"

namespace manyscale {

// How often something happened, or how much in all.
class Counter {
 public:
  Counter& operator++() {
    ++value_;
    return *this;
  }
  Counter& operator+=(std::int64_t amount) {
    value_ += amount;
    return *this;
  }
  std::int64_t value() const { return value_; }

 private:
  std::int64_t value_ = 0;
};

// A level that goes up and down: its last, lowest and highest value.
class Gauge {
 public:
  void set(double value) {
    last_ = value;
    lowest_ = std::min(lowest_, value);
    highest_ = std::max(highest_, value);
  }
  bool empty() const { return lowest_ > highest_; }
  double last() const { return last_; }
  double lowest() const { return empty() ? 0 : lowest_; }
  double highest() const { return empty() ? 0 : highest_; }

 private:
  double last_ = 0;
  double lowest_ = std::numeric_limits<double>::infinity();
  double highest_ = -std::numeric_limits<double>::infinity();
};

// How values are spread: exact count, sum, least and greatest, and buckets of four per power of two, so that
// a quantile is at most 25% above a value that was recorded. Takes memory only once something is recorded.
class Histogram {
 public:
  static constexpr int sub_bits = 2;
  static constexpr std::size_t bucket_count = (64 - sub_bits) << sub_bits;

  void record(std::int64_t value) {
    if (!buckets_) buckets_ = std::make_unique<Buckets>();
    value = std::max<std::int64_t>(value, 0);
    ++(*buckets_)[bucket_of(value)];
    ++count_;
    sum_ += static_cast<double>(value);
    least_ = std::min(least_, value);
    greatest_ = std::max(greatest_, value);
  }

  std::int64_t count() const { return count_; }
  double sum() const { return sum_; }
  double mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }
  std::int64_t least() const { return count_ == 0 ? 0 : least_; }
  std::int64_t greatest() const { return count_ == 0 ? 0 : greatest_; }
  // The highest value of the bucket that holds the quantile, but no more than the greatest recorded.
  std::int64_t quantile(double fraction) const;
  std::int64_t in_bucket(std::size_t bucket) const { return buckets_ ? (*buckets_)[bucket] : 0; }

  static std::size_t bucket_of(std::int64_t value) {
    const auto bits = static_cast<std::uint64_t>(value);
    if (bits < (1u << sub_bits)) return bits;
    const int shift = 63 - std::countl_zero(bits) - sub_bits;
    return static_cast<std::size_t>(((shift + 1) << sub_bits)) + ((bits >> shift) & ((1u << sub_bits) - 1));
  }
  static std::int64_t lower_bound(std::size_t bucket) {
    if (bucket < (1u << sub_bits)) return static_cast<std::int64_t>(bucket);
    const auto shift = static_cast<int>(bucket >> sub_bits) - 1;
    return static_cast<std::int64_t>((1u << sub_bits) + (bucket & ((1u << sub_bits) - 1))) << shift;
  }

 private:
  using Buckets = std::array<std::int64_t, bucket_count>;

  std::unique_ptr<Buckets> buckets_;
  std::int64_t count_ = 0;
  double sum_ = 0;
  std::int64_t least_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t greatest_ = 0;
};

// How much per interval of simulated time. Holds at most 1024 intervals: when they are used up, neighbours
// are added together and the interval doubles, so memory stays bounded however long the run.
class Series {
 public:
  static constexpr std::size_t most_intervals = 1024;

  explicit Series(Time interval = nanosecond) : interval_(interval) {}

  void add(Time time, double amount) {
    // Most times fall into the interval of the one before, which needs no division.
    if (time < begin_ || time >= end_) find(time);
    sums_[index_] += amount;
  }

  Time interval() const { return interval_; }
  const std::vector<double>& sums() const { return sums_; }

 private:
  void find(Time time);
  void halve();

  Time interval_;
  std::vector<double> sums_;
  std::size_t index_ = 0;  // the interval of the last time, from begin to end
  Time begin_ = 0;
  Time end_ = 0;
};

using StatisticPointer = std::variant<const Counter*, const Gauge*, const Histogram*, const Series*>;

// A statistic of a component, as declared.
struct StatisticInfo {
  std::string name;
  std::string unit;  // what is counted, in words or as a unit symbol: "event", "B", "fs"
  std::string doc;
  StatisticPointer source;
};

// An entry of a model's table of statistics.
template <class Struct, class Kind>
struct Statistic {
  std::string_view name;
  Kind Struct::* member;
  std::string_view unit;
  std::string_view doc;
};

// Rows of the tidy table, one vector per column; `key` is NaN where a row has none. Whole numbers stay whole.
struct StatisticRows {
  using Number = std::variant<std::int64_t, double>;

  std::vector<std::string> component, statistic, kind, unit, description;
  std::vector<double> key;
  std::vector<Number> value;

  void add(const std::string& component_name, const StatisticInfo& info);
};

}  // namespace manyscale

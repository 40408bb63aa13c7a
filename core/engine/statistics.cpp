// SPDX-License-Identifier: Apache-2.0
#include "engine/statistics.hpp"

#include <cmath>

namespace manyscale {

std::int64_t Histogram::quantile(double fraction) const {
  if (count_ == 0) return 0;
  const auto rank =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(fraction * static_cast<double>(count_))));
  std::int64_t seen = 0;
  for (std::size_t bucket = 0; bucket < bucket_count; ++bucket) {
    seen += (*buckets_)[bucket];
    if (seen >= rank && bucket + 1 < bucket_count) return std::min(greatest_, lower_bound(bucket + 1) - 1);
  }
  return greatest_;
}

void Series::find(Time time) {
  while (time / interval_ >= static_cast<Time>(most_intervals)) halve();
  index_ = static_cast<std::size_t>(time / interval_);
  if (index_ >= sums_.size()) sums_.resize(index_ + 1);
  begin_ = static_cast<Time>(index_) * interval_;
  end_ = add_saturating(begin_, interval_);
}

void Series::halve() {
  for (std::size_t i = 0; i < sums_.size(); i += 2) {
    sums_[i / 2] = sums_[i] + (i + 1 < sums_.size() ? sums_[i + 1] : 0.0);
  }
  sums_.resize((sums_.size() + 1) / 2);
  interval_ *= 2;
}

namespace {

constexpr double no_key = std::numeric_limits<double>::quiet_NaN();

// Adds one row of a statistic.
class RowWriter {
 public:
  RowWriter(StatisticRows& rows, const std::string& component, const StatisticInfo& info, const char* kind)
      : rows_(rows), component_(component), info_(info), kind_(kind) {}

  void row(const char* suffix, const std::string& unit, double key, StatisticRows::Number value) {
    rows_.component.push_back(component_);
    rows_.statistic.push_back(info_.name + suffix);
    rows_.kind.emplace_back(kind_);
    rows_.unit.push_back(unit);
    rows_.description.push_back(info_.doc);
    rows_.key.push_back(key);
    rows_.value.push_back(value);
  }
  void row(const char* suffix, StatisticRows::Number value) { row(suffix, info_.unit, no_key, value); }

 private:
  StatisticRows& rows_;
  const std::string& component_;
  const StatisticInfo& info_;
  const char* kind_;
};

struct Exporter {
  StatisticRows& rows;
  const std::string& component;
  const StatisticInfo& info;

  void operator()(const Counter* counter) const {
    RowWriter(rows, component, info, "counter").row("", counter->value());
  }

  void operator()(const Gauge* gauge) const {
    RowWriter writer(rows, component, info, "gauge");
    writer.row("", gauge->last());
    writer.row(".min", gauge->lowest());
    writer.row(".max", gauge->highest());
  }

  void operator()(const Histogram* histogram) const {
    RowWriter writer(rows, component, info, "histogram");
    writer.row(".count", "1", no_key, histogram->count());
    writer.row(".mean", histogram->mean());
    writer.row(".min", histogram->least());
    writer.row(".max", histogram->greatest());
    writer.row(".p50", histogram->quantile(0.50));
    writer.row(".p90", histogram->quantile(0.90));
    writer.row(".p99", histogram->quantile(0.99));
    for (std::size_t bucket = 0; bucket < Histogram::bucket_count; ++bucket) {
      if (const auto count = histogram->in_bucket(bucket); count > 0) {
        writer.row(".bucket", "1", static_cast<double>(Histogram::lower_bound(bucket)), count);
      }
    }
  }

  void operator()(const Series* series) const {
    RowWriter writer(rows, component, info, "series");
    const double interval_seconds = static_cast<double>(series->interval()) / static_cast<double>(second);
    for (std::size_t i = 0; i < series->sums().size(); ++i) {
      writer.row("", info.unit, static_cast<double>(i) * interval_seconds, series->sums()[i]);
    }
  }
};

}  // namespace

void StatisticRows::add(const std::string& component_name, const StatisticInfo& info) {
  std::visit(Exporter{*this, component_name, info}, info.source);
}

}  // namespace manyscale

// SPDX-License-Identifier: Apache-2.0
// What happened when, for a person to look at: spans and counter values of one component, kept apart from the
// model and written as a Perfetto trace (perfetto.hpp). A model asks Component::timeline() and does nothing
// when it is nullptr.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/time.hpp"

namespace manyscale {

class Timeline {
 public:
  enum class RecordType : std::uint8_t { span, counter };

  struct Record {
    Time begin;
    Time end;      // spans only
    double value;  // counters only
    std::uint32_t name;
    std::uint32_t track;
    RecordType type;
  };

  // A number for a name; ask once and keep it.
  std::uint32_t name(std::string_view text) {
    const auto [entry, fresh] =
        ids_.try_emplace(std::string(text), static_cast<std::uint32_t>(names_.size()));
    if (fresh) names_.emplace_back(text);
    return entry->second;
  }

  // Something that lasted. Spans of one track must nest or follow each other; overlapping ones go to other
  // tracks.
  void span(std::uint32_t name, Time begin, Time end, std::uint32_t track = 0) {
    records_.push_back({begin, end, 0.0, name, track, RecordType::span});
  }
  // A level from this time on.
  void counter(std::uint32_t name, Time time, double value) {
    records_.push_back({time, time, value, name, 0, RecordType::counter});
  }

  const std::vector<Record>& records() const { return records_; }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<Record> records_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::uint32_t> ids_;
};

}  // namespace manyscale

// SPDX-License-Identifier: Apache-2.0
// Reads timelines back from a Perfetto trace: the spans and counters that perfetto.hpp writes. What else such
// a file may hold is passed over.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace manyscale {

struct TimelineFile {
  struct Track {
    std::string name;
    std::int32_t parent;  // index of the track it belongs to; -1: none
    bool counter;
  };
  struct Span {
    std::int64_t begin;  // nanoseconds of the trace
    std::int64_t end;
    std::int32_t track;
    std::int32_t name;
  };
  struct Level {
    std::int64_t time;
    double value;
    std::int32_t track;
  };

  std::string process;  // what the trace calls the whole
  std::vector<Track> tracks;
  std::vector<std::string> names;
  std::vector<Span> spans;
  std::vector<Level> levels;
};

// Throws std::invalid_argument that says at which byte the trace is broken.
TimelineFile read_perfetto(std::string_view bytes);

}  // namespace manyscale

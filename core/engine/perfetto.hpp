// SPDX-License-Identifier: Apache-2.0
// Writes timelines as a Perfetto trace: a protobuf file that ui.perfetto.dev and its tools open.
#pragma once
#include <string>
#include <vector>

#include "engine/timeline.hpp"

namespace manyscale {

struct TimelineSource {
  std::string component;
  const Timeline* timeline;
};

// Writes all spans and counters to the file, ordered by time. Perfetto counts whole nanoseconds, too coarse
// for a processor's clock, so `tick` femtoseconds of simulated time are shown as one nanosecond; the trace's
// process name says so. Throws FileError when the file cannot be written.
void write_perfetto(const std::string& path, const std::vector<TimelineSource>& sources, Time tick);

}  // namespace manyscale

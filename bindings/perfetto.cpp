// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/string.h>

#include "column_bytes.hpp"
#include "engine/perfetto_reader.hpp"
#include "module.hpp"

using namespace manyscale;

namespace {

// A timeline as columns: tracks and names as lists, spans and levels as bytes of numbers.
nb::dict read_timeline(const nb::bytes& bytes) {
  TimelineFile file;
  {
    const std::string_view view(bytes.c_str(), bytes.size());
    const nb::gil_scoped_release released;
    file = read_perfetto(view);
  }
  nb::list tracks, names;
  for (const auto& track : file.tracks) {
    tracks.append(
        nb::make_tuple(nb::bytes(track.name.data(), track.name.size()), track.parent, track.counter));
  }
  for (const auto& name : file.names) names.append(nb::bytes(name.data(), name.size()));
  nb::dict out;
  out["process"] = nb::bytes(file.process.data(), file.process.size());
  out["tracks"] = tracks;
  out["names"] = names;
  out["span_begin"] = column_bytes(file.spans, [](const auto& span) { return span.begin; });
  out["span_end"] = column_bytes(file.spans, [](const auto& span) { return span.end; });
  out["span_track"] = column_bytes(file.spans, [](const auto& span) { return span.track; });
  out["span_name"] = column_bytes(file.spans, [](const auto& span) { return span.name; });
  out["level_time"] = column_bytes(file.levels, [](const auto& level) { return level.time; });
  out["level_value"] = column_bytes(file.levels, [](const auto& level) { return level.value; });
  out["level_track"] = column_bytes(file.levels, [](const auto& level) { return level.track; });
  return out;
}

}  // namespace

void bind_perfetto(nb::module_& module) {
  module.def("read_timeline", &read_timeline, nb::arg("bytes"),
             "A Perfetto trace that we have written, as columns; ValueError says where it is broken.");
}

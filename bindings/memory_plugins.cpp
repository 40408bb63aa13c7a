// SPDX-License-Identifier: Apache-2.0
// Prefetchers and replacement policies written in Python.
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "memory/cache/replacement.hpp"
#include "memory/prefetch/prefetch_algorithm.hpp"
#include "module.hpp"
#include "plugins.hpp"
#include "values.hpp"

using namespace manyscale;
using namespace manyscale::memory;

namespace {

// A class with __init__(self, spec), where spec is a dictionary of the prefetcher's parameters, and
// observe(self, address, id, hit), which returns the addresses of lines to fetch. Addresses on the line of
// the access, beyond its page or beyond the capacity are left out.
class PythonPrefetcher final : public PrefetchAlgorithm {
 public:
  PythonPrefetcher(const nb::object& plugin, const PrefetcherSpec& spec)
      : PrefetchAlgorithm(spec), object_(plugin(value_dict(to_values(spec)))) {}

  void observe(std::uint64_t address, std::uint64_t id, bool hit, PrefetchCandidates& out) override {
    const nb::gil_scoped_acquire held;
    for (const nb::handle target : nb::object(object_.get().attr("observe")(address, id, hit))) {
      const auto line = nb::cast<std::uint64_t>(target) >> line_shift_ << line_shift_;
      if (same_line(line, address) || !same_page(line, address)) continue;
      if (!add(line, out)) return;
    }
  }

 private:
  PythonObject object_;
};

// A class with __init__(self, sets, ways), used(self, set, way), filled(self, set, way) and
// victim(self, set, movable), where movable is the list of ways that can be replaced.
class PythonReplacement final : public ReplacementPolicy {
 public:
  PythonReplacement(const nb::object& plugin, const ReplacementShape& shape)
      : object_(plugin(shape.sets, shape.ways)) {}

  ReplacementRules rules() const override { return {.on_use = StampRule::call, .on_fill = StampRule::call}; }
  void used(std::uint32_t set, std::uint32_t way) override {
    const nb::gil_scoped_acquire held;
    object_.get().attr("used")(set, way);
  }
  void filled(std::uint32_t set, std::uint32_t way) override {
    const nb::gil_scoped_acquire held;
    object_.get().attr("filled")(set, way);
  }
  std::uint32_t victim(std::uint32_t set, std::span<std::uint32_t> stamps, std::uint64_t movable,
                       Random&) override {
    const nb::gil_scoped_acquire held;
    nb::list ways;
    for (std::uint32_t way = 0; way < stamps.size(); ++way)
      if ((movable >> way & 1) != 0) ways.append(way);
    const auto way = nb::cast<std::uint32_t>(object_.get().attr("victim")(set, ways));
    if (way >= stamps.size() || (movable >> way & 1) == 0)
      throw std::invalid_argument("a replacement policy chose way " + std::to_string(way) +
                                  ", which cannot be replaced");
    return way;
  }

 private:
  PythonObject object_;
};

}  // namespace

void bind_memory_plugins(nb::module_&) {
  allow_python_plugins<PrefetchAlgorithm, PythonPrefetcher>();
  allow_python_plugins<ReplacementPolicy, PythonReplacement>();
}

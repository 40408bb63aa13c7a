// SPDX-License-Identifier: Apache-2.0
// UVM prefetchers and eviction policies written in Python.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "gpu/uvm/eviction.hpp"
#include "gpu/uvm/prefetcher.hpp"
#include "module.hpp"
#include "plugins.hpp"

using namespace manyscale;
using namespace manyscale::gpu;

namespace {

nb::object view(const Residency& residency) {
  return nb::cast(&residency, nb::rv_policy::reference);
}

// A class with choose(self, residency, faults), which returns the pages to prefetch with a list of faults.
// Pages that are on the device already are ignored.
class PythonUvmPrefetcher final : public Prefetcher {
 public:
  explicit PythonUvmPrefetcher(const nb::object& plugin) : object_(plugin()) {}

  void choose(const Residency& residency, std::span<const PageIndex> faults, Random&,
              std::vector<PageIndex>& pages) override {
    const nb::gil_scoped_acquire held;
    nb::list list;
    for (const PageIndex fault : faults) list.append(fault);
    for (const nb::handle chosen : nb::object(object_.get().attr("choose")(view(residency), list))) {
      const auto page = nb::cast<std::int64_t>(chosen);
      if (page >= 0 && page < residency.size()) pages.push_back(static_cast<PageIndex>(page));
    }
  }

 private:
  PythonObject object_;
};

// A class with __init__(self, reserved_share), grow(self, pages), arrived(self, page), used(self, page,
// accesses), left(self, page) and choose(self, residency, spare_preferred), which returns the pages to evict.
class PythonEviction final : public EvictionPolicy {
 public:
  PythonEviction(const nb::object& plugin, double reserved_share) : object_(plugin(reserved_share)) {}

  void grow(PageIndex pages) override { call("grow", pages); }
  void arrived(PageIndex page) override { call("arrived", page); }
  void used(PageIndex page, std::uint32_t accesses) override { call("used", page, accesses); }
  void left(PageIndex page) override { call("left", page); }
  void choose(const Residency& residency, bool spare_preferred, Random&,
              std::vector<PageIndex>& victims) override {
    const nb::gil_scoped_acquire held;
    for (const nb::handle chosen :
         nb::object(object_.get().attr("choose")(view(residency), spare_preferred))) {
      const auto page = nb::cast<std::int64_t>(chosen);
      if (page < 0 || page >= residency.size() ||
          !residency.can_leave(static_cast<PageIndex>(page), spare_preferred))
        throw std::invalid_argument("an eviction policy chose page " + std::to_string(page) +
                                    ", which cannot be evicted");
      victims.push_back(static_cast<PageIndex>(page));
    }
  }

 private:
  template <class... Arguments>
  void call(const char* method, Arguments... arguments) {
    const nb::gil_scoped_acquire held;
    object_.get().attr(method)(arguments...);
  }

  PythonObject object_;
};

}  // namespace

void bind_gpu_uvm_plugins(nb::module_& module) {
  nb::class_<Residency>(module, "GpuResidency", "The page table of managed memory, as policies see it.")
      .def_prop_ro("pages", &Residency::size, "Entries of the page table.")
      .def(
          "is_on_device",
          [](const Residency& residency, PageIndex page) {
            return page < residency.size() && residency.at(page).is(Page::on_device);
          },
          nb::arg("page"))
      .def(
          "can_evict",
          [](const Residency& residency, PageIndex page, bool spare_preferred) {
            return page < residency.size() && residency.can_leave(page, spare_preferred);
          },
          nb::arg("page"), nb::arg("spare_preferred") = false);
  module.attr("gpu_pages_per_chunk") = kPagesPerChunk;
  module.attr("gpu_pages_per_block") = kPagesPerBlock;
  allow_python_plugins<Prefetcher, PythonUvmPrefetcher>();
  allow_python_plugins<EvictionPolicy, PythonEviction>();
}

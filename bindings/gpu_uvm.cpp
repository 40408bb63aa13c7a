// SPDX-License-Identifier: Apache-2.0
// Managed memory of a simulated GPU: allocations that its unified memory, its SMs and the functional device
// share.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>

#include "column_bytes.hpp"
#include "gpu/exec/device.hpp"
#include "gpu/sm/sm.hpp"
#include "gpu/uvm/unified_memory.hpp"
#include "module.hpp"

using namespace manyscale;
using namespace manyscale::gpu;

namespace {

// The managed allocations of one simulated GPU. Between runs only.
class GpuManaged {
 public:
  GpuManaged(UnifiedMemory& unified, const std::vector<Component*>& sms) : unified_(&unified) {
    for (Component* component : sms) {
      auto* sm = dynamic_cast<Sm*>(component);
      if (sm == nullptr) throw std::invalid_argument(component->name() + " is not an SM");
      sms_.push_back(sm);
    }
  }

  std::uint64_t allocate(Device& device, std::uint64_t bytes, const std::string& label) {
    attach();
    const std::uint64_t address = device.memory.allocate(bytes, label, kBlockBytes);
    try {
      unified_->allocate(address, bytes, label);
    } catch (...) {
      device.memory.free(address);
      throw;
    }
    return address;
  }

  // Existing memory becomes managed, such as that of a variable.
  void adopt(std::uint64_t address, std::uint64_t bytes, const std::string& label) {
    attach();
    unified_->allocate(address, bytes, label);
  }

  void free(Device& device, std::uint64_t address) {
    unified_->free(address);
    device.memory.free(address);
  }

  // Adds or removes a range of remote memory.
  void add_remote(std::uint64_t address, std::uint64_t bytes) {
    if (unified_->is_shared()) return;  // host and device have the same memory
    if (remote_->empty())
      for (Sm* sm : sms_) sm->attach(std::shared_ptr<const RemoteRanges>(remote_));
    remote_->add(address, bytes);
  }
  void remove_remote(std::uint64_t address) {
    if (!remote_->remove(address)) return;
    if (remote_->empty())
      for (Sm* sm : sms_) sm->attach(std::shared_ptr<const RemoteRanges>());
  }

  // Whether all of the bytes are in one managed allocation.
  bool contains(std::uint64_t address, std::uint64_t bytes) const {
    const ManagedRanges::Allocation* around = unified_->ranges()->find(address);
    return around != nullptr && bytes <= around->bytes && address - around->address <= around->bytes - bytes;
  }

  // Statistics of the SMs on managed memory, by name.
  nb::dict sm_counts() const {
    SmStatistics sums;
    for (Sm* sm : sms_) {
      sm->settle();
      for_each_field<SmStatistics>(
          [&](const auto& field) { sums.*(field.member) += (sm->counted().*(field.member)).value(); });
    }
    nb::dict counts;
    counts["tlb_hits"] = sums.tlb_hits.value();
    counts["tlb_misses"] = sums.tlb_misses.value();
    counts["tlb_shootdowns"] = sums.tlb_shootdowns.value();
    counts["faulted_translations"] = sums.faulted_translations.value();
    counts["remote_sectors"] = sums.remote_sectors.value();
    counts["stall_fault"] = sums.stall_fault.value();
    return counts;
  }

  // A row for each allocation: its address, bytes, label and statistics.
  nb::list allocations() const {
    nb::list rows;
    for (const UnifiedMemory::AllocationReport& report : unified_->allocations()) {
      nb::dict row;
      row["address"] = report.allocation.address;
      row["bytes"] = report.allocation.bytes;
      row["label"] = report.allocation.label;
      row["faults"] = report.statistics.faults;
      row["pages_to_device"] = report.statistics.pages_to_device;
      row["pages_to_host"] = report.statistics.pages_to_host;
      row["thrashed_pages"] = report.statistics.thrashed_pages;
      row["resident_pages"] = report.statistics.resident_pages;
      rows.append(row);
    }
    return rows;
  }

  // The location of each page of a range, a byte each: an index into gpu_page_locations.
  nb::bytes locations(std::uint64_t address, std::uint64_t bytes) const {
    return column_bytes(unified_->locations(address, bytes),
                        [](PageLocation location) { return static_cast<std::uint8_t>(location); });
  }

  // The page log as columns of numbers; kinds and causes are indices of their words.
  nb::dict log() const {
    const std::vector<PageEvent>& events = unified_->log();
    using Row = const PageEvent&;
    nb::dict columns;
    columns["begin"] = column_bytes(events, [](Row row) { return row.begin; });
    columns["end"] = column_bytes(events, [](Row row) { return row.end; });
    columns["address"] = column_bytes(events, [](Row row) { return row.address; });
    columns["pages"] = column_bytes(events, [](Row row) { return row.pages; });
    columns["kind"] = column_bytes(events, [](Row row) { return static_cast<std::uint8_t>(row.kind); });
    columns["cause"] = column_bytes(events, [](Row row) { return static_cast<std::uint8_t>(row.cause); });
    return columns;
  }

  void reserve(std::uint64_t bytes) { unified_->reserve(bytes); }
  void advise(std::uint64_t address, std::uint64_t bytes, Advice advice) {
    unified_->advise(address, bytes, advice);
  }

 private:
  // SMs look addresses up only once there is managed memory.
  void attach() {
    if (!attached_)
      for (Sm* sm : sms_) sm->attach(unified_->ranges());
    attached_ = true;
  }

  UnifiedMemory* unified_;
  std::vector<Sm*> sms_;
  std::shared_ptr<RemoteRanges> remote_ = std::make_shared<RemoteRanges>();
  bool attached_ = false;  // the SMs have the managed ranges
};

constexpr std::array kLocations{"nowhere", "host", "device", "both", "moving"};
constexpr std::array kKinds{"fault",      "batch",     "to_device",  "populate",    "to_host",     "drop",
                            "host_fault", "host_read", "host_write", "remote_read", "remote_write"};
constexpr std::array kCauses{"fault", "prefetch", "command", "eviction", "host"};

// Each word stands at the index of its value.
static_assert(kLocations.size() == static_cast<std::size_t>(PageLocation::moving) + 1);
static_assert(kKinds.size() == static_cast<std::size_t>(PageEventKind::remote_write) + 1);
static_assert(kCauses.size() == static_cast<std::size_t>(PageEvent::Cause::host) + 1);

nb::list words(const auto& names) {
  nb::list list;
  for (const char* name : names) list.append(name);
  return list;
}

}  // namespace

void bind_gpu_uvm(nb::module_& module) {
  nb::enum_<Advice>(module, "GpuAdvice")
      .value("read_mostly", Advice::read_mostly)
      .value("not_read_mostly", Advice::not_read_mostly)
      .value("prefer_device", Advice::prefer_device)
      .value("prefer_host", Advice::prefer_host)
      .value("prefer_none", Advice::prefer_none)
      .value("accessed_by_device", Advice::accessed_by_device)
      .value("not_accessed_by_device", Advice::not_accessed_by_device)
      .value("accessed_by_host", Advice::accessed_by_host)
      .value("not_accessed_by_host", Advice::not_accessed_by_host);
  nb::class_<GpuManaged> managed(module, "GpuManaged");
  managed
      .def(
          "__init__",
          [](GpuManaged* self, Component& unified, const std::vector<Component*>& sms) {
            auto* found = dynamic_cast<UnifiedMemory*>(&unified);
            if (found == nullptr) throw std::invalid_argument(unified.name() + " is not unified memory");
            new (self) GpuManaged(*found, sms);
          },
          nb::keep_alive<1, 2>(), nb::arg("unified"), nb::arg("sms"))
      .def("allocate", &GpuManaged::allocate, nb::arg("device"), nb::arg("bytes"), nb::arg("label"))
      .def("adopt", &GpuManaged::adopt, nb::arg("address"), nb::arg("bytes"), nb::arg("label"))
      .def("free", &GpuManaged::free, nb::arg("device"), nb::arg("address"))
      .def("add_remote", &GpuManaged::add_remote, nb::arg("address"), nb::arg("bytes"))
      .def("remove_remote", &GpuManaged::remove_remote, nb::arg("address"))
      .def("contains", &GpuManaged::contains, nb::arg("address"), nb::arg("bytes"))
      .def("sm_counts", &GpuManaged::sm_counts)
      .def("allocations", &GpuManaged::allocations)
      .def("locations", &GpuManaged::locations, nb::arg("address"), nb::arg("bytes"))
      .def("log", &GpuManaged::log)
      .def("reserve", &GpuManaged::reserve, nb::arg("bytes"))
      .def("advise", &GpuManaged::advise, nb::arg("address"), nb::arg("bytes"), nb::arg("advice"));
  module.attr("gpu_page_locations") = words(kLocations);
  module.attr("gpu_page_events") = words(kKinds);
  module.attr("gpu_page_causes") = words(kCauses);
}

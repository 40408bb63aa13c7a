// SPDX-License-Identifier: Apache-2.0
// The parts that components embed, one by one: for tests, and for those who want to see a TLB or a prefetcher
// work without a system around it.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "memory/address_hash.hpp"
#include "memory/prefetch/prefetcher.hpp"
#include "memory/translation/page_walker.hpp"
#include "module.hpp"
#include "values.hpp"

using namespace manyscale;
using namespace manyscale::memory;

namespace {

template <class Spec>
Spec spec_from(const nb::handle& parameters) {
  return from_values<Spec>(named_values(nb::cast<nb::dict>(parameters)));
}

template <class Spec>
nb::list spec_fields() {
  nb::list fields;
  for (const FieldInfo& info : field_infos<Spec>()) {
    nb::dict field;
    field["name"] = info.name;
    field["type"] = info.type;
    field["unit"] = info.unit;
    field["doc"] = info.doc;
    if (!info.required) field["default"] = info.initial;
    field["minimum"] = info.minimum;
    field["maximum"] = info.maximum;
    fields.append(field);
  }
  return fields;
}

// Counters by name; of a histogram how often each of its values occurred, which is exact below 8.
template <class Statistics>
nb::dict statistics_dict(const Statistics& statistics) {
  nb::dict result;
  for_each_field<Statistics>([&](const auto& entry) {
    const auto& source = statistics.*(entry.member);
    const std::string name(entry.name);
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(source)>, Counter>) {
      result[name.c_str()] = source.value();
    } else {
      nb::dict buckets;
      for (std::size_t bucket = 0; bucket < Histogram::bucket_count; ++bucket) {
        if (source.in_bucket(bucket) != 0) {
          buckets[nb::int_(Histogram::lower_bound(bucket))] = source.in_bucket(bucket);
        }
      }
      result[name.c_str()] = buckets;
    }
  });
  return result;
}

using OptionalPage = std::optional<std::pair<std::uint64_t, std::uint64_t>>;

OptionalPage page_pair(const std::optional<Translation>& translation) {
  if (!translation) return std::nullopt;
  return std::pair{translation->physical_address, translation->page_size};
}

void bind_tlb(nb::module_& module) {
  nb::class_<Tlb>(module, "Tlb")
      .def("__init__",
           [](Tlb* self, const nb::kwargs& parameters) { new (self) Tlb(spec_from<TlbSpec>(parameters)); })
      .def("lookup", &Tlb::lookup, nb::arg("virtual_address"), nb::arg("address_space") = 0,
           "The frame number of the page, or None.")
      .def("holds", &Tlb::holds, nb::arg("virtual_address"), nb::arg("address_space") = 0)
      .def("fill", &Tlb::fill, nb::arg("virtual_address"), nb::arg("address_space"), nb::arg("frame"),
           "Enters a translation; true where another one had to leave for it.")
      .def("invalidate", &Tlb::invalidate, nb::arg("virtual_address"), nb::arg("address_space") = 0)
      .def("invalidate_range", &Tlb::invalidate_range, nb::arg("virtual_address"), nb::arg("bytes"),
           nb::arg("address_space") = 0)
      .def("invalidate_address_space", &Tlb::invalidate_address_space, nb::arg("address_space"))
      .def("invalidate_all", &Tlb::invalidate_all)
      .def("__len__", [](const Tlb& tlb) { return static_cast<std::size_t>(tlb.size()); })
      .def_prop_ro("statistics", [](const Tlb& tlb) { return statistics_dict(tlb.statistics()); });

  nb::class_<TlbLookup>(module, "TlbLookup")
      .def_ro("physical_address", &TlbLookup::physical_address)
      .def_ro("page_size", &TlbLookup::page_size)
      .def_ro("latency", &TlbLookup::latency)
      .def_ro("level", &TlbLookup::level, "That knew the page, counted from 0; -1: none did.")
      .def_prop_ro("hit", &TlbLookup::hit);
  nb::class_<TlbHierarchy>(module, "TlbHierarchy")
      .def(
          "__init__",
          [](TlbHierarchy* self, const nb::list& levels) {
            std::vector<std::vector<TlbSpec>> specs;
            for (const nb::handle level : levels) {
              auto& tlbs = specs.emplace_back();
              for (const nb::handle tlb : nb::cast<nb::list>(level)) tlbs.push_back(spec_from<TlbSpec>(tlb));
            }
            new (self) TlbHierarchy(specs);
          },
          nb::arg("levels"), "Levels from the first to the last, each a list of dicts of a TLB's parameters.")
      .def("lookup", &TlbHierarchy::lookup, nb::arg("virtual_address"), nb::arg("address_space") = 0)
      .def("fill", &TlbHierarchy::fill, nb::arg("virtual_address"), nb::arg("address_space"),
           nb::arg("physical_address"), nb::arg("page_size"))
      .def("invalidate", &TlbHierarchy::invalidate, nb::arg("virtual_address"), nb::arg("address_space"),
           nb::arg("page_size"))
      .def("invalidate_address_space", &TlbHierarchy::invalidate_address_space, nb::arg("address_space"))
      .def("invalidate_all", &TlbHierarchy::invalidate_all)
      .def("statistics",
           [](const TlbHierarchy& tlbs, int level) { return statistics_dict(tlbs.statistics(level)); });
}

void bind_page_table(nb::module_& module) {
  nb::class_<FrameAllocator>(module, "FrameAllocator")
      .def("__init__",
           [](FrameAllocator* self, const nb::kwargs& parameters) {
             new (self) FrameAllocator(spec_from<FrameSpec>(parameters));
           })
      .def("allocate", &FrameAllocator::allocate, nb::arg("virtual_page_address"), nb::arg("page_size"));
  nb::class_<PageTable>(module, "PageTable")
      .def(
          "__init__",
          [](PageTable* self, FrameAllocator& frames, const nb::kwargs& parameters) {
            new (self) PageTable(spec_from<PageTableSpec>(parameters), frames);
          },
          nb::keep_alive<1, 2>())
      .def(
          "find",
          [](const PageTable& table, std::uint64_t address) { return page_pair(table.find(address)); },
          nb::arg("virtual_address"), "Physical address and size of the page, or None.")
      .def("touch", [](PageTable& table, std::uint64_t address) { return *page_pair(table.touch(address)); })
      .def("map", &PageTable::map, nb::arg("virtual_address"), nb::arg("physical_address"),
           nb::arg("page_size"))
      .def(
          "map_new",
          [](PageTable& table, std::uint64_t address, std::uint64_t page_size) {
            return *page_pair(table.map_new(address, page_size));
          },
          nb::arg("virtual_address"), nb::arg("page_size"))
      .def("unmap", [](PageTable& table, std::uint64_t address) { return page_pair(table.unmap(address)); })
      .def(
          "walk",
          [](const PageTable& table, std::uint64_t address) {
            const PageTable::Path path = table.walk(address);
            return std::vector<std::uint64_t>(path.entry_address.begin(),
                                              path.entry_address.begin() + path.count);
          },
          nb::arg("virtual_address"), "Physical addresses of the entries on the way from the root.")
      .def("table_address", &PageTable::table_address, nb::arg("table"))
      .def_prop_ro("tables", &PageTable::tables);
}

void bind_page_walker(nb::module_& module) {
  nb::class_<PageWalker>(module, "PageWalker")
      .def(
          "__init__",
          [](PageWalker* self, const PageTable& shape, const nb::dict& cache, const nb::kwargs& parameters) {
            new (self) PageWalker(spec_from<PageWalkerSpec>(parameters), spec_from<WalkCacheSpec>(cache),
                                  shape.spec());
          },
          nb::arg("shape"), nb::arg("cache"), nb::arg("parameters"),
          "For page tables of the shape of the one given.")
      .def(
          "begin",
          [](PageWalker& walker, const PageTable& table, std::uint64_t address, std::uint32_t address_space) {
            static constexpr const char* outcomes[] = {"started", "merged", "full"};
            const PageWalker::Ticket ticket = walker.begin(table, address, address_space);
            return std::pair{std::string(outcomes[static_cast<std::size_t>(ticket.outcome)]), ticket.walk};
          },
          nb::arg("table"), nb::arg("virtual_address"), nb::arg("address_space") = 0, nb::keep_alive<1, 2>(),
          "('started', 'merged' or 'full', number of the walk).")
      .def("reads",
           [](const PageWalker& walker, std::uint32_t walk) {
             if (walk >= walker.spec().concurrent_walks) throw std::invalid_argument("no such walk");
             const auto reads = walker.reads(walk);
             return std::vector<std::uint64_t>(reads.begin(), reads.end());
           })
      .def(
          "finish",
          [](PageWalker& walker, std::uint32_t walk) {
            const PageWalker::Result result = walker.finish(walk);
            return std::pair{page_pair(result.translation), result.merged};
          },
          nb::arg("walk"), "Address and size of the page or None, and how many requests had joined the walk.")
      .def("invalidate", &PageWalker::invalidate, nb::arg("virtual_address"), nb::arg("address_space") = 0)
      .def("invalidate_all", &PageWalker::invalidate_all)
      .def("cache_hits", &PageWalker::cache_hits, nb::arg("level"))
      .def_prop_ro("active", &PageWalker::active)
      .def_prop_ro("statistics",
                   [](const PageWalker& walker) { return statistics_dict(walker.statistics()); });
}

void bind_prefetcher(nb::module_& module) {
  nb::class_<Prefetcher>(module, "Prefetcher")
      .def("__init__",
           [](Prefetcher* self, const nb::kwargs& parameters) {
             new (self) Prefetcher(spec_from<PrefetcherSpec>(parameters));
           })
      .def(
          "observe",
          [](Prefetcher& prefetcher, std::uint64_t address, std::uint64_t id, bool hit) {
            PrefetchCandidates candidates;
            prefetcher.observe(address, id, hit, candidates);
            return std::vector<std::uint64_t>(candidates.begin(), candidates.end());
          },
          nb::arg("address"), nb::arg("id") = 0, nb::arg("hit") = false, "Addresses of lines to fetch.")
      .def("on_use", &Prefetcher::on_use, nb::arg("late") = false)
      .def("on_evict_unused", &Prefetcher::on_evict_unused)
      .def("on_redundant", &Prefetcher::on_redundant)
      .def_prop_ro("accuracy", &Prefetcher::accuracy)
      .def_prop_ro("statistics",
                   [](const Prefetcher& prefetcher) { return statistics_dict(prefetcher.statistics()); });
}

void bind_slice_hash(nb::module_& module) {
  nb::class_<SliceHash>(module, "SliceHash")
      .def("__init__",
           [](SliceHash* self, const nb::kwargs& parameters) {
             new (self) SliceHash(spec_from<SliceHashSpec>(parameters));
           })
      .def("slice_of", &SliceHash::slice_of, nb::arg("address"))
      .def(
          "lines_per_slice",
          [](const SliceHash& hash, std::uint64_t first, std::uint64_t stride, std::uint64_t count) {
            std::vector<std::int64_t> lines(hash.slices());
            for (std::uint64_t number = 0; number < count; ++number) {
              ++lines[hash.slice_of(first + number * stride)];
            }
            return lines;
          },
          nb::arg("first"), nb::arg("stride"), nb::arg("count"),
          "How many of the addresses first, first + stride, … fall on each slice.");
}

}  // namespace

void bind_memory_parts(nb::module_& module) {
  bind_tlb(module);
  bind_page_table(module);
  bind_page_walker(module);
  bind_prefetcher(module);
  bind_slice_hash(module);
  module.def(
      "memory_part_fields",
      [] {
        nb::dict specs;
        specs["Tlb"] = spec_fields<TlbSpec>();
        specs["FrameAllocator"] = spec_fields<FrameSpec>();
        specs["PageTable"] = spec_fields<PageTableSpec>();
        specs["WalkCache"] = spec_fields<WalkCacheSpec>();
        specs["PageWalker"] = spec_fields<PageWalkerSpec>();
        specs["Prefetcher"] = spec_fields<PrefetcherSpec>();
        specs["SliceHash"] = spec_fields<SliceHashSpec>();
        return specs;
      },
      "The parameters of the parts: name, type, unit, meaning, default and range of each.");
}

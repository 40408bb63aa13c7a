// SPDX-License-Identifier: Apache-2.0
// Eviction policy: which pages leave the device's memory when it is full. A policy is one file that registers
// itself (engine/registry.hpp), in eviction/ or in a library that is loaded.
#pragma once
#include <memory>
#include <string_view>
#include <vector>

#include "engine/random.hpp"
#include "engine/registry.hpp"
#include "gpu/uvm/residency.hpp"

namespace manyscale::gpu {

class EvictionPolicy {
 public:
  using PluginInterface = EvictionPolicy;
  static constexpr std::string_view plugin_kind = "eviction policy";
  // `reserved_share`: the share of pages, from the least recently used on, that is not evicted.
  using Create = std::unique_ptr<EvictionPolicy>(double reserved_share);

  virtual ~EvictionPolicy() = default;
  // The page table has that many entries now.
  virtual void grow(PageIndex pages) = 0;
  // A page has migrated to the device, or SMs accessed it.
  virtual void arrived(PageIndex page) = 0;
  virtual void used(PageIndex page, std::uint32_t accesses) = 0;
  // A page is no longer on the device.
  virtual void left(PageIndex page) = 0;
  // Adds the pages that are evicted next, together; none if no page can be evicted.
  virtual void choose(const Residency& residency, bool spare_preferred, Random& random,
                      std::vector<PageIndex>& victims) = 0;
};

// Adds those of a run of pages that can be evicted; whether there are any.
inline bool add_leaving(const Residency& residency, PageIndex first, std::uint32_t count,
                        bool spare_preferred, std::vector<PageIndex>& victims) {
  const std::size_t before = victims.size();
  for (PageIndex page = first; page < first + count; ++page)
    if (residency.can_leave(page, spare_preferred)) victims.push_back(page);
  return victims.size() != before;
}

}  // namespace manyscale::gpu

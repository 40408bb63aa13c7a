// SPDX-License-Identifier: Apache-2.0
// What leaves the device's memory when it is full. A policy is a file in eviction/ that registers itself by
// name; nothing else has to know it.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/random.hpp"
#include "gpu/uvm/residency.hpp"

namespace manyscale::gpu {

class EvictionPolicy {
 public:
  virtual ~EvictionPolicy() = default;
  // There are that many pages now.
  virtual void grow(PageIndex pages) = 0;
  // A page is on the device from now on, or SMs made accesses to it.
  virtual void arrived(PageIndex page) = 0;
  virtual void used(PageIndex page, std::uint32_t accesses) = 0;
  // A page has been taken from the device.
  virtual void left(PageIndex page) = 0;
  // Adds the pages that leave next, together; none if no page can leave.
  virtual void choose(const Residency& residency, bool spare_preferred, Random& random,
                      std::vector<PageIndex>& victims) = 0;
};

using EvictionMaker = std::unique_ptr<EvictionPolicy> (*)(double reserved_share);
// All policies by name; filled before main, never changed afterwards.
std::map<std::string, EvictionMaker, std::less<>>& eviction_registry();
// Throws std::invalid_argument for an unknown name.
std::unique_ptr<EvictionPolicy> make_eviction(std::string_view name, double reserved_share);

template <class Kind>
struct RegisteredEviction {
  explicit RegisteredEviction(std::string name) {
    eviction_registry().emplace(std::move(name),
                                [](double reserved_share) -> std::unique_ptr<EvictionPolicy> {
                                  return std::make_unique<Kind>(reserved_share);
                                });
  }
};

// Adds those of a run of pages that can leave; whether there are any.
bool add_leaving(const Residency& residency, PageIndex first, std::uint32_t count, bool spare_preferred,
                 std::vector<PageIndex>& victims);

}  // namespace manyscale::gpu

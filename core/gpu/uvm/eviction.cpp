// SPDX-License-Identifier: Apache-2.0
#include "gpu/uvm/eviction.hpp"

#include "gpu/uvm/prefetcher.hpp"

namespace manyscale::gpu {

std::map<std::string, EvictionMaker, std::less<>>& eviction_registry() {
  static std::map<std::string, EvictionMaker, std::less<>> registry;
  return registry;
}

std::unique_ptr<EvictionPolicy> make_eviction(std::string_view name, double reserved_share) {
  const auto found = eviction_registry().find(name);
  if (found == eviction_registry().end()) refuse_name("eviction", name, eviction_registry());
  return found->second(reserved_share);
}

bool add_leaving(const Residency& residency, PageIndex first, std::uint32_t count, bool spare_preferred,
                 std::vector<PageIndex>& victims) {
  const std::size_t before = victims.size();
  for (PageIndex page = first; page < first + count; ++page)
    if (residency.can_leave(page, spare_preferred)) victims.push_back(page);
  return victims.size() != before;
}

}  // namespace manyscale::gpu

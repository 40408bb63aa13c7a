// SPDX-License-Identifier: Apache-2.0
#include "gpu/uvm/prefetcher.hpp"

#include <stdexcept>

namespace manyscale::gpu {

std::map<std::string, PrefetcherMaker, std::less<>>& prefetcher_registry() {
  static std::map<std::string, PrefetcherMaker, std::less<>> registry;
  return registry;
}

std::unique_ptr<Prefetcher> make_prefetcher(std::string_view name) {
  const auto found = prefetcher_registry().find(name);
  if (found == prefetcher_registry().end()) refuse_name("prefetcher", name, prefetcher_registry());
  return found->second();
}

void add_chunk(ChunkIndex chunk, std::vector<PageIndex>& pages) {
  for (std::uint32_t i = 0; i < kPagesPerChunk; ++i) pages.push_back(chunk * kPagesPerChunk + i);
}

}  // namespace manyscale::gpu

// SPDX-License-Identifier: Apache-2.0
// UVM prefetcher: which pages migrate to the device together with pages that faulted. A prefetcher is one
// file that registers itself (engine/registry.hpp), in prefetch/ or in a library that is loaded.
#pragma once
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/random.hpp"
#include "engine/registry.hpp"
#include "gpu/uvm/residency.hpp"

namespace manyscale::gpu {

class Prefetcher {
 public:
  using PluginInterface = Prefetcher;
  static constexpr std::string_view plugin_kind = "UVM prefetcher";
  using Create = std::unique_ptr<Prefetcher>();

  virtual ~Prefetcher() = default;
  // Adds the pages to prefetch for `faults` (ascending, all of one block of 2 MiB). Pages that are on the
  // device already, or were added before, are ignored.
  virtual void choose(const Residency& residency, std::span<const PageIndex> faults, Random& random,
                      std::vector<PageIndex>& pages) = 0;
};

// Adds all pages of a chunk.
inline void add_chunk(ChunkIndex chunk, std::vector<PageIndex>& pages) {
  for (std::uint32_t i = 0; i < kPagesPerChunk; ++i) pages.push_back(chunk * kPagesPerChunk + i);
}

}  // namespace manyscale::gpu

// SPDX-License-Identifier: Apache-2.0
// What comes to the device along with pages that faulted. A prefetcher is a file in prefetch/ that registers
// itself by name; nothing else has to know it.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/random.hpp"
#include "gpu/uvm/residency.hpp"

namespace manyscale::gpu {

class Prefetcher {
 public:
  virtual ~Prefetcher() = default;
  // Adds the pages that should come along with `faults` (in ascending order, at most 512 to a block). Pages
  // that cannot come, or were added before, do no harm: they are left out.
  virtual void choose(const Residency& residency, std::span<const PageIndex> faults, Random& random,
                      std::vector<PageIndex>& pages) = 0;
};

using PrefetcherMaker = std::unique_ptr<Prefetcher> (*)();
// All prefetchers by name; filled before main, never changed afterwards.
std::map<std::string, PrefetcherMaker, std::less<>>& prefetcher_registry();
// Throws std::invalid_argument for an unknown name.
std::unique_ptr<Prefetcher> make_prefetcher(std::string_view name);

template <class Kind>
struct RegisteredPrefetcher {
  explicit RegisteredPrefetcher(std::string name) {
    prefetcher_registry().emplace(std::move(name),
                                  []() -> std::unique_ptr<Prefetcher> { return std::make_unique<Kind>(); });
  }
};

// Adds all pages of a chunk.
void add_chunk(ChunkIndex chunk, std::vector<PageIndex>& pages);

// Throws std::invalid_argument with the names that a parameter can have.
template <class Registry>
[[noreturn]] void refuse_name(std::string_view parameter, std::string_view name, const Registry& known) {
  std::string text = "there is no " + std::string(parameter) + " '" + std::string(name) + "', but there are:";
  for (const auto& entry : known) text += " " + entry.first;
  throw std::invalid_argument(text);
}

}  // namespace manyscale::gpu

// SPDX-License-Identifier: Apache-2.0
// Prefetch algorithm: which lines a hardware prefetcher fetches after an access. An algorithm is one file in
// this folder that registers itself. Left out: throttling by success, and everything that looks at data.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "engine/registry.hpp"
#include "engine/spec.hpp"

namespace manyscale::memory {

struct PrefetcherSpec {
  std::string kind = "none";
  std::int64_t line_size = 64;
  std::int64_t page_size = 4096;
  std::int64_t degree = 2;
  std::int64_t distance = 8;
  std::int64_t entries = 16;
  std::int64_t confidence = 2;
  std::int64_t window = 4;
};

// Addresses of lines to fetch, at most the degree of the prefetcher.
struct PrefetchCandidates {
  static constexpr std::uint32_t capacity = 16;

  std::array<std::uint64_t, capacity> address;
  std::uint32_t count = 0;

  void clear() { count = 0; }
  const std::uint64_t* begin() const { return address.data(); }
  const std::uint64_t* end() const { return address.data() + count; }
};

class PrefetchAlgorithm {
 public:
  using PluginInterface = PrefetchAlgorithm;
  static constexpr std::string_view plugin_kind = "prefetcher";
  using Create = std::unique_ptr<PrefetchAlgorithm>(const PrefetcherSpec& spec);

  explicit PrefetchAlgorithm(const PrefetcherSpec& spec)
      : spec_(spec),
        line_shift_(shift_of(spec.line_size, "line size")),
        page_shift_(shift_of(spec.page_size, "page size")) {}
  virtual ~PrefetchAlgorithm() = default;

  // Takes one access and appends lines to fetch: never the line of the access, never beyond its page. `id` is
  // the instruction, warp or stream; `hit` whether the cache had the line.
  virtual void observe(std::uint64_t address, std::uint64_t id, bool hit, PrefetchCandidates& out) = 0;

 protected:
  static int shift_of(std::int64_t size, const char* what) {
    if (size < 1 || !std::has_single_bit(static_cast<std::uint64_t>(size))) {
      throw std::invalid_argument(std::string("the ") + what + " of a prefetcher is a power of two, not " +
                                  std::to_string(size));
    }
    return std::countr_zero(static_cast<std::uint64_t>(size));
  }
  bool same_page(std::uint64_t a, std::uint64_t b) const { return (a ^ b) >> page_shift_ == 0; }
  bool same_line(std::uint64_t a, std::uint64_t b) const { return (a ^ b) >> line_shift_ == 0; }
  static bool add(std::uint64_t address, PrefetchCandidates& out) {
    if (out.count == PrefetchCandidates::capacity) return false;
    out.address[out.count++] = address;
    return true;
  }
  // Adds what lies beyond the `ahead` steps already fetched, as far as degree, distance and page allow;
  // returns how many steps are fetched then.
  std::int32_t run_ahead(std::uint64_t address, std::int64_t step, std::int32_t ahead,
                         PrefetchCandidates& out) {
    std::uint64_t before = address + static_cast<std::uint64_t>(step * ahead);
    for (std::int64_t added = 0; added < spec_.degree && ahead < spec_.distance; ++added) {
      const std::uint64_t target = before + static_cast<std::uint64_t>(step);
      if (!same_page(target, address)) break;
      if (!add(target >> line_shift_ << line_shift_, out)) break;
      before = target;
      ++ahead;
    }
    return ahead;
  }

  const PrefetcherSpec spec_;
  const int line_shift_;
  const int page_shift_;
};

}  // namespace manyscale::memory

namespace manyscale {

template <>
struct describe<memory::PrefetcherSpec> {
  using Spec = memory::PrefetcherSpec;
  static constexpr auto fields = std::tuple{
      Field<Spec, std::string>{"kind", &Spec::kind, Unit::none, "none, or a prefetcher: {prefetcher}"},
      Field<Spec, std::int64_t>{"line_size", &Spec::line_size, Unit::bytes, "of a line, a power of two", 8,
                                1 << 20},
      Field<Spec, std::int64_t>{"page_size", &Spec::page_size, Unit::bytes,
                                "no prefetch leaves the page of the access; a power of two", 8, 1LL << 40},
      Field<Spec, std::int64_t>{"degree", &Spec::degree, Unit::count, "lines fetched for one access at most",
                                1, 16},
      Field<Spec, std::int64_t>{"distance", &Spec::distance, Unit::count,
                                "strides, or lines of a stream, to run ahead of the access at most", 1, 1024},
      Field<Spec, std::int64_t>{"entries", &Spec::entries, Unit::count,
                                "instructions (stride, a power of two) or streams followed at a time", 1,
                                4096},
      Field<Spec, std::int64_t>{"confidence", &Spec::confidence, Unit::count,
                                "equal strides, or steps in one direction, before the first prefetch", 1, 15},
      Field<Spec, std::int64_t>{"window", &Spec::window, Unit::count,
                                "lines an access may be away from a stream's last and still belong to it", 1,
                                1024}};
};

}  // namespace manyscale

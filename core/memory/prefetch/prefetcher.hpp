// SPDX-License-Identifier: Apache-2.0
// Hardware prefetchers: parts without events that a cache owns, shows its accesses to and asks for
// candidates.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/spec.hpp"
#include "engine/statistics.hpp"

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

struct PrefetcherStatistics {
  Counter issued;
  Counter redundant;
  Counter useful;
  Counter late;
  Counter useless;
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

// Stands for the prefetcher of one cache: `next_line`, `stride` (a table by instruction) or `stream` (runs of
// neighbouring lines, whoever asks for them); leaves out throttling by its own success and everything that
// looks at data. Stride and stream run up to `distance` steps ahead of the access and remember how far they
// got, so in the steady state each access adds one new line and none twice.
class Prefetcher {
 public:
  enum class Kind : std::uint8_t { none, next_line, stride, stream };

  explicit Prefetcher(const PrefetcherSpec& spec);

  // Shows one access and appends lines to fetch: never the line of the access, never beyond its page. `id` is
  // the instruction, warp or stream; `hit` whether the cache had the line.
  void observe(std::uint64_t address, std::uint64_t id, bool hit, PrefetchCandidates& out) {
    const std::uint32_t before = out.count;
    switch (kind_) {
      case Kind::none:
        return;
      case Kind::next_line:
        observe_next_line(address, out);
        break;
      case Kind::stride:
        observe_stride(address, id, out);
        break;
      case Kind::stream:
        observe_stream(address, hit, out);
        break;
    }
    statistics_.issued += out.count - before;
  }

  // What the cache reports of the lines it fetched: asked for (`late`: before it had arrived), or gone
  // without.
  void on_use(bool late = false) { ++(late ? statistics_.late : statistics_.useful); }
  void on_evict_unused() { ++statistics_.useless; }
  // A candidate that the cache held already, or was fetching.
  void on_redundant() { ++statistics_.redundant; }

  // The share of the lines with a known fate that were asked for; 0 where none is known.
  double accuracy() const {
    const auto used = statistics_.useful.value() + statistics_.late.value();
    const auto known = used + statistics_.useless.value();
    return known == 0 ? 0 : static_cast<double>(used) / static_cast<double>(known);
  }

  Kind kind() const { return kind_; }
  const PrefetcherSpec& spec() const { return spec_; }
  const PrefetcherStatistics& statistics() const { return statistics_; }

 private:
  // One instruction's accesses. `ahead` is how many steps beyond the last access are fetched already.
  struct Stride {
    std::uint64_t id = 0;
    std::uint64_t last = 0;
    std::int64_t step = 0;  // bytes
    std::int32_t ahead = 0;
    std::uint8_t confidence = 0;
    bool valid = false;
  };
  // One run of lines. The streams form a ring from the one used last to the one used longest ago.
  struct Stream {
    std::uint64_t last_line = 0;
    std::uint32_t newer = 0;
    std::uint32_t older = 0;
    std::uint32_t follower = 0;  // the stream used after this one the last time
    std::int32_t ahead = 0;
    std::int8_t direction = 0;
    std::uint8_t confidence = 0;
  };

  void observe_next_line(std::uint64_t address, PrefetchCandidates& out);
  void observe_stride(std::uint64_t address, std::uint64_t id, PrefetchCandidates& out);
  void observe_stream(std::uint64_t address, bool hit, PrefetchCandidates& out);
  std::uint32_t find_stream(std::uint64_t line) const;
  void make_newest(std::uint32_t stream);
  std::int32_t run_ahead(std::uint64_t address, std::int64_t step, std::int32_t ahead,
                         PrefetchCandidates& out);

  bool same_page(std::uint64_t a, std::uint64_t b) const { return (a ^ b) >> page_shift_ == 0; }
  bool same_line(std::uint64_t a, std::uint64_t b) const { return (a ^ b) >> line_shift_ == 0; }
  static constexpr std::uint32_t no_stream = 0xffffffff;
  static constexpr std::size_t block = 16;  // streams compared at a time

  static bool add(std::uint64_t address, PrefetchCandidates& out) {
    if (out.count == PrefetchCandidates::capacity) return false;
    out.address[out.count++] = address;
    return true;
  }

  const PrefetcherSpec spec_;
  Kind kind_;
  int line_shift_ = 0;
  int page_shift_ = 0;
  std::int32_t degree_ = 0;
  std::int32_t distance_ = 0;
  std::uint8_t confidence_ = 0;
  std::uint64_t last_line_ = ~std::uint64_t{0};  // of next_line
  int id_shift_ = 0;
  std::vector<Stride> strides_;
  std::vector<Stream> streams_;
  std::vector<std::uint32_t> low_lines_;  // the low half of each last line, in whole blocks
  std::uint32_t newest_ = 0;              // the stream of the last access
  PrefetcherStatistics statistics_;
};

}  // namespace manyscale::memory

namespace manyscale {

template <>
struct describe<memory::PrefetcherSpec> {
  using Spec = memory::PrefetcherSpec;
  static constexpr auto fields = std::tuple{
      Field<Spec, std::string>{"kind", &Spec::kind, Unit::none, "none, next_line, stride or stream"},
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

template <>
struct describe<memory::PrefetcherStatistics> {
  using S = memory::PrefetcherStatistics;
  static constexpr auto fields = std::tuple{
      Statistic<S, Counter>{"issued", &S::issued, "line", "lines proposed"},
      Statistic<S, Counter>{"redundant", &S::redundant, "line", "lines proposed that the cache had already"},
      Statistic<S, Counter>{"useful", &S::useful, "line", "lines asked for after they had arrived"},
      Statistic<S, Counter>{"late", &S::late, "line", "lines asked for while they were on their way"},
      Statistic<S, Counter>{"useless", &S::useless, "line", "lines that left without being asked for"}};
};

}  // namespace manyscale

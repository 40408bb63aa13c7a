// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "memory/prefetch/prefetch_algorithm.hpp"

namespace manyscale::memory {

namespace {

// Runs of neighbouring lines, whichever instruction accesses them. It runs up to `distance` lines ahead of
// the access and keeps how far it got, so that in the steady state each access adds one line and none twice.
class StreamPrefetcher final : public PrefetchAlgorithm {
 public:
  explicit StreamPrefetcher(const PrefetcherSpec& spec)
      : PrefetchAlgorithm(spec), streams_(static_cast<std::size_t>(spec.entries)) {
    const auto count = static_cast<std::uint32_t>(streams_.size());
    for (std::uint32_t number = 0; number < count; ++number) {
      // Far from every line there is, so that no access belongs to an unused entry.
      streams_[number].last_line = unused_line;
      streams_[number].older = (number + 1) % count;
      streams_[number].newer = (number + count - 1) % count;
    }
    low_lines_.resize((streams_.size() + block - 1) / block * block, static_cast<std::uint32_t>(unused_line));
  }

  void observe(std::uint64_t address, std::uint64_t, bool hit, PrefetchCandidates& out) override {
    const std::uint64_t line = address >> line_shift_;
    const std::uint32_t found = find_stream(line);
    if (found == no_stream) {
      if (hit) return;                    // streams begin with a miss
      newest_ = streams_[newest_].newer;  // the oldest, which becomes the newest by turning the ring
      Stream& stream = streams_[newest_];
      stream.last_line = line;
      stream.direction = 0;
      low_lines_[newest_] = static_cast<std::uint32_t>(line);
      return;
    }
    make_newest(found);
    Stream& stream = streams_[found];
    const auto moved = static_cast<std::int64_t>(line - stream.last_line);
    if (moved == 0) return;
    const bool new_page = !same_page(line << line_shift_, stream.last_line << line_shift_);
    stream.last_line = line;
    low_lines_[found] = static_cast<std::uint32_t>(line);
    const std::int8_t direction = moved > 0 ? 1 : -1;
    if (direction != stream.direction) {
      stream.direction = direction;
      stream.confidence = 1;
      stream.ahead = 0;
    } else {
      stream.confidence = std::min<std::uint8_t>(stream.confidence + 1, 15);
      stream.ahead =
          new_page ? 0
                   : std::max(stream.ahead - static_cast<std::int32_t>(moved * direction), std::int32_t{0});
    }
    if (stream.confidence < spec_.confidence) return;
    stream.ahead = run_ahead(address, direction * spec_.line_size, stream.ahead, out);
  }

 private:
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

  // Lines are at least 8 bytes, so no line has a number of this size.
  static constexpr std::uint64_t unused_line = (std::uint64_t{1} << 63) + (std::uint64_t{1} << 31);
  static constexpr std::uint32_t no_stream = 0xffffffff;
  static constexpr std::size_t block = 16;  // streams compared at a time

  // The stream whose window holds the line. Tries the last one used, then the one that was used after it the
  // time before, which is right for streams that take turns; then all of them. There it looks at half of each
  // number, a block at a time and without a branch for each, which the compiler turns into a few wide
  // instructions; then at the numbers themselves.
  std::uint32_t find_stream(std::uint64_t line) const {
    const auto window = static_cast<std::uint64_t>(spec_.window);
    const auto in_window = [&](std::size_t number) {
      return line - streams_[number].last_line + window <= 2 * window;
    };
    if (in_window(newest_)) return newest_;
    if (const std::uint32_t follower = streams_[newest_].follower; in_window(follower)) return follower;
    const auto low = static_cast<std::uint32_t>(line + window);
    const auto width = static_cast<std::uint32_t>(2 * window);
    for (std::size_t first = 0; first < low_lines_.size(); first += block) {
      std::uint32_t any = 0;
      for (std::size_t number = first; number < first + block; ++number) {
        any |= static_cast<std::uint32_t>(low - low_lines_[number] <= width);
      }
      if (any == 0) continue;
      const std::size_t end = std::min(first + block, streams_.size());
      for (std::size_t number = first; number < end; ++number) {
        if (low - low_lines_[number] <= width && in_window(number)) return static_cast<std::uint32_t>(number);
      }
    }
    return no_stream;
  }

  void make_newest(std::uint32_t number) {
    if (number == newest_) return;
    streams_[newest_].follower = number;
    Stream& stream = streams_[number];
    streams_[stream.newer].older = stream.older;
    streams_[stream.older].newer = stream.newer;
    stream.older = newest_;
    stream.newer = streams_[newest_].newer;
    streams_[stream.newer].older = number;
    streams_[newest_].newer = number;
    newest_ = number;
  }

  std::vector<Stream> streams_;
  std::vector<std::uint32_t> low_lines_;  // the low half of each last line, in whole blocks
  std::uint32_t newest_ = 0;              // the stream of the last access
};

const Registered<StreamPrefetcher> registered{"stream", "Follows runs of neighbouring lines."};

}  // namespace

}  // namespace manyscale::memory

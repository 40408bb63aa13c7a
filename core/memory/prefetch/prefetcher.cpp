// SPDX-License-Identifier: Apache-2.0
#include "memory/prefetch/prefetcher.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>

namespace manyscale::memory {

namespace {

Prefetcher::Kind kind_of(const std::string& name) {
  if (name == "none") return Prefetcher::Kind::none;
  if (name == "next_line") return Prefetcher::Kind::next_line;
  if (name == "stride") return Prefetcher::Kind::stride;
  if (name == "stream") return Prefetcher::Kind::stream;
  throw std::invalid_argument("no prefetcher '" + name + "': none, next_line, stride or stream");
}

int shift_of(std::int64_t size, const char* what) {
  if (size < 1 || !std::has_single_bit(static_cast<std::uint64_t>(size))) {
    throw std::invalid_argument(std::string("the ") + what + " of a prefetcher is a power of two, not " +
                                std::to_string(size));
  }
  return std::countr_zero(static_cast<std::uint64_t>(size));
}

// Lines are at least 8 bytes, so no line has a number of this size.
constexpr std::uint64_t unused_line = (std::uint64_t{1} << 63) + (std::uint64_t{1} << 31);

void check(bool good, const char* what) {
  if (!good) throw std::invalid_argument(what);
}

}  // namespace

Prefetcher::Prefetcher(const PrefetcherSpec& spec)
    : spec_(spec),
      kind_(kind_of(spec.kind)),
      line_shift_(shift_of(spec.line_size, "line size")),
      page_shift_(shift_of(spec.page_size, "page size")) {
  check(spec.page_size >= spec.line_size, "the page of a prefetcher holds at least one line");
  check(spec.degree >= 1 && spec.degree <= PrefetchCandidates::capacity, "a prefetcher's degree is 1 to 16");
  check(spec.distance >= 1 && spec.distance <= 1024, "a prefetcher's distance is 1 to 1024");
  check(spec.entries >= 1 && spec.entries <= 4096, "a prefetcher has 1 to 4096 entries");
  check(spec.confidence >= 1 && spec.confidence <= 15, "a prefetcher's confidence is 1 to 15");
  check(spec.window >= 1 && spec.window <= 1024, "a prefetcher's window is 1 to 1024 lines");
  degree_ = static_cast<std::int32_t>(spec.degree);
  distance_ = static_cast<std::int32_t>(spec.distance);
  confidence_ = static_cast<std::uint8_t>(spec.confidence);
  const auto entries = static_cast<std::size_t>(spec.entries);
  if (kind_ == Kind::stride) {
    id_shift_ = 64 - shift_of(spec.entries, "number of entries");
    strides_.resize(entries);
  }
  if (kind_ == Kind::stream) {
    streams_.resize(entries);
    const auto count = static_cast<std::uint32_t>(entries);
    for (std::uint32_t number = 0; number < count; ++number) {
      // Far from every line there is, so that no access belongs to an unused entry.
      streams_[number].last_line = unused_line;
      streams_[number].older = (number + 1) % count;
      streams_[number].newer = (number + count - 1) % count;
    }
    low_lines_.resize((entries + block - 1) / block * block, static_cast<std::uint32_t>(unused_line));
  }
}

void Prefetcher::observe_next_line(std::uint64_t address, PrefetchCandidates& out) {
  const std::uint64_t line = address >> line_shift_;
  if (line == last_line_) return;
  last_line_ = line;
  for (std::int32_t step = 1; step <= degree_; ++step) {
    const std::uint64_t target = (line + static_cast<std::uint64_t>(step)) << line_shift_;
    if (!same_page(target, address) || !add(target, out)) return;
  }
}

// Adds what lies beyond the `ahead` steps already fetched, as far as degree, distance and page allow; returns
// how many steps are fetched then.
std::int32_t Prefetcher::run_ahead(std::uint64_t address, std::int64_t step, std::int32_t ahead,
                                   PrefetchCandidates& out) {
  std::uint64_t before = address + static_cast<std::uint64_t>(step * ahead);
  for (std::int32_t added = 0; added < degree_ && ahead < distance_; ++added) {
    const std::uint64_t target = before + static_cast<std::uint64_t>(step);
    if (!same_page(target, address)) break;
    if (!add(target >> line_shift_ << line_shift_, out)) break;
    before = target;
    ++ahead;
  }
  return ahead;
}

void Prefetcher::observe_stride(std::uint64_t address, std::uint64_t id, PrefetchCandidates& out) {
  const std::uint64_t place = id_shift_ == 64 ? 0 : id * 0x9e3779b97f4a7c15u >> id_shift_;
  Stride& entry = strides_[place];
  if (!entry.valid || entry.id != id) {
    entry = {id, address, 0, 0, 0, true};
    return;
  }
  const auto step = static_cast<std::int64_t>(address - entry.last);
  if (step == 0) return;
  const std::uint64_t last = entry.last;
  entry.last = address;
  if (step != entry.step) {
    entry.ahead = 0;
    // One odd step, such as the end of a row, does not make a settled stride forgotten.
    if (entry.confidence > 1) {
      --entry.confidence;
    } else {
      entry.step = step;
      entry.confidence = 1;
    }
    return;
  }
  entry.confidence = std::min<std::uint8_t>(entry.confidence + 1, 15);
  if (entry.confidence < confidence_) return;

  // Strides within a line advance by lines, and only when the access does.
  const std::int64_t line_size = spec_.line_size;
  std::int64_t advance = step;
  if (step < line_size && step > -line_size) {
    advance = step > 0 ? line_size : -line_size;
    if (!same_line(address, last)) entry.ahead = std::max(entry.ahead - 1, 0);
  } else {
    entry.ahead = std::max(entry.ahead - 1, 0);
  }
  if (!same_page(address, last)) entry.ahead = 0;
  entry.ahead = run_ahead(address, advance, entry.ahead, out);
}

// A stream that the line is near to. Tries the last one used, then the one that was used after it the time
// before, which is right for streams that take turns; then all of them. There it looks at half of each
// number, a block at a time and without a branch for each, which the compiler turns into a few wide
// instructions; then at the numbers themselves.
std::uint32_t Prefetcher::find_stream(std::uint64_t line) const {
  const auto window = static_cast<std::uint64_t>(spec_.window);
  const auto near = [&](std::size_t number) {
    return line - streams_[number].last_line + window <= 2 * window;
  };
  if (near(newest_)) return newest_;
  if (const std::uint32_t follower = streams_[newest_].follower; near(follower)) return follower;
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
      if (low - low_lines_[number] <= width && near(number)) return static_cast<std::uint32_t>(number);
    }
  }
  return no_stream;
}

void Prefetcher::make_newest(std::uint32_t number) {
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

void Prefetcher::observe_stream(std::uint64_t address, bool hit, PrefetchCandidates& out) {
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
        new_page ? 0 : std::max(stream.ahead - static_cast<std::int32_t>(moved * direction), std::int32_t{0});
  }
  if (stream.confidence < confidence_) return;
  stream.ahead = run_ahead(address, direction * spec_.line_size, stream.ahead, out);
}

}  // namespace manyscale::memory

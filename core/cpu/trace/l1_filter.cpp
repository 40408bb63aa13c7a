// SPDX-License-Identifier: Apache-2.0
#include "cpu/trace/l1_filter.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace manyscale::cpu {

namespace {

constexpr int word_bits = 3;
// How often threads took a line from each other when it counts as contended.
constexpr std::uint32_t contested = 3;

}  // namespace

L1Filter::L1Filter(std::uint64_t bytes, std::uint64_t line, std::uint64_t window, std::uint64_t few_stores)
    : sets_(std::bit_floor(bytes / line / 2)),
      line_mask_(line - 1),
      window_(window),
      few_stores_(few_stores),
      line_bits_(std::countr_zero(line)) {}

L1Filter::Thread& L1Filter::thread_of(const Record& record) {
  if (record.thread >= threads_.size()) threads_.resize(record.thread + std::size_t{1});
  Thread& thread = threads_[record.thread];
  if (thread.sets.empty()) {
    thread.sets.resize(sets_);
    thread.last_stores.resize(few_stores_);
  }
  return thread;
}

// Whether those of the last few instructions have plenty of room in the store queue. A store counts itself.
bool L1Filter::stores_are_few(Thread& thread, std::uint32_t stream, std::uint64_t position) const {
  if (few_stores_ == 0) return false;
  Store& oldest = thread.last_stores[thread.next_store++ % few_stores_];
  const Store before = std::exchange(oldest, {0, position, stream});
  return before.word == no_line || before.stream != stream || position - before.position >= window_;
}

FilterResult L1Filter::touch(const Record& record, std::uint32_t stream, std::uint64_t position,
                             bool others) {
  if (sets_ == 0) return {};
  Thread& thread = thread_of(record);
  const std::uint64_t line = record.address >> line_bits_;
  const bool crosses = (record.address & line_mask_) + record.size > line_mask_ + 1;
  const bool reads = record.kind != InstructionClass::store, writes = record.kind != InstructionClass::load;
  Set& set = thread.sets[line & (sets_ - 1)];
  Line* found = nullptr;
  for (Line& each : set) {
    if (each.line == line && each.stream == stream) found = &each;
  }
  const bool few = writes && stores_are_few(thread, stream, position);
  FilterResult access;
  if (found != nullptr && !crosses && record.kind != InstructionClass::atomic) {
    const std::uint64_t age = position - found->position;
    if (writes) {
      // Those behind one that misses wait in the store queue, and keep others out of it if they are many.
      access.is_hit = found->written && (few || position - found->first_store >= window_);
    } else if (found->readable || age >= window_) {
      access.is_hit = true;
      if (age < window_) access.fill = static_cast<std::uint16_t>(age);
    }
  }
  if (reads) access.store = last_store(thread, record, stream, position);
  if (writes) {
    const std::uint64_t first = record.address >> word_bits;
    const std::uint64_t last = (record.address + std::max<std::uint64_t>(record.size, 1) - 1) >> word_bits;
    for (std::uint64_t word = first; word <= last; ++word) {
      thread.stores[word % stores_kept] = {word, position, stream};
    }
  }
  if (others && !conflicts_.empty()) {
    const auto conflicts = conflicts_.find(line);
    if (conflicts != conflicts_.end() && conflicts->second >= contested) access.is_hit = false;
  }
  if (access.is_hit) return access;
  if (others) take_from_others(record.thread, line, writes);
  Line now = found != nullptr ? *found : Line{.line = line, .position = position, .stream = stream};
  if (reads) {
    if (!now.readable) now.position = position;
    now.readable = true;
  }
  if (writes && !std::exchange(now.written, true)) now.first_store = position;
  const std::size_t way = found != nullptr ? static_cast<std::size_t>(found - set.data()) : set.size() - 1;
  std::copy_backward(set.begin(), set.begin() + static_cast<long>(way),
                     set.begin() + static_cast<long>(way) + 1);
  set[0] = now;
  return access;
}

std::uint16_t L1Filter::last_store(const Thread& thread, const Record& record, std::uint32_t stream,
                                   std::uint64_t position) const {
  std::uint64_t nearest = 0;
  const std::uint64_t first = record.address >> word_bits;
  const std::uint64_t last = (record.address + std::max<std::uint64_t>(record.size, 1) - 1) >> word_bits;
  for (std::uint64_t word = first; word <= last; ++word) {
    const Store& store = thread.stores[word % stores_kept];
    if (store.word != word || store.stream != stream || position - store.position >= window_) continue;
    const std::uint64_t age = position - store.position;
    if (nearest == 0 || age < nearest) nearest = age;
  }
  return static_cast<std::uint16_t>(nearest);
}

void L1Filter::take_from_others(std::uint16_t thread, std::uint64_t line, bool writes) {
  for (std::size_t other = 0; other < threads_.size(); ++other) {
    if (other == thread || threads_[other].sets.empty()) continue;
    for (Line& each : threads_[other].sets[line & (sets_ - 1)]) {
      if (each.line != line) continue;
      if (writes || each.written) ++conflicts_[line];
      each.written = false;
      if (writes) each.line = no_line;
    }
  }
}

}  // namespace manyscale::cpu

// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/checker.hpp"

#include <algorithm>

#include "gpu/exec/op.hpp"

namespace manyscale::gpu {

Checker::Checker(Checks wanted, std::uint64_t shared_bytes, unsigned threads)
    : wanted_(wanted),
      shared_(shared_bytes),
      local_(threads),
      last_warp_barrier_((threads + kLanes - 1) / kLanes) {}

void Checker::barrier() {
  last_barrier_ = now_;
}

void Checker::warp_barrier(unsigned warp) {
  last_warp_barrier_[warp] = now_;
}

bool Checker::conflicts(const Touch& earlier, const Touch& touch) const {
  if (earlier.time <= last_barrier_ || earlier.thread == touch.thread || (earlier.strong && touch.strong))
    return false;
  const unsigned warp = earlier.thread / kLanes;
  return warp != touch.thread / kLanes || earlier.time > last_warp_barrier_[warp];
}

const Touch* Checker::conflicting_write(const Byte& byte, const Touch& touch) const {
  if (conflicts(byte.write, touch)) return &byte.write;
  return conflicts(byte.strong_write, touch) ? &byte.strong_write : nullptr;
}

Checker::Conflict Checker::shared_load(std::uint64_t offset, unsigned bytes, Touch touch) {
  Conflict conflict;
  touch.time = now_;
  for (std::uint64_t at = offset; at < offset + bytes; ++at) {
    Byte& byte = shared_[at];
    if (conflict.write.time == 0) {
      conflict.offset = at;
      if (const Touch* write = conflicting_write(byte, touch)) conflict.write = *write;
    }
    if (byte.read.thread != touch.thread) byte.other_read = byte.read;
    byte.read = touch;
  }
  return conflict;
}

Checker::Conflict Checker::shared_store(std::uint64_t offset, unsigned bytes, Touch touch) {
  Conflict conflict;
  touch.time = now_;
  for (std::uint64_t at = offset; at < offset + bytes; ++at) {
    Byte& byte = shared_[at];
    if (conflict.write.time == 0 && conflict.read.time == 0) {
      conflict.offset = at;
      if (const Touch* write = conflicting_write(byte, touch)) conflict.write = *write;
      if (conflicts(byte.read, touch))
        conflict.read = byte.read;
      else if (conflicts(byte.other_read, touch))
        conflict.read = byte.other_read;
    }
    (touch.strong ? byte.strong_write : byte.write) = touch;
  }
  return conflict;
}

bool Checker::shared_never_written(std::uint64_t offset, unsigned bytes) const {
  for (std::uint64_t at = offset; at < offset + bytes; ++at)
    if (is_written(shared_[at])) return false;
  return true;
}

void Checker::local_store(unsigned thread, std::uint64_t offset, unsigned bytes) {
  std::vector<bool>& written = local_[thread];
  if (written.size() < offset + bytes) written.resize(offset + bytes);
  std::fill_n(written.begin() + static_cast<std::ptrdiff_t>(offset), bytes, true);
}

bool Checker::local_never_written(unsigned thread, std::uint64_t offset, unsigned bytes) const {
  const std::vector<bool>& written = local_[thread];
  for (std::uint64_t at = offset; at < offset + bytes && at < written.size(); ++at)
    if (written[at]) return false;
  return true;
}

bool Checker::is_wanted(FindingKind kind) const {
  switch (kind) {
    case FindingKind::race:
      return wanted_.races;
    case FindingKind::global:
      return wanted_.global_reads;
    case FindingKind::barrier:
      return wanted_.barriers;
    default:
      return wanted_.private_reads;
  }
}

bool Checker::is_new(FindingKind kind, const OpInfo* one, const OpInfo* other) {
  return is_wanted(kind) && found_.emplace(kind, std::min(one, other), std::max(one, other)).second;
}

}  // namespace manyscale::gpu

// SPDX-License-Identifier: Apache-2.0
#include "cluster/external_ranks.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "cluster/ring_pieces.hpp"

namespace manyscale::cluster {

using cpu::RingLayout;
using cpu::RingPiece;

namespace {

cpu::RankRings& rings_of(cpu::LiveSource& program) {
  if (program.rings() == nullptr)
    throw std::invalid_argument("the program was not launched as a part of a larger job");
  return *program.rings();
}

std::uint32_t load(const std::uint32_t& word) {
  return std::atomic_ref(const_cast<std::uint32_t&>(word)).load(std::memory_order_acquire);
}

}  // namespace

ExternalRanks::ExternalRanks(cpu::LiveSource& program, const std::string& path, memory::Dma* engine)
    : program_(program), rings_(rings_of(program)), engine_(engine), size_(rings_.layout().total()) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  const bool made = file >= 0 && ftruncate(file, static_cast<off_t>(size_)) == 0;
  void* memory = made ? mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  const int error = errno;
  if (file >= 0) close(file);
  if (memory == MAP_FAILED)
    throw std::runtime_error(path +
                             ": memory to share with native ranks cannot be made: " + std::strerror(error));
  memory_ = static_cast<std::uint8_t*>(memory);
  const std::size_t ranks = rings_.layout().ranks;
  carried_.resize(ranks * ranks);
  taken_.resize(ranks * ranks);
}

ExternalRanks::~ExternalRanks() {
  munmap(memory_, size_);
}

std::uint32_t& ExternalRanks::word(std::uint64_t offset) const {
  return *reinterpret_cast<std::uint32_t*>(memory_ + offset);
}

void ExternalRanks::wake(std::uint32_t rank) {
  std::uint32_t& bell = word(rings_.layout().bell(rank));
  std::atomic_ref(bell).fetch_add(1);
  syscall(SYS_futex, &bell, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

void ExternalRanks::touch_memory(const cpu::RingPiece& piece, bool writes) {
  if (engine_ == nullptr) return;
  for_transfers(rings_, piece, writes, [&](const memory::Transfer& transfer) { engine_->add(transfer); });
}

bool ExternalRanks::send() {
  const RingLayout& layout = rings_.layout();
  bool any = false;
  for (std::uint32_t remote = 0; remote < layout.ranks; ++remote) {
    if (rings_.is_local(remote)) continue;
    bool told = false;
    for (const RingPiece& piece : rings_.collect(remote)) {
      const std::uint64_t ring = layout.ring(piece.from, remote);
      const auto bytes = static_cast<std::uint32_t>(piece.bytes.size());
      std::uint8_t* to = memory_ + ring + RingLayout::bytes_at;
      RingLayout::for_pieces(piece.position, bytes,
                             [&](std::uint32_t offset, std::uint32_t from, std::uint32_t count) {
                               std::memcpy(to + offset, piece.bytes.data() + from, count);
                             });
      std::atomic_ref(word(ring)).store(piece.position + bytes, std::memory_order_release);
      std::uint32_t& taken = word(layout.ring(remote, piece.from) + RingLayout::taken_at);
      std::atomic_ref(taken).store(piece.taken, std::memory_order_release);
      bytes_out_ += bytes;
      touch_memory(piece, false);
      told = true;
    }
    if (told) wake(remote);
    any |= told;
  }
  return any;
}

bool ExternalRanks::all_wait(const std::vector<std::uint32_t>& ended) const {
  const RingLayout& layout = rings_.layout();
  for (std::uint32_t rank = 0; rank < layout.ranks; ++rank) {
    if (rings_.is_local(rank) || std::ranges::find(ended, rank) != ended.end()) continue;
    const std::uint64_t bell = layout.bell(rank);
    const std::uint64_t sleeps = bell + RingLayout::sleeps_at;
    // One that is about to sleep, but whose bell has rung since it looked, does not wait.
    if (load(word(sleeps)) == 0 || load(word(bell)) != load(word(sleeps + 4))) return false;
  }
  return true;
}

bool ExternalRanks::receive() {
  const RingLayout& layout = rings_.layout();
  bool any = false;
  for (std::uint32_t local = rings_.first(); local < rings_.first() + rings_.local(); ++local) {
    bool told = false;
    for (std::uint32_t remote = 0; remote < layout.ranks; ++remote) {
      if (rings_.is_local(remote)) continue;
      const std::uint64_t ring = layout.ring(remote, local);
      const std::size_t pair = std::size_t{remote} * layout.ranks + local;
      const std::uint32_t written = load(word(ring));
      const std::uint32_t taken = load(word(layout.ring(local, remote) + RingLayout::taken_at));
      if (written == carried_[pair] && taken == taken_[pair]) continue;
      const std::uint32_t bytes = written - carried_[pair];
      if (bytes > RingLayout::ring_bytes) throw std::runtime_error("a native rank has overrun its ring");
      RingPiece piece{remote, local, carried_[pair], taken, {}};
      piece.bytes.resize(bytes);
      const std::uint8_t* from = memory_ + ring + RingLayout::bytes_at;
      RingLayout::for_pieces(piece.position, bytes,
                             [&](std::uint32_t offset, std::uint32_t to, std::uint32_t count) {
                               std::memcpy(piece.bytes.data() + to, from + offset, count);
                             });
      carried_[pair] = written;
      taken_[pair] = taken;
      bytes_in_ += bytes;
      touch_memory(piece, true);
      told |= rings_.deliver(std::move(piece));
    }
    if (told) program_.wake_rank(local);
    any |= told;
  }
  return any;
}

std::uint32_t ExternalRanks::aborted() const {
  return load(word(0));
}

}  // namespace manyscale::cluster

// SPDX-License-Identifier: Apache-2.0
#include "cpu/linux/open_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace manyscale::cpu {

std::int64_t position_after(std::uint64_t position, std::uint64_t bytes, std::int64_t offset, int whence) {
  std::int64_t from = 0;
  if (whence == SEEK_CUR) from = static_cast<std::int64_t>(position);
  if (whence == SEEK_END) from = static_cast<std::int64_t>(bytes);
  if (whence != SEEK_SET && whence != SEEK_CUR && whence != SEEK_END) return -EINVAL;
  std::int64_t sum = 0;
  if (__builtin_add_overflow(from, offset, &sum)) return -EOVERFLOW;
  return sum < 0 ? -EINVAL : sum;
}

std::int64_t BytesFile::read_at(std::span<std::uint8_t> to, std::uint64_t offset) {
  if (to.empty() || offset >= bytes_.size()) return 0;
  const std::size_t count = std::min<std::size_t>(to.size(), bytes_.size() - offset);
  std::memcpy(to.data(), bytes_.data() + offset, count);
  return static_cast<std::int64_t>(count);
}

std::int64_t BytesFile::read(std::span<std::uint8_t> to) {
  const std::int64_t count = read_at(to, position);
  position += static_cast<std::uint64_t>(count);
  return count;
}

std::int64_t BytesFile::seek(std::int64_t offset, int whence) {
  // A character device, such as the standard input of a terminal, cannot be
  // sought in.
  if (S_ISFIFO(mode_) || S_ISCHR(mode_)) return -ESPIPE;
  const std::int64_t moved = position_after(position, bytes_.size(), offset, whence);
  if (moved >= 0) position = static_cast<std::uint64_t>(moved);
  return moved;
}

PipeEnd::PipeEnd(std::shared_ptr<Pipe> pipe, bool writes) : pipe_(std::move(pipe)), writes_(writes) {
  ++(writes_ ? pipe_->writers : pipe_->readers);
}

PipeEnd::~PipeEnd() {
  --(writes_ ? pipe_->writers : pipe_->readers);
}

std::int64_t PipeEnd::read(std::span<std::uint8_t> to) {
  if (writes_) return -EBADF;
  if (to.empty()) return 0;
  if (pipe_->bytes.empty()) return pipe_->writers == 0 ? 0 : would_block;
  const std::size_t count = std::min(to.size(), pipe_->bytes.size());
  std::memcpy(to.data(), pipe_->bytes.data(), count);
  pipe_->bytes.erase(0, count);
  return static_cast<std::int64_t>(count);
}

std::int64_t PipeEnd::write(std::span<const std::uint8_t> from) {
  if (!writes_) return -EBADF;
  if (pipe_->readers == 0) return -EPIPE;
  const std::size_t room = Pipe::capacity - pipe_->bytes.size();
  // A small write is done whole or not at all, as POSIX wants.
  constexpr std::size_t whole = 4096;
  if (room == 0 || (from.size() <= whole && room < from.size())) return would_block;
  const std::size_t count = std::min(from.size(), room);
  pipe_->bytes.append(reinterpret_cast<const char*>(from.data()), count);
  return static_cast<std::int64_t>(count);
}

FileFacts PipeEnd::facts() const {
  return {S_IFIFO | 0600, 0, 0, 1};
}

bool PipeEnd::ready(bool for_write) const {
  if (for_write != writes_) return false;
  if (writes_) return pipe_->readers == 0 || pipe_->bytes.size() < Pipe::capacity;
  return pipe_->writers == 0 || !pipe_->bytes.empty();
}

std::int64_t SegmentFile::read_at(std::span<std::uint8_t> to, std::uint64_t offset) {
  if (to.empty() || offset >= segment_->bytes()) return 0;
  const std::uint64_t count = std::min<std::uint64_t>(to.size(), segment_->bytes() - offset);
  for (std::uint64_t done = 0; done < count;) {
    const std::uint64_t within = (offset + done) % page_bytes;
    const std::uint64_t piece = std::min(count - done, page_bytes - within);
    std::memcpy(to.data() + done, segment_->page(offset + done) + within, piece);
    done += piece;
  }
  return static_cast<std::int64_t>(count);
}

std::int64_t SegmentFile::write_at(std::span<const std::uint8_t> from, std::uint64_t offset) {
  if (offset > most_ || from.size() > most_ - offset) return -EFBIG;
  if (offset + from.size() > segment_->bytes()) segment_->resize(offset + from.size());
  for (std::uint64_t done = 0; done < from.size();) {
    const std::uint64_t within = (offset + done) % page_bytes;
    const std::uint64_t piece = std::min(from.size() - done, page_bytes - within);
    std::memcpy(segment_->page(offset + done) + within, from.data() + done, piece);
    done += piece;
  }
  return static_cast<std::int64_t>(from.size());
}

std::int64_t SegmentFile::read(std::span<std::uint8_t> to) {
  const std::int64_t count = read_at(to, position);
  position += static_cast<std::uint64_t>(count);
  return count;
}

std::int64_t SegmentFile::write(std::span<const std::uint8_t> from) {
  const std::int64_t count = write_at(from, position);
  if (count > 0) position += static_cast<std::uint64_t>(count);
  return count;
}

std::int64_t SegmentFile::seek(std::int64_t offset, int whence) {
  const std::int64_t moved = position_after(position, segment_->bytes(), offset, whence);
  if (moved >= 0) position = static_cast<std::uint64_t>(moved);
  return moved;
}

std::int64_t SegmentFile::truncate(std::uint64_t bytes) {
  if (bytes > most_) return -EFBIG;
  segment_->resize(bytes);
  return 0;
}

FileFacts SegmentFile::facts() const {
  return {S_IFREG | 0600, segment_->bytes(), std::uint64_t{1} << 32 | segment_->number(), 1};
}

}  // namespace manyscale::cpu

// SPDX-License-Identifier: Apache-2.0
// System calls on open files.
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "cpu/linux/descriptors.hpp"
#include "cpu/linux/system_calls.hpp"

namespace manyscale::cpu {

namespace {

constexpr std::uint64_t most_at_once = 1
                                       << 20;  // bytes that one call reads or writes; the rest needs another

struct Piece {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};

// Has the thread wait for a file, if the call would block and may.
std::int64_t wait_if_blocked(Call& call, const OpenFile& file, std::int64_t result) {
  if (result != OpenFile::would_block || (file.status_flags & O_NONBLOCK) != 0) return result;
  call.thread.retries = true;
  call.kernel.wait(call.thread, "a pipe");
  return no_result;
}

std::int64_t read_into(Call& call, OpenFile& file, std::span<const Piece> pieces,
                       std::optional<std::uint64_t> offset) {
  if ((file.status_flags & O_ACCMODE) == O_WRONLY) return -EBADF;
  std::int64_t total = 0;
  std::vector<std::uint8_t> buffer;
  for (const Piece& piece : pieces) {
    buffer.resize(std::min(piece.bytes, most_at_once));
    if (!call.memory().allows(piece.address, buffer.size(), Permission::write))
      return total > 0 ? total : -EFAULT;
    const std::int64_t count =
        offset ? file.read_at(buffer, *offset + static_cast<std::uint64_t>(total)) : file.read(buffer);
    if (count < 0) return total > 0 ? total : wait_if_blocked(call, file, count);
    if (!call.memory().write(piece.address, buffer.data(), static_cast<std::uint64_t>(count))) {
      refuse_memory(call, piece.address);
      return -EFAULT;
    }
    total += count;
    if (static_cast<std::uint64_t>(count) < piece.bytes) break;
  }
  if (total > 0) call.kernel.retry_waiting();
  return total;
}

std::int64_t write_from(Call& call, OpenFile& file, std::span<const Piece> pieces,
                        std::optional<std::uint64_t> offset) {
  if ((file.status_flags & O_ACCMODE) == O_RDONLY) return -EBADF;
  std::int64_t total = 0;
  std::vector<std::uint8_t> buffer;
  for (const Piece& piece : pieces) {
    buffer.resize(std::min(piece.bytes, most_at_once));
    if (!call.memory().read(piece.address, buffer.data(), buffer.size())) return total > 0 ? total : -EFAULT;
    const std::int64_t count =
        offset ? file.write_at(buffer, *offset + static_cast<std::uint64_t>(total)) : file.write(buffer);
    if (count == -EFBIG && dynamic_cast<OutputFile*>(&file) != nullptr) {
      call.kernel.fail(call.thread, "output", call.process.output_limit,
                       "the process has written more than " + std::to_string(call.process.output_limit) +
                           " bytes to its standard output and error; a higher "
                           "limit can be given");
    }
    if (count == -EPIPE) call.kernel.raise(call.thread, SIGPIPE);
    if (count < 0) return total > 0 ? total : wait_if_blocked(call, file, count);
    total += count;
    if (static_cast<std::uint64_t>(count) < piece.bytes) break;
  }
  if (total > 0) call.kernel.retry_waiting();
  return total;
}

std::int64_t pieces_of(Call& call, std::vector<Piece>& pieces) {
  constexpr std::uint64_t most_pieces = 1024;
  if (call[2] > most_pieces) return -EINVAL;
  pieces.resize(call[2]);
  return call.memory().read(call[1], pieces.data(), pieces.size() * sizeof(Piece)) ? 0 : -EFAULT;
}

using Transfer = std::int64_t (*)(Call&, OpenFile&, std::span<const Piece>, std::optional<std::uint64_t>);

std::int64_t transfer_one(Call& call, Transfer transfer, std::optional<std::uint64_t> offset) {
  OpenFile* file = file_of(call, call.whole(0));
  if (file == nullptr) return -EBADF;
  if (offset && static_cast<std::int64_t>(*offset) < 0) return -EINVAL;
  const Piece piece{call[1], call[2]};
  return transfer(call, *file, {&piece, 1}, offset);
}

std::int64_t transfer_many(Call& call, Transfer transfer) {
  OpenFile* file = file_of(call, call.whole(0));
  if (file == nullptr) return -EBADF;
  std::vector<Piece> pieces;
  const std::int64_t error = pieces_of(call, pieces);
  return error != 0 ? error : transfer(call, *file, pieces, {});
}

}  // namespace

std::int64_t call_read(Call& call) {
  return transfer_one(call, read_into, {});
}

std::int64_t call_write(Call& call) {
  return transfer_one(call, write_from, {});
}

std::int64_t call_pread(Call& call) {
  return transfer_one(call, read_into, call[3]);
}

std::int64_t call_pwrite(Call& call) {
  return transfer_one(call, write_from, call[3]);
}

std::int64_t call_readv(Call& call) {
  return transfer_many(call, read_into);
}

std::int64_t call_writev(Call& call) {
  return transfer_many(call, write_from);
}

std::int64_t call_lseek(Call& call) {
  OpenFile* file = file_of(call, call.whole(0));
  return file == nullptr ? -EBADF : file->seek(static_cast<std::int64_t>(call[1]), call.whole(2));
}

std::int64_t call_close(Call& call) {
  if (call.process.files.erase(call.whole(0)) == 0) return -EBADF;
  call.process.close_on_exec.erase(call.whole(0));
  call.kernel.retry_waiting();
  return 0;
}

std::int64_t call_fstat(Call& call) {
  const OpenFile* file = file_of(call, call.whole(0));
  return file == nullptr ? -EBADF : put_facts(call, call[1], file->facts());
}

std::int64_t call_getdents(Call& call) {
  OpenFile* file = file_of(call, call.whole(0));
  if (file == nullptr) return -EBADF;
  const std::vector<DirectoryEntry>* entries = file->entries();
  if (entries == nullptr) return -ENOTDIR;
  constexpr std::size_t name_at = 19;  // after inode, offset, length and type
  std::vector<std::uint8_t> bytes;
  const std::uint64_t room = std::min(call[2], most_at_once);
  while (file->position < entries->size()) {
    const DirectoryEntry& entry = (*entries)[file->position];
    const std::size_t length = (name_at + entry.name.size() + 1 + 7) / 8 * 8;
    if (bytes.size() + length > room) break;
    const std::uint64_t next = ++file->position;
    const auto short_length = static_cast<std::uint16_t>(length);
    bytes.resize(bytes.size() + length);
    std::uint8_t* at = bytes.data() + bytes.size() - length;
    std::memcpy(at, &entry.identity, 8);
    std::memcpy(at + 8, &next, 8);
    std::memcpy(at + 16, &short_length, 2);
    at[18] = entry.type;
    std::memcpy(at + name_at, entry.name.data(), entry.name.size());
  }
  if (bytes.empty() && file->position < entries->size()) return -EINVAL;
  return call.memory().write(call[1], bytes.data(), bytes.size()) ? static_cast<std::int64_t>(bytes.size())
                                                                  : -EFAULT;
}

std::int64_t call_ioctl(Call& call) {
  // No file is a terminal or a device.
  return file_of(call, call.whole(0)) == nullptr ? -EBADF : -ENOTTY;
}

std::int64_t call_fcntl(Call& call) {
  const int descriptor = call.whole(0);
  OpenFile* file = file_of(call, descriptor);
  if (file == nullptr) return -EBADF;
  constexpr int changeable = O_APPEND | O_NONBLOCK;
  switch (call.whole(1)) {
    case F_DUPFD:
    case F_DUPFD_CLOEXEC:
      return add_file(call, call.process.files[descriptor], call.whole(1) == F_DUPFD_CLOEXEC, call.whole(2));
    case F_GETFD:
      return call.process.close_on_exec[descriptor] ? FD_CLOEXEC : 0;
    case F_SETFD:
      call.process.close_on_exec[descriptor] = (call[2] & FD_CLOEXEC) != 0;
      return 0;
    case F_GETFL:
      return file->status_flags;
    case F_SETFL:
      file->status_flags = (file->status_flags & ~changeable) | (call.whole(2) & changeable);
      return 0;
    case F_SETLK:
    case F_SETLKW:
      return 0;
    default:
      return -EINVAL;
  }
}

std::int64_t call_dup(Call& call) {
  if (file_of(call, call.whole(0)) == nullptr) return -EBADF;
  return add_file(call, call.process.files[call.whole(0)], false, 0);
}

std::int64_t call_dup3(Call& call) {
  if (file_of(call, call.whole(0)) == nullptr) return -EBADF;
  if (call.whole(0) == call.whole(1)) return -EINVAL;
  if (call.whole(1) < 0 || call.whole(1) >= most_descriptors) return -EBADF;
  call.process.files[call.whole(1)] = call.process.files[call.whole(0)];
  call.process.close_on_exec[call.whole(1)] = (call[2] & O_CLOEXEC) != 0;
  call.kernel.retry_waiting();
  return call.whole(1);
}

std::int64_t call_pipe(Call& call) {
  auto pipe = std::make_shared<Pipe>();
  std::array<std::int32_t, 2> numbers{};
  for (int end = 0; end < 2; ++end) {
    auto file = std::make_shared<PipeEnd>(pipe, end == 1);
    file->status_flags = (end == 1 ? O_WRONLY : O_RDONLY) | (call.whole(1) & O_NONBLOCK);
    const std::int64_t number = add_file(call, std::move(file), (call[1] & O_CLOEXEC) != 0, 0);
    if (number < 0) {
      if (end == 1) call.process.files.erase(numbers[0]);
      return number;
    }
    numbers[static_cast<std::size_t>(end)] = static_cast<std::int32_t>(number);
  }
  return call.put(call[0], numbers) ? 0 : -EFAULT;
}

std::int64_t call_ftruncate(Call& call) {
  OpenFile* file = file_of(call, call.whole(0));
  if (file == nullptr) return -EBADF;
  if ((file->status_flags & O_ACCMODE) == O_RDONLY || static_cast<std::int64_t>(call[1]) < 0) return -EINVAL;
  return file->truncate(call[1]);
}

std::int64_t call_fsync(Call& call) {
  return file_of(call, call.whole(0)) == nullptr ? -EBADF : 0;
}

std::int64_t call_poll(Call& call) {
  struct Entry {
    std::int32_t descriptor;
    std::int16_t wanted;
    std::int16_t found;
  };
  if (call[1] > static_cast<std::uint64_t>(most_descriptors)) return -EINVAL;
  std::vector<Entry> entries(call[1]);
  const std::uint64_t bytes = entries.size() * sizeof(Entry);
  if (!call.memory().read(call[0], entries.data(), bytes)) return -EFAULT;
  std::int64_t count = 0;
  for (Entry& entry : entries) {
    entry.found = 0;
    if (entry.descriptor < 0) continue;
    const OpenFile* file = file_of(call, entry.descriptor);
    if (file == nullptr) {
      entry.found = POLLNVAL;
    } else {
      if ((entry.wanted & POLLIN) != 0 && file->ready(false)) entry.found |= POLLIN;
      if ((entry.wanted & POLLOUT) != 0 && file->ready(true)) entry.found |= POLLOUT;
    }
    if (entry.found != 0) ++count;
  }
  // The deadline is kept over retries in the thread; a new wait begins with none.
  Time deadline = call.thread.poll_deadline;
  if (deadline == 0) {
    if (const std::int64_t error = get_deadline(call, call[2], deadline); error != 0) return error;
  }
  if (count == 0 && call.kernel.time < deadline) {
    call.thread.poll_deadline = deadline;
    call.thread.retries = true;
    call.kernel.wait(call.thread, "files to be ready", deadline);
    return no_result;
  }
  call.thread.poll_deadline = 0;
  return call.memory().write(call[0], entries.data(), bytes) ? count : -EFAULT;
}

std::int64_t call_memfd_create(Call& call) {
  auto segment = call.kernel.make_segment(0);
  if (!segment) return -ENOMEM;
  auto file = std::make_shared<SegmentFile>(std::move(segment), call.kernel.memory_limit());
  file->status_flags = O_RDWR;
  return add_file(call, std::move(file), (call[1] & 1) != 0, 0);
}

}  // namespace manyscale::cpu

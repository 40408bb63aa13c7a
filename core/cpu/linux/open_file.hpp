// SPDX-License-Identifier: Apache-2.0
// What a descriptor of a simulated process stands for. Numbers that a call
// gives back are as Linux has them: negative ones are errors (the errno numbers
// of RISC-V Linux are those of this host's Linux).
#pragma once
#include <cerrno>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cpu/virtual_memory/address_space.hpp"

namespace manyscale::cpu {

// What a program may ask about a file. Times are left out (they read as 0), so
// that runs do not depend on them.
struct FileFacts {
  std::uint32_t mode = 0;  // type and permissions, as st_mode
  std::uint64_t bytes = 0;
  std::uint64_t identity = 0;  // as st_ino
  std::uint32_t links = 1;
};

struct DirectoryEntry {
  std::string name;
  std::uint64_t identity = 0;
  std::uint8_t type = 0;  // as DT_REG and so on
};

class OpenFile {
 public:
  virtual ~OpenFile() = default;

  // At the file's own position, which moves on. `would_block` where the caller
  // has to wait.
  virtual std::int64_t read(std::span<std::uint8_t>) { return -EBADF; }
  virtual std::int64_t write(std::span<const std::uint8_t>) { return -EBADF; }
  virtual std::int64_t read_at(std::span<std::uint8_t>, std::uint64_t) { return -ESPIPE; }
  virtual std::int64_t write_at(std::span<const std::uint8_t>, std::uint64_t) { return -ESPIPE; }
  virtual std::int64_t seek(std::int64_t, int) { return -ESPIPE; }
  virtual std::int64_t truncate(std::uint64_t) { return -EINVAL; }
  virtual FileFacts facts() const = 0;
  // The folder's entries by name, or nullptr if it is none.
  virtual const std::vector<DirectoryEntry>* entries() { return nullptr; }
  // The memory that a shared mapping of the file shows; none if it cannot be
  // mapped so.
  virtual std::shared_ptr<SharedSegment> segment() { return {}; }
  // Whether a read (or write) would not block now.
  virtual bool ready(bool /*for_write*/) const { return true; }

  static constexpr std::int64_t would_block = -EAGAIN;

  int status_flags = 0;        // O_APPEND, O_NONBLOCK and the access mode
  std::string path;            // as the program sees it, for folders that other paths start from
  std::uint64_t position = 0;  // of a folder: the next entry
};

// A file that is bytes in memory: can be read and sought in.
class BytesFile final : public OpenFile {
 public:
  BytesFile(std::string bytes, std::uint32_t mode, std::uint64_t identity)
      : bytes_(std::move(bytes)), mode_(mode), identity_(identity) {}

  std::int64_t read(std::span<std::uint8_t> to) override;
  std::int64_t read_at(std::span<std::uint8_t> to, std::uint64_t offset) override;
  std::int64_t seek(std::int64_t offset, int whence) override;
  FileFacts facts() const override { return {mode_, bytes_.size(), identity_, 1}; }

 private:
  std::string bytes_;
  std::uint32_t mode_;
  std::uint64_t identity_;
};

// A pipe's bytes between its two ends.
struct Pipe {
  static constexpr std::size_t capacity = 65536;
  std::string bytes;
  int readers = 0, writers = 0;
};

class PipeEnd final : public OpenFile {
 public:
  PipeEnd(std::shared_ptr<Pipe> pipe, bool writes);
  ~PipeEnd() override;

  std::int64_t read(std::span<std::uint8_t> to) override;
  std::int64_t write(std::span<const std::uint8_t> from) override;
  FileFacts facts() const override;
  bool ready(bool for_write) const override;

 private:
  std::shared_ptr<Pipe> pipe_;
  bool writes_;
};

// A file of /dev/shm or of memfd_create: its bytes are a shared segment.
class SegmentFile final : public OpenFile {
 public:
  // It may become as large as `most` bytes.
  SegmentFile(std::shared_ptr<SharedSegment> segment, std::uint64_t most)
      : segment_(std::move(segment)), most_(most) {}

  std::int64_t read(std::span<std::uint8_t> to) override;
  std::int64_t write(std::span<const std::uint8_t> from) override;
  std::int64_t read_at(std::span<std::uint8_t> to, std::uint64_t offset) override;
  std::int64_t write_at(std::span<const std::uint8_t> from, std::uint64_t offset) override;
  std::int64_t seek(std::int64_t offset, int whence) override;
  std::int64_t truncate(std::uint64_t bytes) override;
  FileFacts facts() const override;
  std::shared_ptr<SharedSegment> segment() override { return segment_; }

 private:
  std::shared_ptr<SharedSegment> segment_;
  std::uint64_t most_;
};

// The position after a seek, or a negative error.
std::int64_t position_after(std::uint64_t position, std::uint64_t bytes, std::int64_t offset, int whence);

}  // namespace manyscale::cpu

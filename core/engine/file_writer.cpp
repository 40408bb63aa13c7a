// SPDX-License-Identifier: Apache-2.0
#include "engine/file_writer.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace manyscale {
namespace {

constexpr std::size_t buffer_bytes = 1 << 20;

}  // namespace

FileError::FileError(const std::string& path, int number)
    : std::runtime_error("cannot write " + path + ": " + std::generic_category().message(number)),
      number_(number) {}

FileWriter::FileWriter(std::string path) : path_(std::move(path)) {
  do {
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  } while (descriptor_ < 0 && errno == EINTR);
  if (descriptor_ < 0) throw FileError(path_, errno);
  pending_.reserve(buffer_bytes);
}

FileWriter::~FileWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void FileWriter::write(std::string_view bytes) {
  if (pending_.size() + bytes.size() > buffer_bytes) {
    write_all(pending_);
    pending_.clear();
  }
  if (bytes.size() > buffer_bytes) {
    write_all(bytes);
  } else {
    pending_ += bytes;
  }
}

void FileWriter::close() {
  write_all(pending_);
  pending_.clear();
  const int descriptor = std::exchange(descriptor_, -1);
  // The descriptor is gone even when a signal interrupts the call.
  if (descriptor >= 0 && ::close(descriptor) != 0 && errno != EINTR) throw FileError(path_, errno);
}

void FileWriter::write_all(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw FileError(path_, count < 0 ? errno : ENOSPC);
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

}  // namespace manyscale

// SPDX-License-Identifier: Apache-2.0
// The folder of the host that a program sees as its /. Nothing outside of it
// can be reached: a path is walked name by name with openat and O_NOFOLLOW,
// `..` stops at the root, and symbolic links are followed by us, with absolute
// ones starting at the root.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cpu/linux/open_file.hpp"

namespace manyscale::cpu {

// A descriptor of the host, closed with its owner.
class HostDescriptor {
 public:
  explicit HostDescriptor(int number = -1) : number_(number) {}
  HostDescriptor(HostDescriptor&& other) noexcept : number_(other.number_) { other.number_ = -1; }
  HostDescriptor& operator=(HostDescriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~HostDescriptor();

  int number() const { return number_; }
  bool valid() const { return number_ >= 0; }

 private:
  int number_;
};

class HostDirectory {
 public:
  // Without a folder every path is missing.
  HostDirectory() = default;
  // Throws std::invalid_argument if there is no such folder.
  HostDirectory(const std::string& folder, bool writable);

  bool present() const { return root_.valid(); }
  bool writable() const { return writable_; }

  // Paths are absolute, as the program sees them. Numbers below 0 are errors.
  struct Opened {
    std::int64_t error = 0;
    std::unique_ptr<OpenFile> file;
  };
  Opened open(const std::string& path, int flags, std::uint32_t mode) const;
  std::int64_t facts(const std::string& path, bool follow, FileFacts& facts) const;
  std::int64_t read_link(const std::string& path, std::string& target) const;
  std::int64_t make_folder(const std::string& path, std::uint32_t mode) const;
  std::int64_t remove(const std::string& path, bool folder) const;
  std::int64_t rename(const std::string& from, const std::string& to, bool replace) const;

 private:
  // Where a path leads: a folder, and a name in it that is no link (or is one
  // that should not be followed).
  struct ResolvedPath {
    std::int64_t error = 0;
    HostDescriptor folder;
    std::string name;
  };
  ResolvedPath find(const std::string& path, bool follow_last) const;

  HostDescriptor root_;
  bool writable_ = false;
};

}  // namespace manyscale::cpu

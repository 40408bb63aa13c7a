// SPDX-License-Identifier: Apache-2.0
#include "cpu/linux/host_directory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <deque>
#include <stdexcept>

namespace manyscale::cpu {

namespace {

constexpr int most_links = 40;
constexpr int folder_flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

FileFacts facts_of(const struct stat& status) {
  return {status.st_mode, static_cast<std::uint64_t>(status.st_size), status.st_ino,
          static_cast<std::uint32_t>(status.st_nlink)};
}

FileFacts facts_of(int descriptor) {
  struct stat status{};
  return fstat(descriptor, &status) == 0 ? facts_of(status) : FileFacts{};
}

std::int64_t result_of(std::int64_t result) {
  return result < 0 ? -errno : result;
}

// A regular file of the host.
class HostFile final : public OpenFile {
 public:
  explicit HostFile(HostDescriptor descriptor) : descriptor_(std::move(descriptor)) {}

  std::int64_t read(std::span<std::uint8_t> to) override {
    return result_of(::read(descriptor_.number(), to.data(), to.size()));
  }
  std::int64_t write(std::span<const std::uint8_t> from) override {
    return result_of(::write(descriptor_.number(), from.data(), from.size()));
  }
  std::int64_t read_at(std::span<std::uint8_t> to, std::uint64_t offset) override {
    return result_of(pread(descriptor_.number(), to.data(), to.size(), static_cast<off_t>(offset)));
  }
  std::int64_t write_at(std::span<const std::uint8_t> from, std::uint64_t offset) override {
    return result_of(pwrite(descriptor_.number(), from.data(), from.size(), static_cast<off_t>(offset)));
  }
  std::int64_t seek(std::int64_t offset, int whence) override {
    return result_of(lseek(descriptor_.number(), offset, whence));
  }
  std::int64_t truncate(std::uint64_t bytes) override {
    return result_of(ftruncate(descriptor_.number(), static_cast<off_t>(bytes)));
  }
  FileFacts facts() const override { return facts_of(descriptor_.number()); }

 private:
  HostDescriptor descriptor_;
};

// A folder of the host, its entries sorted so that no run depends on the host's
// order.
class HostListing final : public OpenFile {
 public:
  explicit HostListing(HostDescriptor descriptor) : descriptor_(std::move(descriptor)) {}

  std::int64_t read(std::span<std::uint8_t>) override { return -EISDIR; }
  std::int64_t seek(std::int64_t offset, int whence) override {
    if (whence != SEEK_SET || offset < 0) return -EINVAL;
    position = static_cast<std::uint64_t>(offset);
    return offset;
  }
  FileFacts facts() const override { return facts_of(descriptor_.number()); }
  const std::vector<DirectoryEntry>* entries() override {
    if (entries_.empty()) list();
    return &entries_;
  }

 private:
  void list() {
    const int copy = openat(descriptor_.number(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (copy < 0) return;
    DIR* folder = fdopendir(copy);
    if (folder == nullptr) {
      close(copy);
      return;
    }
    while (const dirent* entry = readdir(folder))
      entries_.push_back({entry->d_name, entry->d_ino, entry->d_type});
    closedir(folder);
    std::sort(entries_.begin(), entries_.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  }

  HostDescriptor descriptor_;
  std::vector<DirectoryEntry> entries_;
};

// Adds the names of a path before those still to be walked.
void put_names_first(std::deque<std::string>& names, const std::string& path) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    if (end > at) parts.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  names.insert(names.begin(), parts.begin(), parts.end());
}

}  // namespace

HostDescriptor::~HostDescriptor() {
  if (number_ >= 0) close(number_);
}

HostDirectory::HostDirectory(const std::string& folder, bool writable)
    : root_(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)), writable_(writable) {
  if (!root_.valid()) throw std::invalid_argument("root: there is no folder '" + folder + "'");
}

HostDirectory::ResolvedPath HostDirectory::find(const std::string& path, bool follow_last) const {
  ResolvedPath resolved;
  const auto fail = [&](std::int64_t error) {
    resolved.error = -error;
    return std::move(resolved);
  };
  if (!present()) return fail(ENOENT);
  std::deque<std::string> names;
  put_names_first(names, path);
  const bool wants_folder = path.ends_with('/');
  // The folders from the root to where the walk is, so that `..` never asks the
  // host.
  std::vector<HostDescriptor> walked;
  walked.emplace_back(openat(root_.number(), ".", folder_flags));
  if (!walked.back().valid()) return fail(errno);
  int links = 0;
  while (!names.empty()) {
    const std::string name = std::move(names.front());
    names.pop_front();
    if (name == ".") continue;
    if (name == "..") {
      if (walked.size() > 1) walked.pop_back();
      continue;
    }
    const bool last = names.empty();
    std::array<char, PATH_MAX> target;
    const auto length = last && !follow_last && !wants_folder
                            ? -1
                            : readlinkat(walked.back().number(), name.c_str(), target.data(), target.size());
    if (length >= 0) {
      if (++links > most_links) return fail(ELOOP);
      if (length == static_cast<ssize_t>(target.size())) return fail(ENAMETOOLONG);
      const std::string to(target.data(), static_cast<std::size_t>(length));
      if (to.starts_with('/')) walked.erase(walked.begin() + 1, walked.end());
      put_names_first(names, to);
      continue;
    }
    if (last) {
      resolved.name = name;
      break;
    }
    HostDescriptor next(openat(walked.back().number(), name.c_str(), folder_flags));
    if (!next.valid()) return fail(errno);
    if (walked.size() > 256) return fail(ENAMETOOLONG);
    walked.push_back(std::move(next));
  }
  if (resolved.name.empty()) resolved.name = ".";
  resolved.folder = std::move(walked.back());
  return resolved;
}

HostDirectory::Opened HostDirectory::open(const std::string& path, int flags, std::uint32_t mode) const {
  Opened opened;
  const bool changes = (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0;
  const bool exclusive = (flags & O_CREAT) != 0 && (flags & O_EXCL) != 0;
  const ResolvedPath resolved = find(path, (flags & O_NOFOLLOW) == 0 && !exclusive);
  if (resolved.error != 0) {
    opened.error = resolved.error;
    return opened;
  }
  struct stat status{};
  const bool exists =
      fstatat(resolved.folder.number(), resolved.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
  // Devices, sockets and named pipes of the host are out of reach.
  if (exists && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) {
    opened.error = S_ISLNK(status.st_mode) ? -ELOOP : -EACCES;
    return opened;
  }
  if (changes && !writable_) {
    if ((flags & O_ACCMODE) != O_RDONLY || !exists || (flags & O_TRUNC) != 0) {
      opened.error = exists && exclusive ? -EEXIST : -EROFS;
      return opened;
    }
  }
  constexpr int passed = O_ACCMODE | O_CREAT | O_EXCL | O_TRUNC | O_APPEND | O_DIRECTORY;
  HostDescriptor descriptor(openat(resolved.folder.number(), resolved.name.c_str(),
                                   (flags & passed) | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
                                   mode & 0777));
  if (!descriptor.valid()) {
    opened.error = -errno;
    return opened;
  }
  if (S_ISDIR(facts_of(descriptor.number()).mode)) {
    opened.file = std::make_unique<HostListing>(std::move(descriptor));
  } else {
    opened.file = std::make_unique<HostFile>(std::move(descriptor));
  }
  return opened;
}

std::int64_t HostDirectory::facts(const std::string& path, bool follow, FileFacts& facts) const {
  const ResolvedPath resolved = find(path, follow);
  if (resolved.error != 0) return resolved.error;
  struct stat status{};
  if (fstatat(resolved.folder.number(), resolved.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
    return -errno;
  facts = facts_of(status);
  return 0;
}

std::int64_t HostDirectory::read_link(const std::string& path, std::string& target) const {
  const ResolvedPath resolved = find(path, false);
  if (resolved.error != 0) return resolved.error;
  std::array<char, PATH_MAX> bytes;
  const auto length = readlinkat(resolved.folder.number(), resolved.name.c_str(), bytes.data(), bytes.size());
  if (length < 0) return -errno;
  target.assign(bytes.data(), static_cast<std::size_t>(length));
  return 0;
}

std::int64_t HostDirectory::make_folder(const std::string& path, std::uint32_t mode) const {
  const ResolvedPath resolved =
      find(path.ends_with('/') ? path.substr(0, path.find_last_not_of('/') + 1) : path, false);
  if (resolved.error != 0) return resolved.error;
  if (!writable_) return -EROFS;
  return result_of(mkdirat(resolved.folder.number(), resolved.name.c_str(), mode & 0777));
}

std::int64_t HostDirectory::remove(const std::string& path, bool folder) const {
  const ResolvedPath resolved = find(path, false);
  if (resolved.error != 0) return resolved.error;
  if (!writable_) return -EROFS;
  return result_of(unlinkat(resolved.folder.number(), resolved.name.c_str(), folder ? AT_REMOVEDIR : 0));
}

std::int64_t HostDirectory::rename(const std::string& from, const std::string& to, bool replace) const {
  const ResolvedPath source = find(from, false);
  if (source.error != 0) return source.error;
  const ResolvedPath target = find(to, false);
  if (target.error != 0) return target.error;
  if (!writable_) return -EROFS;
  return result_of(renameat2(source.folder.number(), source.name.c_str(), target.folder.number(),
                             target.name.c_str(), replace ? 0 : RENAME_NOREPLACE));
}

}  // namespace manyscale::cpu

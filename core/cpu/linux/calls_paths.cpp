// SPDX-License-Identifier: Apache-2.0
// System calls that name files by path.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <climits>
#include <cstring>

#include "cpu/linux/descriptors.hpp"
#include "cpu/linux/synthetic_files.hpp"

namespace manyscale::cpu {

namespace {

constexpr std::string_view shared_files_path = "/dev/shm/";

// A path without `.`, `..` and empty names; used for the simulated files only,
// where no link can lie between.
std::string plain_path(const std::string& path) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string name = path.substr(at, end - at);
    if (name == "..") {
      if (!names.empty()) names.pop_back();
    } else if (!name.empty() && name != ".") {
      names.push_back(name);
    }
    at = end + 1;
  }
  std::string plain;
  for (const std::string& name : names) plain += "/" + name;
  return plain.empty() ? "/" : plain;
}

// The absolute path that a descriptor of a folder and a path stand for, or an
// error.
struct Located {
  std::int64_t error = 0;
  std::string path;
  std::string plain;
};

Located locate(Call& call, int folder, std::uint64_t address) {
  Located located;
  const std::optional<std::string> path = call.memory().read_string(address, PATH_MAX);
  if (!path) {
    located.error = -EFAULT;
    return located;
  }
  if (path->size() >= PATH_MAX) located.error = -ENAMETOOLONG;
  if (path->empty()) located.error = -ENOENT;
  if (path->starts_with('/')) {
    located.path = *path;
  } else if (folder == AT_FDCWD) {
    located.path = call.process.folder + "/" + *path;
  } else {
    OpenFile* file = file_of(call, folder);
    if (file == nullptr) {
      located.error = -EBADF;
    } else if (file->entries() == nullptr) {
      located.error = -ENOTDIR;
    } else {
      located.path = file->path + "/" + *path;
    }
  }
  if (located.path.size() >= PATH_MAX) located.error = -ENAMETOOLONG;
  located.plain = plain_path(located.path);
  return located;
}

// The file of /dev/shm that a path names; empty if it names none there.
std::string shared_name(const std::string& plain) {
  return plain.starts_with(shared_files_path) ? plain.substr(shared_files_path.size()) : std::string();
}

std::int64_t open_shared(Call& call, const std::string& name, int flags) {
  auto& files = call.kernel.shared_files;
  const auto found = files.find(name);
  if (found != files.end() && (flags & O_CREAT) != 0 && (flags & O_EXCL) != 0) return -EEXIST;
  if (found == files.end()) {
    if ((flags & O_CREAT) == 0) return -ENOENT;
    if (name.find('/') != std::string::npos) return -ENOENT;
    auto segment = call.kernel.make_segment(0);
    if (!segment) return -ENOMEM;
    files[name] = std::move(segment);
  } else if ((flags & O_TRUNC) != 0) {
    found->second->resize(0);
  }
  auto file = std::make_shared<SegmentFile>(files[name], call.kernel.memory_limit());
  file->status_flags = flags & (O_ACCMODE | O_APPEND | O_NONBLOCK);
  return add_file(call, std::move(file), (flags & O_CLOEXEC) != 0, 0);
}

std::int64_t find_facts(Call& call, int folder, std::uint64_t address, int flags, FileFacts& facts) {
  const std::optional<std::string> text = call.memory().read_string(address, PATH_MAX);
  if ((flags & AT_EMPTY_PATH) != 0 && (!text || text->empty())) {
    const OpenFile* file = file_of(call, folder);
    if (file == nullptr) return -EBADF;
    facts = file->facts();
    return 0;
  }
  const Located located = locate(call, folder, address);
  if (located.error != 0) return located.error;
  if (const std::string name = shared_name(located.plain); !name.empty()) {
    const auto found = call.kernel.shared_files.find(name);
    if (found == call.kernel.shared_files.end()) return -ENOENT;
    facts = SegmentFile(found->second, 0).facts();
    return 0;
  }
  if (located.plain == "/dev/shm") {
    facts = {S_IFDIR | 01777, 0, 9, 2};
    return 0;
  }
  if (const auto file = open_synthetic(call.kernel, call.process, located.plain)) {
    facts = file->facts();
    return 0;
  }
  if (is_synthetic_path(located.plain)) return -ENOENT;
  return call.kernel.folder().facts(located.path, (flags & AT_SYMLINK_NOFOLLOW) == 0, facts);
}

}  // namespace

std::int64_t call_openat(Call& call) {
  const Located located = locate(call, call.whole(0), call[1]);
  if (located.error != 0) return located.error;
  const int flags = call.whole(2);
  if (const std::string name = shared_name(located.plain); !name.empty())
    return open_shared(call, name, flags);
  std::shared_ptr<OpenFile> file = open_synthetic(call.kernel, call.process, located.plain);
  if (!file) {
    if (is_synthetic_path(located.plain)) return -ENOENT;
    HostDirectory::Opened opened =
        call.kernel.folder().open(located.path, flags, static_cast<std::uint32_t>(call[3]) & ~022u);
    if (opened.error != 0) return opened.error;
    file = std::move(opened.file);
  }
  file->status_flags = flags & (O_ACCMODE | O_APPEND | O_NONBLOCK);
  file->path = located.path;
  return add_file(call, std::move(file), (flags & O_CLOEXEC) != 0, 0);
}

std::int64_t call_fstatat(Call& call) {
  FileFacts facts;
  const std::int64_t error = find_facts(call, call.whole(0), call[1], call.whole(3), facts);
  return error != 0 ? error : put_facts(call, call[2], facts);
}

std::int64_t call_statx(Call& call) {
  FileFacts facts;
  const std::int64_t error = find_facts(call, call.whole(0), call[1], call.whole(2), facts);
  if (error != 0) return error;
  struct {
    std::uint32_t mask = 0x7ff, block_bytes = 4096;
    std::uint64_t attributes = 0;
    std::uint32_t links = 0, user = 1000, group = 1000;
    std::uint16_t mode = 0, padding = 0;
    std::uint64_t identity = 0, bytes = 0, blocks = 0, attributes_mask = 0;
    std::array<std::uint64_t, 8> times{};
    std::array<std::uint32_t, 4> devices{0, 0, 0, 1};
    std::array<std::uint64_t, 14> unused{};
  } status;
  static_assert(sizeof status == 256);
  status.links = facts.links;
  status.mode = static_cast<std::uint16_t>(facts.mode);
  status.identity = facts.identity;
  status.bytes = facts.bytes;
  status.blocks = (facts.bytes + 511) / 512;
  return call.put(call[4], status) ? 0 : -EFAULT;
}

std::int64_t call_readlinkat(Call& call) {
  const Located located = locate(call, call.whole(0), call[1]);
  if (located.error != 0) return located.error;
  if (call.whole(3) <= 0) return -EINVAL;
  std::string target;
  if (located.plain == "/proc/self/exe") {
    target = call.process.executable;
  } else {
    if (is_synthetic_path(located.plain)) return -EINVAL;
    const std::int64_t error = call.kernel.folder().read_link(located.path, target);
    if (error != 0) return error;
  }
  const std::uint64_t bytes = std::min<std::uint64_t>(target.size(), call[3]);
  return call.memory().write(call[2], target.data(), bytes) ? static_cast<std::int64_t>(bytes) : -EFAULT;
}

std::int64_t call_faccessat(Call& call) {
  FileFacts facts;
  const std::int64_t error = find_facts(call, call.whole(0), call[1], 0, facts);
  if (error != 0) return error;
  const bool may_write = call.kernel.folder().writable() || !S_ISREG(facts.mode);
  if ((call[2] & W_OK) != 0 && !may_write) return -EROFS;
  return (call[2] & X_OK) != 0 && (facts.mode & 0111) == 0 ? -EACCES : 0;
}

std::int64_t call_unlinkat(Call& call) {
  const Located located = locate(call, call.whole(0), call[1]);
  if (located.error != 0) return located.error;
  if (const std::string name = shared_name(located.plain); !name.empty()) {
    return call.kernel.shared_files.erase(name) == 0 ? -ENOENT : 0;
  }
  if (is_synthetic_path(located.plain)) return -EACCES;
  return call.kernel.folder().remove(located.path, (call[2] & AT_REMOVEDIR) != 0);
}

std::int64_t call_mkdirat(Call& call) {
  const Located located = locate(call, call.whole(0), call[1]);
  if (located.error != 0) return located.error;
  if (is_synthetic_path(located.plain)) return -EACCES;
  return call.kernel.folder().make_folder(located.path, static_cast<std::uint32_t>(call[2]) & ~022u);
}

std::int64_t call_renameat(Call& call) {
  const Located from = locate(call, call.whole(0), call[1]);
  if (from.error != 0) return from.error;
  const Located to = locate(call, call.whole(2), call[3]);
  if (to.error != 0) return to.error;
  if (is_synthetic_path(from.plain) || is_synthetic_path(to.plain)) return -EXDEV;
  // The older call, renameat, has no flags.
  constexpr std::uint64_t with_flags = 276;
  const std::uint64_t flags = call.thread.hart.x[17] == with_flags ? call[4] : 0;
  if ((flags & ~std::uint64_t{RENAME_NOREPLACE}) != 0) return -EINVAL;
  return call.kernel.folder().rename(from.path, to.path, flags == 0);
}

std::int64_t call_getcwd(Call& call) {
  const std::string& folder = call.process.folder;
  if (call[1] < folder.size() + 1) return -ERANGE;
  if (!call.memory().write(call[0], folder.c_str(), folder.size() + 1)) return -EFAULT;
  return static_cast<std::int64_t>(folder.size() + 1);
}

std::int64_t call_chdir(Call& call) {
  const Located located = locate(call, AT_FDCWD, call[0]);
  if (located.error != 0) return located.error;
  FileFacts facts;
  const std::int64_t error = call.kernel.folder().facts(located.path, true, facts);
  if (error != 0) return error;
  if (!S_ISDIR(facts.mode)) return -ENOTDIR;
  call.process.folder = located.plain;
  return 0;
}

std::int64_t call_statfs(Call& call) {
  struct {
    std::uint64_t type = 0x01021994, block_bytes = 4096;
    std::uint64_t blocks = 1 << 20, free_blocks = 1 << 19, available = 1 << 19, files = 1 << 16,
                  free_files = 1 << 15;
    std::uint64_t identity = 0, name_length = 255, fragment = 4096, flags = 0;
    std::array<std::uint64_t, 4> spare{};
  } status;
  static_assert(sizeof status == 120);
  return call.put(call[1], status) ? 0 : -EFAULT;
}

}  // namespace manyscale::cpu

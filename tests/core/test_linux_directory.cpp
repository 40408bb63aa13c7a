// SPDX-License-Identifier: Apache-2.0
// Nothing outside of the folder that a program was given can be reached, by no path and no link.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "cpu/linux/host_directory.hpp"
#include "test_checks.hpp"

using namespace manyscale::cpu;
using manyscale::test::check;
using manyscale::test::check_refused;
namespace fs = std::filesystem;

namespace {

void write_file(const fs::path& path, const std::string& text) {
  std::ofstream(path) << text;
}

std::string contents(const HostDirectory& folder, const std::string& path) {
  const HostDirectory::Opened opened = folder.open(path, O_RDONLY, 0);
  if (opened.error != 0) return "error " + std::to_string(-opened.error);
  std::string text(100, '\0');
  const std::int64_t count = opened.file->read({reinterpret_cast<std::uint8_t*>(text.data()), text.size()});
  if (count < 0) return "error " + std::to_string(-count);
  text.resize(static_cast<std::size_t>(count));
  return text;
}

std::string error_text(int error) {
  return "error " + std::to_string(error);
}

// A directory with a secret, and within it the one that is given to a program.
struct TestTree {
  TestTree() {
    std::string pattern = (fs::temp_directory_path() / "folder-XXXXXX").string();
    base = mkdtemp(pattern.data());
    root = base / "root";
    fs::create_directories(root / "inner");
    write_file(base / "secret", "secret");
    write_file(root / "file", "file");
    write_file(root / "inner" / "deep", "deep");
    write_file(root / "secret", "harmless");
    fs::create_symlink("../secret", root / "out");               // stays within: the root's own secret
    fs::create_symlink("../../secret", root / "inner" / "out");  // the same
    fs::create_symlink((base / "secret").string(), root / "absolute");
    fs::create_symlink("/inner/deep", root / "inside");
    fs::create_symlink("..", root / "up");
    fs::create_symlink("loop", root / "loop");
    fs::create_symlink("inner", root / "folder");
    fs::create_symlink("/dev/null", root / "device");
    mkfifo((root / "fifo").c_str(), 0600);
  }
  ~TestTree() { fs::remove_all(base); }

  fs::path base, root;
};

TEST(paths_stay_within_the_root) {
  const TestTree tree;
  const HostDirectory folder(tree.root.string(), false);
  check(contents(folder, "/file") == "file", "a file");
  check(contents(folder, "//inner/./deep") == "deep", "a file in a folder");
  check(contents(folder, "/inner/../file") == "file", "up and down");
  check(contents(folder, "/../../../secret") == "harmless", "`..` stops at the root");
  check(contents(folder, "/inner/../../secret") == "harmless", "`..` from within stops too");
  check(contents(folder, "/out") == "harmless", "a link with `..` stops at the root");
  check(contents(folder, "/inner/out") == "harmless", "also from a folder");
  check(contents(folder, "/absolute") == error_text(ENOENT), "an absolute link starts at the root");
  check(contents(folder, "/inside") == "deep", "an absolute link within the root");
  check(contents(folder, "/up/up/up/secret") == "harmless", "links upwards stop at the root");
  check(contents(folder, "/folder/deep") == "deep", "a link to a folder");
  check(contents(folder, "/folder/../secret") == "harmless", "`..` after a link to a folder");
  check(contents(folder, "/loop") == error_text(ELOOP), "links in a circle");
  check(contents(folder, "/device") == error_text(ENOENT), "a link to a device leads nowhere");
  check(contents(folder, "/fifo") == error_text(EACCES), "a named pipe cannot be opened");
  check(contents(folder, "/missing") == error_text(ENOENT), "a missing file");
  check(contents(folder, "/file/x") == error_text(ENOTDIR), "a file is no folder");
  check(contents(folder, "/") == error_text(EISDIR), "a folder has no bytes");
  check(contents(HostDirectory(), "/file") == error_text(ENOENT), "without a folder there is nothing");

  std::string target;
  check(folder.read_link("/out", target) == 0 && target == "../secret", "a link can be read");
  FileFacts facts;
  check(folder.facts("/file", true, facts) == 0 && facts.bytes == 4 && S_ISREG(facts.mode),
        "facts of a file");
  check(folder.facts("/out", false, facts) == 0 && S_ISLNK(facts.mode), "facts of a link");
  check(folder.facts("/out", true, facts) == 0 && facts.bytes == 8, "facts of what it leads to");
}

TEST(folders_are_listed_in_order) {
  const TestTree tree;
  const HostDirectory folder(tree.root.string(), false);
  const HostDirectory::Opened opened = folder.open("/", O_RDONLY | O_DIRECTORY, 0);
  check(opened.error == 0, "the root can be listed");
  std::string names;
  for (const DirectoryEntry& entry : *opened.file->entries()) names += entry.name + " ";
  check(names == ". .. absolute device fifo file folder inner inside loop out secret up ",
        "sorted: " + names);
}

TEST(nothing_changes_unless_allowed) {
  const TestTree tree;
  const HostDirectory folder(tree.root.string(), false);
  check(folder.open("/file", O_WRONLY, 0).error == -EROFS, "no writing");
  check(folder.open("/file", O_RDONLY | O_TRUNC, 0).error == -EROFS, "no cutting");
  check(folder.open("/new", O_RDONLY | O_CREAT, 0600).error == -EROFS, "no making");
  check(folder.make_folder("/new", 0700) == -EROFS, "no folders");
  check(folder.remove("/file", false) == -EROFS, "no removing");
  check(folder.rename("/file", "/new", true) == -EROFS, "no renaming");
  check(contents(folder, "/file") == "file", "it is as it was");
}

TEST(changes_stay_within_the_root) {
  const TestTree tree;
  const HostDirectory folder(tree.root.string(), true);
  const HostDirectory::Opened made = folder.open("/up/made", O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const std::string text = "text";
  check(made.error == 0 && made.file->write({reinterpret_cast<const std::uint8_t*>(text.data()), 4}) == 4,
        "made");
  check(fs::exists(tree.root / "made") && !fs::exists(tree.base / "made"), "within the root");
  check(folder.open("/made", O_WRONLY | O_CREAT | O_EXCL, 0600).error == -EEXIST, "exclusive");
  // Writing through a link that would lead out writes within.
  const HostDirectory::Opened through = folder.open("/out", O_WRONLY | O_TRUNC, 0);
  check(through.error == 0, "a link can be written through");
  check(fs::file_size(tree.base / "secret") == 6, "the file outside is untouched");
  check(fs::file_size(tree.root / "secret") == 0, "the one within was cut");
  check(folder.make_folder("/../outside", 0700) == 0 && fs::exists(tree.root / "outside"),
        "a folder, within");
  check(folder.rename("/made", "/../../moved", true) == 0 && fs::exists(tree.root / "moved"),
        "moved, within");
  check(folder.remove("/out", false) == 0 && !fs::exists(fs::symlink_status(tree.root / "out")),
        "the link goes");
  check(fs::exists(tree.base / "secret"), "not what it named");
}

TEST(a_missing_root_is_refused) {
  check_refused<std::invalid_argument>([] { const HostDirectory folder("/no/such/folder", false); },
                                       "/no/such/folder");
}

}  // namespace

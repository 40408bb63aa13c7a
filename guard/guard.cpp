// SPDX-License-Identifier: Apache-2.0
// manyscale-guard: sees to it that a simulator which is killed leaves nothing behind. It runs beside the
// simulator, which holds the other end of a socket; when that closes, however the simulator ended, the guard
// tidies up and ends too.
//
//   manyscale-guard folders FD               removes folders: "+PATH\0" names one, "-PATH\0" takes it back
//   manyscale-guard tree FD -- COMMAND…      starts a command; ends it and all that it has started
//   manyscale-guard alone PARENT,SIGNAL -- COMMAND…  becomes a command that gets a signal when its parent
//   ends
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace {

constexpr int kGraceMilliseconds = 1000;     // for a program to notice that the simulator is gone
constexpr int kPatienceMilliseconds = 5000;  // for a program to end after SIGTERM
constexpr int kRoundMilliseconds = 20;
constexpr int kUsage = 64;

std::int64_t milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

void pause_for(int duration) {
  poll(nullptr, 0, duration);
}

// Signals for the whole job are the simulator's to answer.
sigset_t block_signals() {
  sigset_t all, before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  return before;
}

// --- Folders ---

int remove_entry(const char* path, const struct stat*, int, FTW*) {
  remove(path);
  return 0;
}

void remove_folder(const std::string& path) {
  // A process that ends at this moment may still have been writing there.
  for (int round = 0; round < kPatienceMilliseconds / kRoundMilliseconds; ++round) {
    nftw(path.c_str(), remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    if (access(path.c_str(), F_OK) != 0) return;
    pause_for(kRoundMilliseconds);
  }
}

int guard_folders(int control) {
  setsid();
  block_signals();
  std::vector<std::string> folders;
  std::string received;
  char buffer[4096];
  while (true) {
    const ssize_t got = read(control, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    received.append(buffer, static_cast<std::size_t>(got));
    for (std::size_t end = 0; (end = received.find('\0')) != std::string::npos; received.erase(0, end + 1)) {
      const std::string path = received.substr(1, end - 1);
      if (received[0] == '+') {
        folders.push_back(path);
      } else {
        folders.erase(std::remove(folders.begin(), folders.end(), path), folders.end());
      }
    }
  }
  for (const auto& folder : folders) remove_folder(folder);
  return 0;
}

// --- A command and all that it starts ---

enum class Message : std::int32_t { started, not_started, ended };

void report(int control, Message kind, int value) {
  const std::int32_t words[2] = {static_cast<std::int32_t>(kind), value};
  send(control, words, sizeof words, MSG_NOSIGNAL);
}

struct Process {
  pid_t parent = 0;
  std::string name;
};

std::map<pid_t, Process> processes() {
  std::map<pid_t, Process> found;
  DIR* folder = opendir("/proc");
  if (folder == nullptr) return found;
  while (const dirent* entry = readdir(folder)) {
    const pid_t process = std::atoi(entry->d_name);
    if (process <= 0) continue;
    char text[512];
    const int file = open(("/proc/" + std::string(entry->d_name) + "/stat").c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;
    const ssize_t size = read(file, text, sizeof text - 1);
    close(file);
    if (size <= 0) continue;
    text[size] = '\0';
    // "12 (name) S 1 …": the name may hold anything, also brackets.
    const char* begin = std::strchr(text, '(');
    const char* end = std::strrchr(text, ')');
    char state = 0;
    int parent = 0;
    if (begin != nullptr && end != nullptr && std::sscanf(end + 1, " %c %d", &state, &parent) == 2 &&
        state != 'Z')
      found[process] = {parent, std::string(begin + 1, end)};
  }
  closedir(folder);
  return found;
}

// All processes that descend from this one: those whose parents have ended are its children (subreaper).
std::map<pid_t, std::string> descendants() {
  const auto all = processes();
  std::map<pid_t, std::string> found;
  for (const auto& [process, facts] : all) {
    auto at = all.find(facts.parent);
    pid_t parent = facts.parent;
    for (int depth = 0; parent > 1 && parent != getpid() && at != all.end() && depth < 1000; ++depth) {
      parent = at->second.parent;
      at = all.find(parent);
    }
    if (parent == getpid()) found[process] = facts.name;
  }
  return found;
}

void signal_descendants(int number) {
  for (const auto& [process, name] : descendants()) kill(process, number);
}

class Tree {
 public:
  Tree(int control, pid_t program) : control_(control), program_(program) {}

  // Until the simulator closes its end or asks for the end by a byte.
  void watch() {
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    const int signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    pollfd ready[2] = {{control_, POLLIN, 0}, {signals, POLLIN, 0}};
    while (true) {
      if (poll(ready, 2, -1) < 0) continue;
      signalfd_siginfo information;
      while (read(signals, &information, sizeof information) > 0) {
      }
      reap();
      if ((ready[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
        char byte = 0;
        asked_ = recv(control_, &byte, 1, 0) == 1;
        return;
      }
    }
  }

  void end() {
    if (!ended_ && !asked_) wait_until_ended(kGraceMilliseconds);
    if (ended_) name_what_is_left();
    signal_descendants(SIGTERM);
    signal_descendants(SIGCONT);  // one that is stopped could not end
    wait_for_all(ended_ ? kGraceMilliseconds : kPatienceMilliseconds);
    while (!reap()) {
      signal_descendants(SIGKILL);
      pause_for(kRoundMilliseconds);
    }
  }

 private:
  // Whether no child is left.
  bool reap() {
    while (true) {
      int status = 0;
      const pid_t child = waitpid(-1, &status, WNOHANG);
      if (child < 0) return errno == ECHILD;
      if (child == 0) return false;
      if (child == program_) {
        ended_ = true;
        report(control_, Message::ended, status);
      }
    }
  }

  void wait_until_ended(int duration) {
    for (const auto begin = milliseconds(); milliseconds() - begin < duration && !ended_; reap())
      pause_for(kRoundMilliseconds);
  }

  void wait_for_all(int duration) {
    for (const auto begin = milliseconds(); milliseconds() - begin < duration && !reap();)
      pause_for(kRoundMilliseconds);
  }

  void name_what_is_left() const {
    std::string names;
    for (const auto& [process, name] : descendants())
      names += (names.empty() ? "" : ", ") + name + " (process " + std::to_string(process) + ")";
    if (names.empty()) return;
    const std::string text =
        "manyscale: the program has ended; what it left running ends too: " + names + "\n";
    [[maybe_unused]] const ssize_t wrote = write(STDERR_FILENO, text.data(), text.size());
  }

  int control_;
  pid_t program_;
  bool ended_ = false;
  bool asked_ = false;
};

int guard_tree(int control, char** command) {
  fcntl(control, F_SETFD, FD_CLOEXEC);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const sigset_t before = block_signals();
  const pid_t guard = getpid();
  int failure[2];
  if (pipe2(failure, O_CLOEXEC) != 0) return 1;
  const pid_t program = fork();
  if (program == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != guard) _exit(1);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    execv(command[0], command);
    const int reason = errno;
    [[maybe_unused]] const ssize_t wrote = write(failure[1], &reason, sizeof reason);
    _exit(1);
  }
  close(failure[1]);
  int reason = program < 0 ? errno : 0;
  if (program < 0 || read(failure[0], &reason, sizeof reason) == sizeof reason) {
    report(control, Message::not_started, reason);
    return 1;
  }
  close(failure[0]);
  report(control, Message::started, program);
  Tree tree(control, program);
  tree.watch();
  tree.end();
  return 0;
}

int become(const char* how, char** command) {
  int parent = 0, number = 0;
  if (std::sscanf(how, "%d,%d", &parent, &number) != 2) return kUsage;
  prctl(PR_SET_PDEATHSIG, number);
  if (getppid() != parent) return 1;
  execv(command[0], command);
  std::fprintf(stderr, "cannot start %s: %s\n", command[0], std::strerror(errno));
  return errno == ENOENT ? 127 : 126;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string mode = count > 2 ? arguments[1] : "";
  const int number = count > 2 ? std::atoi(arguments[2]) : 0;
  if (mode == "folders" && count == 3) return guard_folders(number);
  const bool has_command = count > 4 && std::strcmp(arguments[3], "--") == 0;
  if (mode == "tree" && has_command) return guard_tree(number, arguments + 4);
  if (mode == "alone" && has_command) return become(arguments[2], arguments + 4);
  std::fputs("manyscale-guard is started by manyscale; it is of no use alone\n", stderr);
  return kUsage;
}

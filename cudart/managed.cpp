// SPDX-License-Identifier: Apache-2.0
#include "managed.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <map>
#include <mutex>

#include "memory.hpp"
#include "process.hpp"

namespace manyscale::cudart {

namespace {

constexpr std::uint64_t kManagedPage = 4096;

// The part of a range that the host may touch now; empty if begin == end.
struct Open {
  std::uint64_t bytes = 0;  // of the range
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct Ranges {
  std::mutex mutex;
  std::map<std::uint64_t, Open> by_address;
  std::atomic<bool> any{false};
  std::atomic<bool> any_open{false};
};

Ranges& ranges() {
  static Ranges& only = *new Ranges;
  return only;
}

struct sigaction previous{};

bool managed_range_around(std::uint64_t address) {
  Ranges& known = ranges();
  const std::lock_guard lock(known.mutex);
  auto after = known.by_address.upper_bound(address);
  if (after == known.by_address.begin()) return false;
  --after;
  return address - after->first < after->second.bytes;
}

// Opens whole pages of the range around an address; false if there is no such range any more.
bool open_to_host(std::uint64_t address, std::uint64_t begin, std::uint64_t bytes, int protection) {
  Ranges& known = ranges();
  const std::lock_guard lock(known.mutex);
  auto after = known.by_address.upper_bound(address);
  if (after == known.by_address.begin()) return false;
  auto& [first, range] = *--after;
  // A range may begin within a page: a variable does.
  const std::uint64_t last_page = (first + range.bytes + kManagedPage - 1) / kManagedPage * kManagedPage;
  const std::uint64_t end =
      std::min((begin + bytes + kManagedPage - 1) / kManagedPage * kManagedPage, last_page);
  begin = std::max(begin, first) / kManagedPage * kManagedPage;
  if (address < begin || address >= end) return false;
  range.begin = range.begin == range.end ? begin : std::min(range.begin, begin);
  range.end = std::max(range.end, end);
  known.any_open = true;
  protect(begin, end - begin, protection);
  return true;
}

// Asks for the pages around an address; false if the fault has nothing to do with managed memory.
bool host_touches(std::uint64_t address, bool writes) {
  if (!heap().contains(reinterpret_cast<const void*>(address)) || !managed_range_around(address))
    return false;
  wire::HostAccess::Answer answer{};
  const Error error = call<wire::HostAccess>({address, writes ? 1u : 0u, 0}, &answer);
  if (error != Error::success || address - answer.address >= answer.bytes) {
    // Without a server nothing will come back: let the program go on with what is there.
    answer = {address / kManagedPage * kManagedPage, kManagedPage};
    writes = true;
  }
  return open_to_host(address, answer.address, answer.bytes, writes ? PROT_READ | PROT_WRITE : PROT_READ);
}

void pass_on(int signal, siginfo_t* information, void* context) {
  if ((previous.sa_flags & SA_SIGINFO) != 0 && previous.sa_sigaction != nullptr) {
    previous.sa_sigaction(signal, information, context);
  } else if (previous.sa_handler == SIG_DFL) {
    // Returning repeats the access, which then ends the program as without us.
    sigaction(signal, &previous, nullptr);
  } else if (previous.sa_handler != SIG_IGN) {
    previous.sa_handler(signal);
  }
}

void on_fault(int signal, siginfo_t* information, void* context) {
  const int saved = errno;
  const auto address = reinterpret_cast<std::uint64_t>(information->si_addr);
  bool writes = true;
#if defined(__x86_64__)
  writes = (static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
#endif
  if (information->si_code <= 0 || !host_touches(address, writes)) pass_on(signal, information, context);
  errno = saved;
}

}  // namespace

void watch_host_accesses() {
  if (!ranges().any.load(std::memory_order_relaxed)) return;
  struct sigaction now{};
  sigaction(SIGSEGV, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_fault) return;
  previous = now;
  struct sigaction ours{};
  ours.sa_sigaction = on_fault;
  ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&ours.sa_mask);
  sigaction(SIGSEGV, &ours, nullptr);
}

void add_managed(std::uint64_t address, std::uint64_t bytes) {
  if (!heap().watched) {
    protect(address, bytes, PROT_READ | PROT_WRITE);
    return;
  }
  Ranges& known = ranges();
  const std::lock_guard lock(known.mutex);
  known.by_address.insert_or_assign(address, Open{bytes, 0, 0});
  known.any = true;
}

void forget_managed(std::uint64_t address) {
  Ranges& known = ranges();
  const std::lock_guard lock(known.mutex);
  known.by_address.erase(address);
}

void touch_managed(const void* pointer, std::size_t bytes, bool writes) {
  if (!ranges().any.load(std::memory_order_relaxed) || !heap().contains(pointer) || bytes == 0) return;
  const auto first = reinterpret_cast<std::uint64_t>(pointer);
  for (std::uint64_t address = first; address < first + bytes;
       address = (address / kManagedPage + 1) * kManagedPage) {
    if (!managed_range_around(address)) return;
    auto* byte = reinterpret_cast<char*>(address);
    // An access as any other: the handler does the rest. A write that changes nothing, also for other
    // threads.
    if (writes) {
      __atomic_fetch_or(byte, 0, __ATOMIC_RELAXED);
    } else {
      static_cast<void>(*const_cast<volatile char*>(byte));
    }
  }
}

void close_managed() {
  Ranges& known = ranges();
  if (!known.any_open.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(known.mutex);
  for (auto& [address, range] : known.by_address) {
    if (range.begin == range.end) continue;
    protect(range.begin, range.end - range.begin, PROT_NONE);
    range.begin = range.end = 0;
  }
  known.any_open = false;
}

}  // namespace manyscale::cudart

// SPDX-License-Identifier: Apache-2.0
// System calls that ask what the system is, and those that need nothing done.
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "cpu/linux/load_program.hpp"
#include "cpu/linux/system_calls.hpp"

namespace manyscale::cpu {

std::int64_t call_zero(Call&) {
  return 0;
}

std::int64_t call_absent(Call&) {
  return -ENOSYS;
}

std::int64_t call_no_child(Call&) {
  return -ECHILD;
}

std::int64_t call_getpid(Call& call) {
  return call.process.id;
}

std::int64_t call_getppid(Call&) {
  return 1;
}

std::int64_t call_gettid(Call& call) {
  return call.thread.id;
}

std::int64_t call_user(Call&) {
  return 1000;
}

std::int64_t call_resource_users(Call& call) {
  const std::uint32_t user = 1000;
  for (std::size_t i = 0; i < 3; ++i) {
    if (!call.put(call[i], user)) return -EFAULT;
  }
  return 0;
}

std::int64_t call_uname(Call& call) {
  using Text = std::array<char, 65>;
  std::array<Text, 6> names{};
  constexpr std::array<std::string_view, 6> texts{"Linux",  "manyscale", "6.1.0",
                                                  "#1 SMP", "riscv64",   "(none)"};
  for (std::size_t i = 0; i < names.size(); ++i)
    std::copy(texts[i].begin(), texts[i].end(), names[i].begin());
  return call.put(call[0], names) ? 0 : -EFAULT;
}

std::int64_t call_sysinfo(Call& call) {
  struct {
    std::int64_t uptime = 0;
    std::array<std::uint64_t, 3> loads{};
    std::uint64_t total_memory = 0, free_memory = 0, shared_memory = 0, buffers = 0;
    std::uint64_t total_swap = 0, free_swap = 0;
    std::uint16_t processes = 0, padding = 0;
    std::uint64_t total_high = 0, free_high = 0;
    std::uint32_t unit = 1;
    std::uint32_t tail = 0;
  } facts;
  static_assert(sizeof facts == 112);
  facts.uptime = call.kernel.time / second;
  facts.total_memory = call.kernel.memory_limit();
  facts.free_memory = facts.total_memory - std::min(facts.total_memory, call.memory().resident_bytes());
  facts.processes = static_cast<std::uint16_t>(call.kernel.processes().size());
  return call.put(call[0], facts) ? 0 : -EFAULT;
}

namespace {

std::int64_t put_limit(Call& call, std::uint64_t resource, std::uint64_t address) {
  constexpr std::uint64_t unlimited = ~std::uint64_t{0};
  std::array<std::uint64_t, 2> limit{unlimited, unlimited};
  switch (resource) {
    case RLIMIT_STACK:
      limit[0] = Layout::stack_bytes;
      break;
    case RLIMIT_NOFILE:
      limit = {1024, 1024};
      break;
    case RLIMIT_CORE:
      limit = {0, 0};
      break;
    default:
      if (resource >= RLIM_NLIMITS) return -EINVAL;
  }
  return address == 0 || call.put(address, limit) ? 0 : -EFAULT;
}

}  // namespace

std::int64_t call_getrlimit(Call& call) {
  return put_limit(call, call[0], call[1]);
}

std::int64_t call_prlimit(Call& call) {
  // New limits are taken without effect.
  return put_limit(call, call[1], call[3]);
}

std::int64_t call_getrandom(Call& call) {
  const std::uint64_t bytes = std::min<std::uint64_t>(call[1], 1 << 20);
  std::vector<std::uint64_t> words((bytes + 7) / 8);
  for (std::uint64_t& word : words) word = call.kernel.random().next();
  return call.memory().write(call[0], words.data(), bytes) ? static_cast<std::int64_t>(bytes) : -EFAULT;
}

std::int64_t call_prctl(Call& call) {
  constexpr std::uint64_t set_name = 15, get_name = 16, set_vma = 0x53564d41;
  if (call[0] == set_name) return 0;
  if (call[0] == get_name) {
    std::array<char, 16> name{};
    const std::string& path = call.process.executable;
    const std::string last = path.substr(path.rfind('/') + 1).substr(0, name.size() - 1);
    std::copy(last.begin(), last.end(), name.begin());
    return call.put(call[1], name) ? 0 : -EFAULT;
  }
  return call[0] == set_vma ? 0 : -EINVAL;
}

std::int64_t call_umask(Call&) {
  return 022;
}

std::int64_t call_flush_icache(Call& call) {
  call.process.interpreter.drop_code();
  return 0;
}

std::int64_t call_membarrier(Call& call) {
  // All accesses are done in one order, so there is nothing to do; no command
  // is offered.
  return call[0] == 0 ? 0 : -EINVAL;
}

}  // namespace manyscale::cpu

// SPDX-License-Identifier: Apache-2.0
// System calls that make, end and schedule threads, and futexes.
#include <linux/futex.h>
#include <sched.h>
#include <time.h>

#include <algorithm>

#include "cpu/linux/system_calls.hpp"

namespace manyscale::cpu {

namespace {

struct NewThread {
  std::uint64_t flags = 0;
  std::uint64_t stack = 0;
  std::uint64_t parent_id = 0;
  std::uint64_t local_storage = 0;
  std::uint64_t child_id = 0;
};

std::int64_t make_thread(Call& call, const NewThread& wanted) {
  constexpr std::uint64_t needed = CLONE_VM | CLONE_THREAD | CLONE_SIGHAND;
  if ((wanted.flags & needed) != needed) {
    call.kernel.fail(call.thread, "system call", call.thread.hart.x[17],
                     "the program wants to start another process (fork, system "
                     "or popen), which is not possible "
                     "in the simulator; threads and MPI ranks are");
  }
  riscv::Hart hart = call.thread.hart;
  hart.pc += 4;
  hart.x[10] = 0;
  hart.retired = 0;
  hart.reserved_address = ~std::uint64_t{0};
  if (wanted.stack != 0) hart.x[2] = wanted.stack;
  if ((wanted.flags & CLONE_SETTLS) != 0) hart.x[4] = wanted.local_storage;
  Thread* thread = call.kernel.create_thread(call.process, hart);
  if (thread == nullptr) return -EAGAIN;
  thread->signal_mask = call.thread.signal_mask;
  thread->affinity = call.thread.affinity;
  if (!thread->affinity[thread->core]) {
    thread->core = static_cast<std::uint32_t>(
        std::find(thread->affinity.begin(), thread->affinity.end(), true) - thread->affinity.begin());
  }
  if ((wanted.flags & CLONE_CHILD_CLEARTID) != 0) thread->clear_child_id = wanted.child_id;
  if ((wanted.flags & CLONE_PARENT_SETTID) != 0) call.put(wanted.parent_id, thread->id);
  if ((wanted.flags & CLONE_CHILD_SETTID) != 0) call.put(wanted.child_id, thread->id);
  call.kernel.start(*thread);
  return thread->id;
}

// The futex's word, if it may be read.
std::optional<std::uint32_t> word_at(Call& call, std::uint64_t address) {
  std::uint32_t word = 0;
  if (!call.get(address, word)) return {};
  return word;
}

std::int64_t wait_on_futex(Call& call, int command, std::uint32_t bits) {
  const std::optional<std::uint32_t> word = word_at(call, call[0]);
  if (!word) return -EFAULT;
  Time deadline = never;
  if (call[3] != 0) {
    TimeValue value;
    if (!call.get(call[3], value)) return -EFAULT;
    // FUTEX_WAIT has a duration, the others a moment.
    const bool lasts = command == FUTEX_WAIT;
    const auto clock = (call[1] & FUTEX_CLOCK_REALTIME) != 0 ? CLOCK_REALTIME : CLOCK_MONOTONIC;
    const std::optional<Time> time = lasts ? time_from(value) : moment_from(clock, value);
    if (!time) return -EINVAL;
    deadline = lasts ? moment_after(call.kernel.time, *time) : *time;
  }
  if (*word != static_cast<std::uint32_t>(call[2])) return -EAGAIN;
  if (deadline <= call.kernel.time) return -ETIMEDOUT;
  call.kernel.futex_wait(call.thread, call.memory().physical(call[0]), bits, deadline);
  return no_result;
}

// FUTEX_WAKE_OP: changes a second word, wakes waiters of the first, and of the
// second if its old value was so.
std::int64_t wake_and_change(Call& call) {
  const std::optional<std::uint32_t> old = word_at(call, call[4]);
  if (!old) return -EFAULT;
  const auto code = static_cast<std::uint32_t>(call[5]);
  const auto signed_part = [](std::uint32_t bits) {
    return static_cast<std::uint32_t>(static_cast<std::int32_t>(bits << 20) >> 20);
  };
  std::uint32_t operand = signed_part(code >> 12 & 0xfff);
  if ((code >> 28 & FUTEX_OP_OPARG_SHIFT) != 0) operand = 1u << (operand & 31);
  const std::uint32_t comparand = signed_part(code & 0xfff);
  std::uint32_t changed = 0;
  switch (code >> 28 & 7) {
    case FUTEX_OP_SET:
      changed = operand;
      break;
    case FUTEX_OP_ADD:
      changed = *old + operand;
      break;
    case FUTEX_OP_OR:
      changed = *old | operand;
      break;
    case FUTEX_OP_ANDN:
      changed = *old & ~operand;
      break;
    case FUTEX_OP_XOR:
      changed = *old ^ operand;
      break;
    default:
      return -ENOSYS;
  }
  if (!call.put(call[4], changed)) return -EFAULT;
  const auto before = static_cast<std::int32_t>(*old);
  const auto limit = static_cast<std::int32_t>(comparand);
  const std::array<bool, 6> outcomes{before == limit, before != limit,
                                     before<limit, before <= limit, before> limit, before >= limit};
  const std::uint32_t comparison = code >> 24 & 0xf;
  if (comparison >= outcomes.size()) return -ENOSYS;
  std::int64_t woken = call.kernel.futex_wake(call.memory().physical(call[0]), call[2], ~0u);
  if (outcomes[comparison]) woken += call.kernel.futex_wake(call.memory().physical(call[4]), call[3], ~0u);
  return woken;
}

}  // namespace

std::int64_t call_clone(Call& call) {
  return make_thread(call, {call[0], call[1], call[2], call[3], call[4]});
}

std::int64_t call_clone3(Call& call) {
  // flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls
  std::array<std::uint64_t, 8> given{};
  if (call[1] < sizeof given) return -EINVAL;
  if (!call.get(call[0], given)) return -EFAULT;
  return make_thread(call, {given[0], given[5] + given[6], given[3], given[7], given[2]});
}

std::int64_t call_exit(Call& call) {
  if (call.process.threads.size() == 1) call.process.exit_status = static_cast<int>(call[0] & 0xff);
  call.kernel.end_thread(call.thread);
  return no_result;
}

std::int64_t call_exit_group(Call& call) {
  call.kernel.end_process(call.process, static_cast<int>(call[0] & 0xff));
  return no_result;
}

std::int64_t call_set_tid_address(Call& call) {
  call.thread.clear_child_id = call[0];
  return call.thread.id;
}

std::int64_t call_set_robust_list(Call& call) {
  if (call[1] != 24) return -EINVAL;
  call.thread.robust_list = call[0];
  return 0;
}

std::int64_t call_get_robust_list(Call& call) {
  const Thread* thread = call[0] == 0 ? &call.thread : call.kernel.find_thread(call.whole(0));
  if (thread == nullptr) return -ESRCH;
  const std::uint64_t bytes = 24;
  return call.put(call[1], thread->robust_list) && call.put(call[2], bytes) ? 0 : -EFAULT;
}

std::int64_t call_futex(Call& call) {
  const int command = call.whole(1) & FUTEX_CMD_MASK;
  if (call[0] % 4 != 0) return -EINVAL;
  // A private futex has its physical address as key, too: no two processes share a
  // private page.
  const auto key = [&](std::size_t argument) { return call.memory().physical(call[argument]); };
  const auto count = [&](std::size_t argument) {
    return static_cast<std::uint64_t>(std::max(call.whole(argument), 0));
  };
  switch (command) {
    case FUTEX_WAIT:
      return wait_on_futex(call, command, ~0u);
    case FUTEX_WAIT_BITSET:
      return call.whole(5) == 0 ? -EINVAL : wait_on_futex(call, command, static_cast<std::uint32_t>(call[5]));
    case FUTEX_WAKE:
    case FUTEX_WAKE_BITSET: {
      if (!word_at(call, call[0])) return -EFAULT;
      const std::uint32_t bits = command == FUTEX_WAKE ? ~0u : static_cast<std::uint32_t>(call[5]);
      return bits == 0 ? -EINVAL : call.kernel.futex_wake(key(0), std::max<std::uint64_t>(count(2), 1), bits);
    }
    case FUTEX_REQUEUE:
    case FUTEX_CMP_REQUEUE: {
      const std::optional<std::uint32_t> word = word_at(call, call[0]);
      if (!word || !word_at(call, call[4])) return -EFAULT;
      if (command == FUTEX_CMP_REQUEUE && *word != static_cast<std::uint32_t>(call[5])) return -EAGAIN;
      return call.kernel.futex_requeue(key(0), key(4), count(2), count(3));
    }
    case FUTEX_WAKE_OP:
      return word_at(call, call[0]) ? wake_and_change(call) : -EFAULT;
    default:
      return -ENOSYS;
  }
}

std::int64_t call_sched_yield(Call& call) {
  call.thread.yields = true;
  return 0;
}

std::int64_t call_sched_getaffinity(Call& call) {
  const Thread* thread = call[0] == 0 ? &call.thread : call.kernel.find_thread(call.whole(0));
  if (thread == nullptr) return -ESRCH;
  std::vector<std::uint8_t> mask((call.kernel.cores() + 63) / 64 * 8);
  if (call[1] < mask.size() || call[1] % 8 != 0) return -EINVAL;
  for (std::uint32_t core = 0; core < call.kernel.cores(); ++core) {
    if (thread->affinity[core]) mask[core / 8] |= static_cast<std::uint8_t>(1u << core % 8);
  }
  return call.memory().write(call[2], mask.data(), mask.size()) ? static_cast<std::int64_t>(mask.size())
                                                                : -EFAULT;
}

std::int64_t call_sched_setaffinity(Call& call) {
  Thread* thread = call[0] == 0 ? &call.thread : call.kernel.find_thread(call.whole(0));
  if (thread == nullptr) return -ESRCH;
  std::vector<std::uint8_t> mask(std::min<std::uint64_t>(call[1], 8192));
  if (!call.memory().read(call[2], mask.data(), mask.size())) return -EFAULT;
  std::vector<bool> affinity(call.kernel.cores());
  for (std::uint32_t core = 0; core < call.kernel.cores() && core / 8 < mask.size(); ++core) {
    affinity[core] = (mask[core / 8] >> core % 8 & 1) != 0;
  }
  const auto first = std::find(affinity.begin(), affinity.end(), true);
  if (first == affinity.end()) return -EINVAL;
  if (!affinity[thread->core]) thread->wanted_core = static_cast<std::uint32_t>(first - affinity.begin());
  thread->affinity = std::move(affinity);
  return 0;
}

std::int64_t call_sched_getscheduler(Call&) {
  return SCHED_OTHER;
}

std::int64_t call_sched_getparam(Call& call) {
  const std::int32_t priority = 0;
  return call.put(call[1], priority) ? 0 : -EFAULT;
}

std::int64_t call_sched_get_priority(Call&) {
  return 0;
}

std::int64_t call_getcpu(Call& call) {
  const std::uint32_t node = 0;
  if (call[0] != 0 && !call.put(call[0], call.thread.core)) return -EFAULT;
  return call[1] == 0 || call.put(call[1], node) ? 0 : -EFAULT;
}

}  // namespace manyscale::cpu

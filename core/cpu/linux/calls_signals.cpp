// SPDX-License-Identifier: Apache-2.0
// Signals: the system calls about them, and how handlers are called and come
// back.
#include <signal.h>

#include <algorithm>
#include <cstring>

#include "cpu/linux/load_program.hpp"
#include "cpu/linux/system_calls.hpp"

namespace manyscale::cpu {

namespace {

constexpr std::uint64_t bit_of(int signal) {
  return std::uint64_t{1} << (signal - 1);
}

// What cannot be blocked or handled.
constexpr std::uint64_t untouchable = bit_of(SIGKILL) | bit_of(SIGSTOP);

// What lies on the stack while a handler runs, as Linux lays it out for RISC-V.
struct SignalFrame {
  // siginfo_t: signal, error number, code, then for a fault its address
  std::int32_t signal = 0, error = 0, code = 0, padding = 0;
  std::uint64_t fault_address = 0;  // or, of a signal that was sent, who sent it
  std::array<std::uint8_t, 104> rest_of_information{};
  // ucontext_t
  std::uint64_t flags = 0, link = 0;
  std::uint64_t stack_begin = 0;
  std::int32_t stack_flags = 0, stack_padding = 0;
  std::uint64_t stack_bytes = 0;
  std::uint64_t mask = 0;
  std::array<std::uint8_t, 128> rest_of_mask{};  // and the gap that aligns what follows
  std::array<std::uint64_t, 32> registers{};     // pc instead of x0
  std::array<std::uint64_t, 32> floats{};
  std::uint32_t float_state = 0;
  std::array<std::uint8_t, 268> rest_of_floats{};
};
static_assert(sizeof(SignalFrame) == 128 + 960);

bool on_signal_stack(const Thread& thread) {
  const SignalStack& stack = thread.signal_stack;
  return stack.enabled && thread.hart.x[2] - stack.begin < stack.bytes;
}

bool ignored_by_default(int signal) {
  return signal == SIGCHLD || signal == SIGURG || signal == SIGWINCH || signal == SIGCONT;
}

}  // namespace

void Kernel::raise(Thread& thread, int signal) {
  if (thread.state == Thread::State::ended) return;
  const SignalAction& action = thread.process->actions[static_cast<std::size_t>(signal)];
  if (signal != SIGKILL && (action.handler == 1 || (action.handler == 0 && ignored_by_default(signal))))
    return;
  thread.pending |= bit_of(signal);
  if ((thread.awaited_signals & bit_of(signal)) != 0) {
    thread.pending &= ~bit_of(signal);
    wake(thread, signal);
    return;
  }
  if (!thread.has_signal() || thread.state != Thread::State::waiting) return;
  if (action.handler > 1 || signal == SIGKILL || action.handler == 0) wake(thread, -EINTR);
}

void Kernel::raise(Process& process, int signal, Thread* preferred) {
  if (process.threads.empty()) return;
  Thread* chosen = preferred == nullptr ? process.threads.front() : preferred;
  if ((chosen->signal_mask & bit_of(signal)) != 0) {
    const auto open = std::find_if(process.threads.begin(), process.threads.end(), [&](const Thread* thread) {
      return (thread->signal_mask & bit_of(signal)) == 0;
    });
    if (open != process.threads.end()) chosen = *open;
  }
  raise(*chosen, signal);
}

void Kernel::deliver_signals(Thread& thread) {
  while (thread.state == Thread::State::runnable && thread.has_signal()) {
    const int signal = __builtin_ctzll(thread.pending & ~thread.signal_mask) + 1;
    thread.pending &= ~bit_of(signal);
    const SignalAction& action = thread.process->actions[static_cast<std::size_t>(signal)];
    if (action.handler > 1 && signal != SIGKILL) {
      // The sender is passed instead of a fault's address: processes only signal themselves.
      const std::uint64_t sender = static_cast<std::uint32_t>(thread.process->id);
      call_handler(thread, signal, sender, SI_TKILL);
    } else {
      // As a shell reports the end by a signal.
      end_process(*thread.process, 128 + signal);
    }
  }
}

void Kernel::call_handler(Thread& thread, int signal, std::uint64_t fault_address, std::int32_t code) {
  Process& process = *thread.process;
  SignalAction& action = process.actions[static_cast<std::size_t>(signal)];
  riscv::Hart& hart = thread.hart;
  SignalFrame frame;
  frame.signal = signal;
  frame.code = code;
  frame.fault_address = fault_address;
  frame.stack_begin = thread.signal_stack.begin;
  frame.stack_bytes = thread.signal_stack.bytes;
  frame.stack_flags = !thread.signal_stack.enabled ? SS_DISABLE : on_signal_stack(thread) ? SS_ONSTACK : 0;
  frame.mask = thread.restores_mask ? thread.saved_mask : thread.signal_mask;
  thread.restores_mask = false;
  frame.registers = hart.x;
  frame.registers[0] = hart.pc;
  frame.floats = hart.f;
  frame.float_state = hart.fcsr;
  std::uint64_t stack = hart.x[2];
  if ((action.flags & SA_ONSTACK) != 0 && thread.signal_stack.enabled && !on_signal_stack(thread)) {
    stack = thread.signal_stack.begin + thread.signal_stack.bytes;
  }
  stack = (stack - sizeof frame) & ~std::uint64_t{15};
  if (!process.memory.write(stack, &frame, sizeof frame)) {
    fail(thread, "stack", stack,
         "no room on the stack (at " + hexadecimal(stack) + ") to handle signal " + std::to_string(signal) +
             "; the stack may have overflowed");
  }
  hart.x[1] = Layout::signal_return;
  hart.x[2] = stack;
  hart.x[10] = static_cast<std::uint64_t>(signal);
  hart.x[11] = stack;
  hart.x[12] = stack + offsetof(SignalFrame, flags);
  hart.pc = action.handler;
  hart.reserved_address = ~std::uint64_t{0};
  thread.signal_mask |= action.mask & ~untouchable;
  if ((action.flags & SA_NODEFER) == 0) thread.signal_mask |= bit_of(signal);
  if ((action.flags & SA_RESETHAND) != 0) action = {};
}

void Kernel::return_from_handler(Thread& thread) {
  SignalFrame frame;
  if (!thread.process->memory.read(thread.hart.x[2], &frame, sizeof frame)) {
    fail(thread, "stack", thread.hart.x[2], "a signal handler returned with a damaged stack pointer");
  }
  thread.hart.x = frame.registers;
  thread.hart.x[0] = 0;
  thread.hart.pc = frame.registers[0];
  thread.hart.f = frame.floats;
  thread.hart.fcsr = frame.float_state & 0xff;
  thread.hart.reserved_address = ~std::uint64_t{0};
  thread.signal_mask = frame.mask & ~untouchable;
}

void Kernel::exception(Thread& thread, riscv::Stop stop) {
  using Cause = riscv::Fault::Cause;
  riscv::Fault fault = thread.process->interpreter.fault();
  int signal = SIGSEGV;
  std::int32_t code = SEGV_MAPERR;
  std::string kind, what;
  if (stop == riscv::Stop::breakpoint) {
    fault.address = thread.hart.pc;
    signal = SIGTRAP;
    code = TRAP_BRKPT;
    kind = "breakpoint";
    what = "the program stopped itself with a breakpoint instruction (ebreak)";
  } else {
    const std::string at = hexadecimal(fault.address);
    switch (fault.cause) {
      case Cause::illegal:
        signal = SIGILL;
        code = ILL_ILLOPC;
        kind = "illegal";
        what = "illegal instruction " + hexadecimal(fault.instruction);
        break;
      case Cause::unsupported:
        signal = SIGILL;
        code = ILL_ILLOPC;
        kind = "unsupported";
        what = "instruction " + hexadecimal(fault.instruction) +
               " belongs to an extension that is not implemented; compile with "
               "-march=rv64gc";
        break;
      case Cause::load:
        kind = "load";
        what = "load from " + at + ", which is not mapped or not readable";
        break;
      case Cause::store:
        kind = "store";
        what = "store to " + at + ", which is not mapped or not writable";
        break;
      case Cause::fetch:
        kind = "fetch";
        what = "jump to " + at + ", where there is no executable memory; the return address (ra) is " +
               hexadecimal(thread.hart.x[1]);
        break;
      case Cause::misaligned:
        signal = SIGBUS;
        code = BUS_ADRALN;
        kind = "misaligned";
        what = "atomic access to " + at + ", which is not a multiple of its size";
        break;
      case Cause::exhausted:
        fail(thread, "memory", fault.address,
             "out of memory: the process may touch " + std::to_string(thread.process->memory.limit() >> 20) +
                 " MiB; a higher limit can be given");
    }
    const std::uint64_t below_stack = Layout::stack_top - Layout::stack_bytes - fault.address;
    if ((kind == "load" || kind == "store") && below_stack < (std::uint64_t{1} << 20)) {
      what += "; the stack of " + std::to_string(Layout::stack_bytes >> 20) + " MiB has overflowed";
    } else if ((kind == "load" || kind == "store") && fault.address < page_bytes) {
      what += "; a null pointer";
    }
  }
  const SignalAction& action = thread.process->actions[static_cast<std::size_t>(signal)];
  const bool blocked = (thread.signal_mask & bit_of(signal)) != 0;
  if (action.handler <= 1 || blocked) {
    thread.process->exit_status = 128 + signal;
    fail(thread, kind, fault.address, what);
  }
  call_handler(thread, signal, fault.address, code);
}

std::int64_t call_rt_sigaction(Call& call) {
  const std::int32_t signal = call.whole(0);
  if (signal < 1 || signal > signals || call[3] != 8) return -EINVAL;
  if (call[1] != 0 && (bit_of(signal) & untouchable) != 0) return -EINVAL;
  SignalAction& action = call.process.actions[static_cast<std::size_t>(signal)];
  SignalAction wanted;
  if (call[1] != 0 && !call.get(call[1], wanted)) return -EFAULT;
  if (call[2] != 0 && !call.put(call[2], action)) return -EFAULT;
  if (call[1] != 0) action = wanted;
  return 0;
}

std::int64_t call_rt_sigprocmask(Call& call) {
  if (call[3] != 8) return -EINVAL;
  std::uint64_t wanted = 0;
  const std::uint64_t old = call.thread.signal_mask;
  if (call[1] != 0) {
    if (!call.get(call[1], wanted)) return -EFAULT;
    std::uint64_t& mask = call.thread.signal_mask;
    switch (call.whole(0)) {
      case SIG_BLOCK:
        mask |= wanted;
        break;
      case SIG_UNBLOCK:
        mask &= ~wanted;
        break;
      case SIG_SETMASK:
        mask = wanted;
        break;
      default:
        return -EINVAL;
    }
    mask &= ~untouchable;
  }
  return call[2] == 0 || call.put(call[2], old) ? 0 : -EFAULT;
}

std::int64_t call_rt_sigpending(Call& call) {
  return call.put(call[0], call.thread.pending) ? 0 : -EFAULT;
}

std::int64_t call_rt_sigsuspend(Call& call) {
  std::uint64_t mask = 0;
  if (!call.get(call[0], mask)) return -EFAULT;
  call.thread.saved_mask = call.thread.signal_mask;
  call.thread.restores_mask = true;
  call.thread.signal_mask = mask & ~untouchable;
  if (call.thread.has_signal()) return -EINTR;
  call.kernel.wait(call.thread, "a signal");
  return no_result;
}

std::int64_t call_rt_sigtimedwait(Call& call) {
  std::uint64_t wanted = 0;
  if (!call.get(call[0], wanted)) return -EFAULT;
  Thread& thread = call.thread;
  if (const std::uint64_t there = thread.pending & wanted; there != 0) {
    const int signal = __builtin_ctzll(there) + 1;
    thread.pending &= ~bit_of(signal);
    return signal;
  }
  Time deadline = never;
  if (const std::int64_t error = get_deadline(call, call[2], deadline); error != 0) return error;
  thread.awaited_signals = wanted;
  thread.timeout_result = -EAGAIN;
  call.kernel.wait(thread, "a signal", deadline);
  return no_result;
}

std::int64_t call_rt_sigreturn(Call& call) {
  call.kernel.return_from_handler(call.thread);
  return no_result;
}

std::int64_t call_sigaltstack(Call& call) {
  struct {
    std::uint64_t begin = 0;
    std::int32_t flags = 0, padding = 0;
    std::uint64_t bytes = 0;
  } wanted, old;
  SignalStack& stack = call.thread.signal_stack;
  const bool in_use = on_signal_stack(call.thread);
  old.begin = stack.begin;
  old.bytes = stack.bytes;
  old.flags = !stack.enabled ? SS_DISABLE : in_use ? SS_ONSTACK : 0;
  if (call[0] != 0) {
    if (!call.get(call[0], wanted)) return -EFAULT;
    if (in_use) return -EPERM;
    const bool disable = (wanted.flags & SS_DISABLE) != 0;
    if (!disable && wanted.bytes < 2048) return -ENOMEM;
    stack = {wanted.begin, wanted.bytes, !disable};
  }
  return call[1] == 0 || call.put(call[1], old) ? 0 : -EFAULT;
}

namespace {

std::int64_t signal_thread(Call& call, Thread* thread, std::int32_t signal) {
  if (signal < 0 || signal > signals) return -EINVAL;
  if (thread == nullptr) return -ESRCH;
  if (signal != 0) call.kernel.raise(*thread, signal);
  return 0;
}

}  // namespace

std::int64_t call_kill(Call& call) {
  const std::int32_t id = call.whole(0);
  const std::int32_t signal = call.whole(1);
  if (signal < 0 || signal > signals) return -EINVAL;
  for (const auto& process : call.kernel.processes()) {
    const bool own = process.get() == &call.process;
    if (process->ended || (process->id != id && !(id == 0 && own))) continue;
    if (signal != 0) call.kernel.raise(*process, signal, own ? &call.thread : nullptr);
    return 0;
  }
  return -ESRCH;
}

std::int64_t call_tkill(Call& call) {
  return signal_thread(call, call.kernel.find_thread(call.whole(0)), call.whole(1));
}

std::int64_t call_tgkill(Call& call) {
  Thread* thread = call.kernel.find_thread(call.whole(1));
  if (thread != nullptr && thread->process->id != call.whole(0)) thread = nullptr;
  return signal_thread(call, thread, call.whole(2));
}

}  // namespace manyscale::cpu

// SPDX-License-Identifier: Apache-2.0
// Simulated processes and their threads: what Linux would keep about them. They
// are changed by the kernel (kernel.hpp) and by the system calls
// (system_calls.hpp) only.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cpu/linux/open_file.hpp"
#include "cpu/riscv/hart.hpp"
#include "cpu/riscv/interpreter.hpp"
#include "cpu/virtual_memory/address_space.hpp"
#include "engine/time.hpp"

namespace manyscale::cpu {

inline constexpr int signals = 64;

// What a process does with a signal.
struct SignalAction {
  std::uint64_t handler = 0;  // 0: by default, 1: ignored
  std::uint64_t flags = 0;
  std::uint64_t mask = 0;
};

struct SignalStack {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
  bool enabled = false;
};

struct Process;

struct Thread {
  enum class State : std::uint8_t { runnable, waiting, ended };

  riscv::Hart hart;
  Process* process = nullptr;
  std::uint32_t number = 0;                  // over all processes
  std::uint32_t index = 0;                   // within its process
  std::int32_t id = 0;                       // as gettid gives it
  std::uint32_t core = 0;                    // where it runs
  std::optional<std::uint32_t> wanted_core;  // where it should run from its next turn on
  std::vector<bool> affinity;                // cores it may run on

  State state = State::runnable;
  bool yields = false;         // gave up its turn; the scheduler clears it
  const char* waits_for = "";  // for messages about deadlocks
  Time deadline = never;       // of the wait
  std::uint64_t futex = 0;     // the futex waited for; 0: none
  std::uint32_t futex_bits = 0;
  bool retries = false;             // when woken, makes its system call again
  std::int64_t timeout_result = 0;  // what its system call gives back when the deadline comes

  std::uint64_t clear_child_id = 0;  // written 0, and woken, when it ends
  std::uint64_t robust_list = 0;
  std::uint64_t signal_mask = 0;  // bit n - 1: signal n
  std::uint64_t pending = 0;
  std::uint64_t awaited_signals = 0;  // by rt_sigtimedwait
  std::uint64_t saved_mask = 0;       // of rt_sigsuspend
  bool restores_mask = false;
  Time poll_deadline = 0;  // of the ppoll that it waits in; 0: none
  SignalStack signal_stack;

  bool has_signal() const { return (pending & ~signal_mask) != 0; }
};

struct Process {
  Process(std::uint32_t number_, std::uint64_t memory_limit)
      : number(number_), memory(number_, memory_limit), interpreter(memory) {}

  std::uint32_t number;
  std::int32_t id = 0;
  AddressSpace memory;
  riscv::Interpreter interpreter;
  std::vector<Thread*> threads;       // that have not ended
  std::vector<Thread*> thread_slots;  // by index; the next thread made takes the slot of one that ended
  std::uint64_t break_begin = 0, break_end = 0;
  std::array<SignalAction, signals + 1> actions{};
  std::string executable;  // what /proc/self/exe names
  std::string folder = "/";
  std::map<int, std::shared_ptr<OpenFile>> files;
  std::map<int, bool> close_on_exec;
  std::string standard_output, standard_error;
  std::uint64_t output_limit = 0;
  Time alarm = never;       // when SIGALRM is due (setitimer)
  Time alarm_interval = 0;  // and how long after that again; 0: not again
  bool ended = false;
  int exit_status = 0;
};

}  // namespace manyscale::cpu

// SPDX-License-Identifier: Apache-2.0
#include "cpu/linux/kernel.hpp"

#include <signal.h>
#include <sys/stat.h>

#include <algorithm>

#include "cpu/linux/load_program.hpp"
#include "cpu/linux/output_file.hpp"
#include "cpu/linux/system_calls.hpp"

namespace manyscale::cpu {

Kernel::Kernel(Scheduler& scheduler, std::uint32_t cores, std::uint64_t seed)
    : scheduler_(scheduler), cores_(cores), random_(seed, hash_name("linux")) {}

Kernel::~Kernel() = default;

void Kernel::launch(const LaunchSpec& spec) {
  if (spec.ranks == 0 || spec.ranks > most_processes) {
    throw std::invalid_argument("ranks: from 1 to " + std::to_string(most_processes) +
                                " processes can be run");
  }
  const ElfImage image = parse_elf(spec.elf, spec.path);
  if (!spec.root.empty()) folder_ = HostDirectory(spec.root, spec.writable);
  memory_limit_ = spec.memory_limit;
  ranks_ = spec.ranks;
  std::vector<std::string> arguments{spec.name};
  arguments.insert(arguments.end(), spec.arguments.begin(), spec.arguments.end());
  for (std::uint32_t rank = 0; rank < spec.ranks; ++rank) {
    auto process = std::make_unique<Process>(rank, spec.memory_limit);
    process->id = next_id_++;
    process->executable = "/" + spec.name;
    process->output_limit = spec.output_limit;
    std::vector<std::string> environment = spec.environment;
    if (const std::uint32_t all = std::max(spec.ranks, spec.job_ranks); all > 1) {
      environment.push_back("MANYSCALE_MPI_RANK=" + std::to_string(spec.first_rank + rank));
      environment.push_back("MANYSCALE_MPI_SIZE=" + std::to_string(all));
      environment.push_back("MANYSCALE_MPI_SEGMENT=/dev/shm/" + std::string(mpi_segment));
    }
    const LoadedProgram loaded =
        load_program(process->memory, image, arguments, environment, {random_.next(), random_.next()});
    process->break_begin = process->break_end = loaded.break_begin;
    process->files[0] = std::make_shared<BytesFile>(spec.standard_input, S_IFIFO | 0600, 1);
    process->files[1] = std::make_shared<OutputFile>(*process, process->standard_output, 2);
    process->files[2] = std::make_shared<OutputFile>(*process, process->standard_error, 3);
    processes_.push_back(std::move(process));
    riscv::Hart hart;
    hart.pc = loaded.entry;
    hart.x[2] = loaded.stack_pointer;
    add_thread(*processes_.back(), hart, processes_.back()->id);
  }
  for (const auto& thread : threads_) scheduler_.created(*thread);
}

Thread& Kernel::add_thread(Process& process, const riscv::Hart& hart, std::int32_t id) {
  const auto slot = std::find_if(process.thread_slots.begin(), process.thread_slots.end(),
                                 [](const Thread* thread) { return thread->state == Thread::State::ended; });
  const auto index = static_cast<std::uint32_t>(slot - process.thread_slots.begin());
  std::uint32_t number = 0;
  if (slot == process.thread_slots.end()) {
    number = static_cast<std::uint32_t>(threads_.size());
    threads_.push_back(std::make_unique<Thread>());
    process.thread_slots.push_back(threads_.back().get());
  } else {
    number = (*slot)->number;
    **slot = Thread{};
  }
  Thread& thread = *threads_[number];
  thread.hart = hart;
  thread.process = &process;
  thread.number = number;
  thread.index = index;
  thread.id = id;
  thread.affinity.assign(cores_, true);
  // The processes share the cores out among them, and each puts its threads on one core after the other.
  const std::uint32_t first = process.number * std::max(cores_ / ranks_, 1u);
  thread.core = (first + index) % cores_;
  process.threads.push_back(&thread);
  ++living_;
  return thread;
}

Thread* Kernel::create_thread(Process& process, const riscv::Hart& hart) {
  return living_ < most_threads ? &add_thread(process, hart, next_id_++) : nullptr;
}

Thread* Kernel::find_thread(std::int32_t id) const {
  for (const auto& process : processes_) {
    for (Thread* thread : process->threads) {
      if (thread->id == id) return thread;
    }
  }
  return nullptr;
}

void Kernel::end_thread(Thread& thread) {
  if (thread.state == Thread::State::ended) return;
  Process& process = *thread.process;
  leave_futex(thread);
  deadlines_.erase({thread.deadline, thread.number});
  thread.state = Thread::State::ended;
  std::erase(process.threads, &thread);
  --living_;
  release_robust_list(thread);
  if (thread.clear_child_id != 0 && !process.threads.empty()) {
    const std::uint32_t zero = 0;
    if (process.memory.write(thread.clear_child_id, &zero, sizeof zero)) {
      futex_wake(process.memory.physical(thread.clear_child_id), 1, ~0u);
    }
  }
  scheduler_.ended(thread);
  if (process.threads.empty() && !process.ended) end_process(process, process.exit_status);
}

void Kernel::end_process(Process& process, int status) {
  if (process.ended) return;
  process.ended = true;
  process.exit_status = status;
  const std::vector<Thread*> threads = process.threads;
  for (Thread* thread : threads) end_thread(*thread);
  set_alarm(process, never, 0);
  process.files.clear();
  retry_waiting();
}

int Kernel::exit_status() const {
  for (const auto& process : processes_) {
    if (process->exit_status != 0) return process->exit_status;
  }
  return 0;
}

void Kernel::fail(const Thread& thread, std::string kind, std::uint64_t address, std::string what) const {
  throw ProgramError(
      {thread.process->number, thread.index, thread.hart.pc, std::move(kind), address, std::move(what)});
}

void Kernel::fail_beyond_time(const Thread& thread, const char* what) const {
  fail(thread, "time", 0,
       "nothing happens any more before thread " + std::to_string(thread.index) + " of process " +
           std::to_string(thread.process->number) + " has waited for " + what +
           " until after the end of simulated time (9223 s, 2.5 hours)");
}

void Kernel::wait(Thread& thread, const char* what, Time deadline) {
  thread.state = Thread::State::waiting;
  thread.waits_for = what;
  thread.deadline = deadline;
  if (deadline != never) deadlines_.insert({deadline, thread.number});
}

void Kernel::wake(Thread& thread, std::int64_t result) {
  if (thread.state != Thread::State::waiting) return;
  leave_futex(thread);
  deadlines_.erase({thread.deadline, thread.number});
  thread.deadline = never;
  thread.state = Thread::State::runnable;
  thread.hart.x[10] = static_cast<std::uint64_t>(result);
  thread.retries = false;
  thread.awaited_signals = 0;
  thread.poll_deadline = 0;
  scheduler_.awakened(thread);
}

void Kernel::expire_deadlines() {
  while (!deadlines_.empty() && deadlines_.begin()->first <= time) {
    const std::uint32_t number = deadlines_.begin()->second;
    if ((number & alarm_bit) != 0) {
      Process& process = *processes_[number & ~alarm_bit];
      if (time == last_moment) fail_beyond_time(*process.threads.front(), "an alarm");
      const Time next = process.alarm_interval == 0 ? never : moment_after(time, process.alarm_interval);
      set_alarm(process, next, process.alarm_interval);
      raise(process, SIGALRM);
      continue;
    }
    Thread& thread = *threads_[number];
    if (time == last_moment) fail_beyond_time(thread, thread.waits_for);
    if (thread.retries) {
      retry(thread);
    } else {
      wake(thread, thread.timeout_result);
    }
  }
}

void Kernel::set_alarm(Process& process, Time when, Time interval) {
  deadlines_.erase({process.alarm, process.number | alarm_bit});
  process.alarm = when;
  process.alarm_interval = interval;
  if (when != never) deadlines_.insert({when, process.number | alarm_bit});
}

void Kernel::retry_waiting() {
  // Indices, since a call made again may wake or make others.
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    if (threads_[i]->state == Thread::State::waiting && threads_[i]->retries) retry(*threads_[i]);
  }
}

void Kernel::do_system_call(Thread& thread) {
  riscv::Hart& hart = thread.hart;
  const std::uint64_t number = hart.x[17];
  const SystemCall& known = system_call_of(number);
  if (known.handler == nullptr) {
    const std::string name = known.name.empty() ? "which is not a call of Linux" : std::string(known.name);
    fail(thread, "system call", number,
         "system call " + std::to_string(number) + " (" + name + ") is not implemented");
  }
  Call call{*this,
            thread,
            *thread.process,
            {hart.x[10], hart.x[11], hart.x[12], hart.x[13], hart.x[14], hart.x[15]}};
  const std::int64_t result = known.handler(call);
  if (result != no_result) hart.x[10] = static_cast<std::uint64_t>(result);
}

void Kernel::system_call(Thread& thread) {
  constexpr std::uint64_t return_from_handler_number = 139;
  ++thread.hart.retired;
  const bool replaces_registers = thread.hart.x[17] == return_from_handler_number;
  do_system_call(thread);
  if (!replaces_registers) thread.hart.pc += 4;
  deliver_signals(thread);
}

void Kernel::retry(Thread& thread) {
  // As if it had not begun to wait; pc is already behind the call.
  deadlines_.erase({thread.deadline, thread.number});
  thread.deadline = never;
  thread.state = Thread::State::runnable;
  thread.retries = false;
  thread.hart.pc -= 4;
  do_system_call(thread);
  thread.hart.pc += 4;
  if (thread.state == Thread::State::runnable) scheduler_.awakened(thread);
}

std::shared_ptr<SharedSegment> Kernel::make_segment(std::uint64_t bytes) {
  std::uint64_t used = bytes;
  std::erase_if(segments_, [](const auto& segment) { return segment.expired(); });
  for (const auto& segment : segments_) used += segment.lock()->bytes();
  if (bytes > memory_limit_ || used > memory_limit_ || segments_made_ >= most_segments) return {};
  auto segment = std::make_shared<SharedSegment>(segments_made_++, bytes);
  segments_.push_back(segment);
  return segment;
}

std::int64_t Kernel::futex_wait(Thread& thread, std::uint64_t key, std::uint32_t bits, Time deadline) {
  thread.futex = key;
  thread.futex_bits = bits;
  thread.timeout_result = -ETIMEDOUT;
  futexes_[key].push_back(&thread);
  wait(thread, "a futex", deadline);
  return 0;
}

std::int64_t Kernel::futex_wake(std::uint64_t key, std::uint64_t most, std::uint32_t bits) {
  if (wake_watch.woke && wake_watch.segment->holds(key)) wake_watch.woke(key);
  const auto found = futexes_.find(key);
  if (found == futexes_.end()) return 0;
  std::vector<Thread*> chosen;
  for (Thread* thread : found->second) {
    if (chosen.size() >= most) break;
    if ((thread->futex_bits & bits) != 0) chosen.push_back(thread);
  }
  for (Thread* thread : chosen) wake(*thread, 0);
  return static_cast<std::int64_t>(chosen.size());
}

std::int64_t Kernel::futex_requeue(std::uint64_t from, std::uint64_t to, std::uint64_t wake_most,
                                   std::uint64_t move_most) {
  std::int64_t count = futex_wake(from, wake_most, ~0u);
  const auto found = futexes_.find(from);
  if (found == futexes_.end() || from == to) return count;
  std::vector<Thread*> moved;
  for (Thread* thread : found->second) {
    if (moved.size() >= move_most) break;
    moved.push_back(thread);
  }
  for (Thread* thread : moved) {
    leave_futex(*thread);
    thread->futex = to;
    futexes_[to].push_back(thread);
  }
  return count + static_cast<std::int64_t>(moved.size());
}

void Kernel::leave_futex(Thread& thread) {
  if (thread.futex == 0) return;
  const auto found = futexes_.find(thread.futex);
  std::erase(found->second, &thread);
  if (found->second.empty()) futexes_.erase(found);
  thread.futex = 0;
}

// A thread that ends while it holds robust mutexes leaves them marked, and
// wakes who waits for them.
void Kernel::release_robust_list(Thread& thread) {
  constexpr std::uint32_t owner_died = 0x40000000, waiters = 0x80000000, id_mask = 0x3fffffff;
  if (thread.robust_list == 0) return;
  AddressSpace& memory = thread.process->memory;
  std::array<std::uint64_t, 3> head{};  // first entry, offset of the futex word, entry being changed
  if (!memory.read(thread.robust_list, head.data(), sizeof head)) return;
  const auto release = [&](std::uint64_t entry) {
    const std::uint64_t at = (entry & ~std::uint64_t{1}) + head[1];
    std::uint32_t word = 0;
    if (!memory.read(at, &word, sizeof word) || (word & id_mask) != static_cast<std::uint32_t>(thread.id))
      return;
    const bool waited_for = (word & waiters) != 0;
    word = (word & waiters) | owner_died;
    if (memory.write(at, &word, sizeof word) && waited_for) futex_wake(memory.physical(at), 1, ~0u);
  };
  constexpr int most_entries = 2048;  // a damaged list may be a ring
  std::uint64_t entry = head[0];
  for (int i = 0; i < most_entries && entry != 0 && (entry & ~std::uint64_t{1}) != thread.robust_list; ++i) {
    std::uint64_t next = 0;
    if (!memory.read(entry & ~std::uint64_t{1}, &next, sizeof next)) break;
    if (entry != head[2]) release(entry);
    entry = next;
  }
  if (head[2] != 0) release(head[2]);
}

}  // namespace manyscale::cpu

// SPDX-License-Identifier: Apache-2.0
#include "process.hpp"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>

#include "managed.hpp"

namespace manyscale::cudart {

namespace {

enum class Phase { untouched, ready, failed, forked };

// Never destroyed: threads and exit handlers of the program may still call when it ends.
struct Process {
  std::mutex mutex;
  std::atomic<Phase> phase{Phase::untouched};
  Error failure = Error::success;
  std::string socket;
  Heap heap;
  int devices = 0;
  bool measured = false;  // the time of the host goes on between calls
  std::vector<std::unique_ptr<DeviceDescription>> descriptions;
  std::atomic<Error> sticky{Error::success};
  std::atomic<int> connections_made{0};
};

Process& process() {
  static Process& only = *new Process;
  return only;
}

struct Thread {
  Connection connection;
  bool was_open = false;
  int device = 0;
  Error last = Error::success;
};

// Made at a thread's first call and deleted at its end; that of the main thread is kept, since destructors of
// global objects may call too.
thread_local Thread* this_thread = nullptr;

Thread& make_thread() {
  static const pthread_key_t key = [] {
    pthread_key_t made{};
    pthread_key_create(&made, [](void* ended) {
      this_thread = nullptr;
      delete static_cast<Thread*>(ended);
    });
    return made;
  }();
  this_thread = new Thread;
  pthread_setspecific(key, this_thread);
  return *this_thread;
}

Thread& thread() {
  return this_thread != nullptr ? *this_thread : make_thread();
}

void after_fork_in_child() {
  Process& shared = process();
  if (shared.phase == Phase::untouched) return;
  shared.phase = Phase::forked;
  thread().connection.close();
}

// The heap at the addresses that the devices use; nothing of it may be touched until it is allocated for the
// host.
Error map_heap(const wire::Hello::Answer& hello, int file, Heap& heap) {
  if (file < 0) {
    report_once(
        "the simulator did not share its memory: the CUDA runtime and the simulator differ, install both "
        "again");
    return Error::initialization;
  }
  void* at = reinterpret_cast<void*>(hello.heap);
  void* mapped =
      mmap(at, hello.heap_bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, file, 0);
  if (mapped != at) {
    const int reason = errno;
    if (mapped != MAP_FAILED) munmap(mapped, hello.heap_bytes);
    char text[64];
    std::snprintf(text, sizeof text, "%#llx", static_cast<unsigned long long>(hello.heap));
    report_once(std::string("the memory of the simulated GPUs cannot be mapped at ") + text + " (" +
                (mapped == MAP_FAILED ? std::strerror(reason) : "the addresses are taken") +
                "): is there a limit on the address space (ulimit -v)?");
    return Error::memory_allocation;
  }
  heap.begin = hello.heap;
  heap.bytes = hello.heap_bytes;
  heap.file = file;
  heap.watched = (hello.flags & wire::kWatchManaged) != 0;
  return Error::success;
}

// The time of the host now, for clocks of the program (--host-clock simulated). Calls that are on their way
// count.
std::uint64_t host_time() {
  static thread_local bool asking = false;
  Thread* mine = this_thread;
  if (mine != nullptr && mine->connection.is_open() && !asking &&
      (process().measured || mine->connection.has_posted())) {
    asking = true;
    mine->connection.call<wire::HostTime>(mine->device, {}, nullptr);
    asking = false;
  }
  return simulated_time();
}

// The library with the clocks of the program, if it is there, reads this one from now on.
void offer_host_clock() {
  using Set = void (*)(std::uint64_t (*)());
  if (const auto set = reinterpret_cast<Set>(dlsym(RTLD_DEFAULT, "manyscale_set_host_clock"))) set(host_time);
}

Error open_first(Process& shared, Thread& mine) {
  const char* socket = std::getenv("MANYSCALE_CUDA_SOCKET");
  if (socket == nullptr || *socket == '\0') {
    report_once(
        "this is the CUDA runtime of a simulator, and no simulated GPU is there; start the program with: "
        "manyscale cuda -- PROGRAM");
    return Error::no_device;
  }
  shared.socket = socket;
  wire::Hello::Answer hello{};
  int file = -1;
  Error error = mine.connection.open(shared.socket, kRuntimeVersion, hello, file);
  if (error != Error::success) return error;
  error = map_heap(hello, file, shared.heap);
  if (error != Error::success) {
    mine.connection.close();
    return error;
  }
  shared.devices = static_cast<int>(hello.devices);
  shared.measured = (hello.flags & wire::kMeasuredHost) != 0;
  offer_host_clock();
  shared.descriptions.resize(hello.devices);
  pthread_atfork(nullptr, nullptr, after_fork_in_child);
  return Error::success;
}

}  // namespace

Error connect_thread() {
  Process& shared = process();
  Thread& mine = thread();
  if (mine.connection.is_open()) return Error::success;
  const std::lock_guard lock(shared.mutex);
  if (mine.was_open && shared.phase == Phase::ready) {
    shared.failure = Error::unknown;
    shared.phase = Phase::failed;
  }
  switch (shared.phase.load()) {
    case Phase::untouched: {
      const Error error = open_first(shared, mine);
      mine.was_open = error == Error::success;
      ++shared.connections_made;
      shared.failure = error;
      shared.phase = error == Error::success ? Phase::ready : Phase::failed;
      return error;
    }
    case Phase::ready: {
      ++shared.connections_made;  // before it can speak: others must not post any more
      wire::Hello::Answer hello{};
      int file = -1;
      const Error error = mine.connection.open(shared.socket, kRuntimeVersion, hello, file);
      if (file >= 0) close(file);
      mine.was_open = error == Error::success;
      return error == Error::success ? error
                                     : (shared.phase = Phase::failed, shared.failure = Error::unknown);
    }
    case Phase::failed:
      return shared.failure;
    case Phase::forked:
      break;
  }
  report_once(
      "a child made by fork() cannot go on with its parent's GPUs (as on hardware): fork before the first "
      "CUDA call, "
      "or start a new program");
  return Error::initialization;
}

Connection& connection() {
  return thread().connection;
}

const Heap& heap() {
  return process().heap;
}

int device_count() {
  return process().devices;
}

const DeviceDescription* describe_device(int device, Error& error) {
  error = connect_thread();
  if (error != Error::success) return nullptr;
  Process& shared = process();
  if (device < 0 || device >= shared.devices) {
    error = Error::invalid_device;
    return nullptr;
  }
  const std::lock_guard lock(shared.mutex);
  auto& known = shared.descriptions[static_cast<std::size_t>(device)];
  if (known == nullptr) {
    auto asked = std::make_unique<DeviceDescription>();
    std::vector<std::byte> tail;
    error = connection().call<wire::DeviceDescription>(device, {static_cast<std::uint32_t>(device)},
                                                       &asked->fields, {}, &tail);
    if (error != Error::success) return nullptr;
    struct Row {
      std::int32_t number, value;
    } row{};
    for (std::size_t at = 0; at + sizeof row <= tail.size(); at += sizeof row) {
      std::memcpy(&row, tail.data() + at, sizeof row);
      asked->attributes[row.number] = row.value;
    }
    known = std::move(asked);
  }
  return known.get();
}

UntimedCalls::UntimedCalls() {
  connection().begin_untimed();
}

UntimedCalls::~UntimedCalls() {
  connection().end_untimed();
}

bool may_post() {
  const Process& shared = process();
  return shared.connections_made == 1 && shared.sticky == Error::success;
}

int current_device() {
  return thread().device;
}

void set_current_device(int device) {
  thread().device = device;
}

Error finish(Error error) {
  Thread& mine = thread();
  watch_host_accesses();
  if (const std::string text = mine.connection.take_printed(); !text.empty())
    std::fwrite(text.data(), 1, text.size(), stdout);
  if (error == Error::success) return error;
  mine.last = error;
  if (mine.connection.take_sticky()) process().sticky = error;
  return error;
}

Error last_error(bool forget) {
  Thread& mine = thread();
  const Error sticky = process().sticky;
  const Error error = sticky != Error::success ? sticky : mine.last;
  if (forget) mine.last = Error::success;
  return error;
}

Error& last_error_of_thread() {
  return thread().last;
}

void forget_sticky_error() {
  process().sticky = Error::success;
  thread().last = Error::success;
}

}  // namespace manyscale::cudart

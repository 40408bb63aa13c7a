// SPDX-License-Identifier: Apache-2.0
// Functions of the host run once, when what is before them in the stream has ended, also if nobody waits for
// them with a call of CUDA.
#include <condition_variable>
#include <mutex>

#include "cuda.hpp"

namespace {

struct Done {
  std::mutex mutex;
  std::condition_variable changed;
  int count = 0;
};

void note(void* data) {
  auto* done = static_cast<Done*>(data);
  const std::lock_guard lock(done->mutex);
  ++done->count;
  done->changed.notify_all();
}

}  // namespace

int main() {
  register_program();
  Done done;
  void* streams[3] = {};
  int* values = nullptr;
  MUST(cudaMalloc(&values, 128));
  for (void*& stream : streams) {
    MUST(cudaStreamCreateWithFlags(&stream, 1));
    void* arguments[] = {&values};
    MUST(cudaLaunchKernel(&fill_stub, {1, 1, 1}, {32, 1, 1}, arguments, 0, stream));
    MUST(cudaLaunchHostFunc(stream, note, &done));
    MUST(cudaLaunchKernel(&fill_stub, {1, 1, 1}, {32, 1, 1}, arguments, 0, stream));
  }
  std::unique_lock lock(done.mutex);
  done.changed.wait(lock, [&] { return done.count == 3; });
  lock.unlock();
  for (void* stream : streams) MUST(cudaStreamSynchronize(stream));
  EXPECT(done.count == 3 && fetch(values, 32)[31] == 38);
  std::puts("ok");
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Streams that write values to memory and wait for them: what comes later in such a stream waits for a value
// of the host, of another thread, or of another stream.
#include <unistd.h>

#include <thread>

#include "driver.hpp"

FUNCTION(cuInit)
FUNCTION(cuCtxSetCurrent)
FUNCTION(cuCtxSynchronize)
FUNCTION(cuDevicePrimaryCtxRetain)
FUNCTION(cuEventCreate)
FUNCTION(cuEventQuery)
FUNCTION(cuEventRecord)
FUNCTION(cuEventSynchronize)
FUNCTION(cuMemAlloc_v2)
FUNCTION(cuMemAllocHost_v2)
FUNCTION(cuMemcpyDtoHAsync_v2)
FUNCTION(cuMemcpyDtoH_v2)
FUNCTION(cuMemcpyHtoDAsync_v2)
FUNCTION(cuMemsetD32Async)
FUNCTION(cuStreamBatchMemOp)
FUNCTION(cuStreamBeginCapture_v2)
FUNCTION(cuStreamCreate)
FUNCTION(cuStreamEndCapture)
FUNCTION(cuStreamQuery)
FUNCTION(cuStreamSynchronize)
FUNCTION(cuStreamWaitEvent)
FUNCTION(cuStreamWaitValue32_v2)
FUNCTION(cuStreamWaitValue64_v2)
FUNCTION(cuStreamWriteValue32_v2)
FUNCTION(cuStreamWriteValue64_v2)

namespace {

enum : int { invalid_value = 1, not_ready = 600, capture_unsupported = 900 };
enum : unsigned { geq = 0, eq = 1, with_and = 2, nor = 3 };
constexpr unsigned kNonBlocking = 1;

void *first, *second;  // streams
volatile std::uint32_t* flag;
Address data;

Address flag_address() {
  return reinterpret_cast<Address>(flag);
}

std::uint32_t data_now() {
  std::uint32_t value = 0;
  MUST(cuMemcpyDtoHAsync_v2(&value, data, sizeof value, second));
  MUST(cuStreamSynchronize(second));
  return value;
}

// Commands behind a wait, and an event among them, come after the host has written.
void the_host_writes() {
  void* event = nullptr;
  MUST(cuEventCreate(&event, 0));
  *flag = 0;
  MUST(cuMemsetD32Async(data, 1u, Size{1}, first));
  MUST(cuStreamWaitValue32_v2(first, flag_address(), 1u, geq));
  MUST(cuMemsetD32Async(data, 2u, Size{1}, first));
  MUST(cuEventRecord(event, first));
  GIVES(not_ready, cuEventQuery(event));
  GIVES(not_ready, cuStreamQuery(first));
  EXPECT(data_now() == 1);
  MUST(cuStreamWaitEvent(second, event, 0));
  MUST(cuMemsetD32Async(data, 3u, Size{1}, second));
  std::uint32_t three = 3;
  MUST(cuMemcpyHtoDAsync_v2(data + 4, &three, sizeof three, second));
  three = 0;
  GIVES(not_ready, cuStreamQuery(second));
  *flag = 7;
  MUST(cuEventSynchronize(event));
  MUST(cuStreamSynchronize(second));
  std::uint32_t both[2] = {};
  MUST(cuMemcpyDtoH_v2(both, data, sizeof both));
  EXPECT(both[0] == 3 && both[1] == 3);
  MUST(cuEventQuery(event));
  MUST(cuStreamQuery(first));
}

void another_stream_writes() {
  MUST(cuMemsetD32Async(data, 0u, Size{2}, second));
  MUST(cuStreamSynchronize(second));
  MUST(cuStreamWaitValue64_v2(first, data, 5ull << 32, eq));
  MUST(cuMemsetD32Async(data + 8, 9u, Size{1}, first));
  MUST(cuStreamWriteValue64_v2(second, data, 5ull << 32, 0));
  MUST(cuStreamSynchronize(first));
  std::uint32_t words[3] = {};
  MUST(cuMemcpyDtoH_v2(words, data, sizeof words));
  EXPECT(words[0] == 0 && words[1] == 5 && words[2] == 9);
}

void another_thread_writes(void* context) {
  *flag = 0;
  MUST(cuStreamWaitValue32_v2(first, flag_address(), 6u, with_and));
  MUST(cuStreamWriteValue32_v2(first, data, 11u, 0));
  std::thread other([&] {
    MUST(cuCtxSetCurrent(context));
    usleep(20'000);
    *flag = 4;
  });
  MUST(cuCtxSynchronize());
  other.join();
  EXPECT(data_now() == 11);
}

union Operation {
  struct {
    int type;
    Address address;
    std::uint64_t value;
    unsigned flags;
  } fields;
  std::uint64_t padding[6];
};

void operations_come_together() {
  *flag = 1;
  Operation operations[4] = {};
  operations[0].fields = {2, flag_address(), 0xfffffff0u, 0};
  operations[1].fields = {6, 0, 0, 0};
  operations[2].fields = {1, flag_address(), 0xffffff00u, nor};  // has bits that neither has
  operations[3].fields = {5, data, 77, 0};
  MUST(cuStreamBatchMemOp(first, 4u, operations, 0u));
  MUST(cuStreamSynchronize(first));
  EXPECT(*flag == 0xfffffff0u && data_now() == 77);
  MUST(cuStreamWaitValue32_v2(first, flag_address(), 0xffffffe0u, geq));  // cyclic: 16 more
  MUST(cuStreamSynchronize(first));
}

void mistakes_are_refused() {
  GIVES(invalid_value, cuStreamWaitValue32_v2(first, flag_address() + 2, 1u, geq));
  GIVES(invalid_value, cuStreamWaitValue32_v2(first, flag_address(), 1u, 9u));
  int own = 0;
  GIVES(invalid_value, cuStreamWaitValue32_v2(first, &own, 1u, geq));
  GIVES(invalid_value, cuStreamWriteValue32_v2(first, Address{64}, 1u, 0u));
  void* graph = nullptr;
  MUST(cuStreamBeginCapture_v2(first, 0));
  GIVES(capture_unsupported, cuStreamWaitValue32_v2(first, flag_address(), 1u, geq));
  MUST(cuStreamEndCapture(first, &graph));
}

}  // namespace

int main() {
  MUST(cuInit(0));
  void* context = nullptr;
  MUST(cuDevicePrimaryCtxRetain(&context, 0));
  MUST(cuCtxSetCurrent(context));
  MUST(cuStreamCreate(&first, kNonBlocking));
  MUST(cuStreamCreate(&second, kNonBlocking));
  MUST(cuMemAllocHost_v2(&flag, Size{4096}));
  MUST(cuMemAlloc_v2(&data, Size{256}));
  the_host_writes();
  another_stream_writes();
  another_thread_writes(context);
  operations_come_together();
  mistakes_are_refused();
  std::puts("ok");
}

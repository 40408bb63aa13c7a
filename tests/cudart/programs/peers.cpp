// SPDX-License-Identifier: Apache-2.0
// Three devices: memory of one is copied to the next, and used by a kernel of another.
#include "cuda.hpp"

extern "C" {
int cudaDeviceCanAccessPeer(int*, int, int);
int cudaDeviceEnablePeerAccess(int, unsigned);
int cudaDeviceDisablePeerAccess(int);
int cudaIpcGetMemHandle(void*, void*);
struct Handle {
  char bytes[64];
};
int cudaIpcOpenMemHandle(void*, Handle, unsigned);
int cudaIpcCloseMemHandle(void*);
}

int main() {
  register_program();
  int devices = 0;
  MUST(cudaGetDeviceCount(&devices));
  EXPECT(devices == 3);
  int* values[3] = {};
  for (int device = 0; device < 3; ++device) {
    MUST(cudaSetDevice(device));
    MUST(cudaMalloc(&values[device], 128));
    const int offset = 100 * device;
    MUST(cudaMemcpyToSymbol(&offset_shadow, &offset, 4, 0, to_device));
    void* arguments[] = {&values[device]};
    MUST(cudaLaunchKernel(&fill_stub, {1, 1, 1}, {32, 1, 1}, arguments, 0, nullptr));
  }
  for (int device = 0; device < 3; ++device) {
    EXPECT(fetch(values[device], 32)[31] == 100 * device + 31);
    Attributes attributes{};
    MUST(cudaPointerGetAttributes(&attributes, values[device]));
    EXPECT(attributes.type == 2 && attributes.device == device);
  }
  MUST(cudaMemcpyPeer(values[0], 0, values[2], 2, 64));
  EXPECT(fetch(values[0], 32)[15] == 215 && fetch(values[0], 32)[16] == 16);
  GIVES(101, cudaMemcpyPeer(values[0], 0, values[2], 3, 64));

  int can = 0;
  MUST(cudaDeviceCanAccessPeer(&can, 1, 0));
  EXPECT(can == 1);
  MUST(cudaSetDevice(1));
  GIVES(705, cudaDeviceDisablePeerAccess(0));
  MUST(cudaDeviceEnablePeerAccess(0, 0));
  GIVES(704, cudaDeviceEnablePeerAccess(0, 0));
  GIVES(101, cudaDeviceEnablePeerAccess(1, 0));
  AddArguments arguments(values[0], 32, 1, 0);
  MUST(cudaLaunchKernel(&add_stub, {1, 1, 1}, {32, 1, 1}, arguments.pointers, 0, nullptr));
  EXPECT(fetch(values[0], 32)[16] == 17);
  MUST(cudaDeviceDisablePeerAccess(0));

  Handle handle{};
  void* opened = nullptr;
  MUST(cudaIpcGetMemHandle(&handle, values[2]));
  MUST(cudaIpcOpenMemHandle(&opened, handle, 1));
  EXPECT(fetch(opened, 1)[0] == 200);
  cudaGetLastError();
  std::puts("ok");
  return 0;
}

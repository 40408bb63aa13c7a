// SPDX-License-Identifier: Apache-2.0
// What the test programs use of the CUDA runtime, declared here since the toolkit's headers may not be there,
// and device code given as PTX text instead of by a compiler.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

struct Format {
  int x, y, z, w, kind;
};

struct Extent {
  std::size_t width, height, depth;
};

struct Position {
  std::size_t x, y, z;
};

struct Pitched {
  void* pointer;
  std::size_t pitch, width, height;
};

struct Copy3D {
  void* source_array;
  Position source_position;
  Pitched source;
  void* target_array;
  Position target_position;
  Pitched target;
  Extent extent;
  int kind;
};

struct Location {
  int type, id;
};

struct Attributes {
  int type, device;
  void* device_pointer;
  void* host_pointer;
  long reserved[8];
};

enum : int { to_device = 1, to_host = 2, on_device = 3, any_direction = 4 };

extern "C" {
void** __cudaRegisterFatBinary(void*);
void __cudaRegisterFatBinaryEnd(void**);
void __cudaUnregisterFatBinary(void**);
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, void*, void*, Dim3*, Dim3*, int*);
void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int);
unsigned __cudaPushCallConfiguration(Dim3, Dim3, std::size_t, void*);
int __cudaPopCallConfiguration(Dim3*, Dim3*, std::size_t*, void*);
int __cudaGetKernel(void**, const void*);
int __cudaLaunchKernel(void*, Dim3, Dim3, void**, std::size_t, void*);
int cudaLaunchKernel(const void*, Dim3, Dim3, void**, std::size_t, void*);
int cudaLaunchKernel_ptsz(const void*, Dim3, Dim3, void**, std::size_t, void*);
int cudaLaunchCooperativeKernel(const void*, Dim3, Dim3, void**, std::size_t, void*);
int cudaLaunchKernelExC(const void*, const void*, void**);
int cudaConfigureCall(Dim3, Dim3, std::size_t, void*);
int cudaSetupArgument(const void*, std::size_t, std::size_t);
int cudaLaunch(const void*);
int cudaGetLastError();
int cudaPeekAtLastError();
const char* cudaGetErrorName(int);
const char* cudaGetErrorString(int);
int cudaGetDeviceCount(int*);
int cudaSetDevice(int);
int cudaGetDevice(int*);
int cudaDeviceSynchronize();
int cudaDeviceReset();
int cudaDeviceGetAttribute(int*, int, int);
int cudaGetDeviceProperties(void*, int);
int cudaRuntimeGetVersion(int*);
int cudaMalloc(void*, std::size_t);
int cudaMallocManaged(void*, std::size_t, unsigned);
int cudaMallocPitch(void*, std::size_t*, std::size_t, std::size_t);
int cudaMalloc3D(Pitched*, Extent);
int cudaFree(void*);
int cudaMemGetInfo(std::size_t*, std::size_t*);
int cudaPointerGetAttributes(Attributes*, const void*);
int cudaHostAlloc(void*, std::size_t, unsigned);
int cudaFreeHost(void*);
int cudaHostRegister(void*, std::size_t, unsigned);
int cudaHostUnregister(void*);
int cudaHostGetDevicePointer(void*, void*, unsigned);
int cudaMemcpy(void*, const void*, std::size_t, int);
int cudaMemcpyAsync(void*, const void*, std::size_t, int, void*);
int cudaMemcpy2D(void*, std::size_t, const void*, std::size_t, std::size_t, std::size_t, int);
int cudaMemcpy3D(const Copy3D*);
int cudaMemcpyPeer(void*, int, const void*, int, std::size_t);
int cudaMemcpyToSymbol(const void*, const void*, std::size_t, std::size_t, int);
int cudaMemcpyFromSymbol(void*, const void*, std::size_t, std::size_t, int);
int cudaGetSymbolAddress(void*, const void*);
int cudaGetSymbolSize(std::size_t*, const void*);
int cudaMemset(void*, int, std::size_t);
int cudaMemset2D(void*, std::size_t, int, std::size_t, std::size_t);
int cudaMemset3D(Pitched, int, Extent);
int cudaMallocArray(void*, const Format*, std::size_t, std::size_t, unsigned);
int cudaMalloc3DArray(void*, const Format*, Extent, unsigned);
int cudaFreeArray(void*);
int cudaMemcpy2DToArray(void*, std::size_t, std::size_t, const void*, std::size_t, std::size_t, std::size_t,
                        int);
int cudaMemcpy2DFromArray(void*, std::size_t, const void*, std::size_t, std::size_t, std::size_t, std::size_t,
                          int);
int cudaMemcpyToArray(void*, std::size_t, std::size_t, const void*, std::size_t, int);
int cudaStreamCreate(void*);
int cudaStreamCreateWithFlags(void*, unsigned);
int cudaStreamDestroy(void*);
int cudaStreamSynchronize(void*);
int cudaStreamQuery(void*);
int cudaStreamWaitEvent(void*, void*, unsigned);
int cudaStreamBeginCapture(void*, int);
int cudaStreamEndCapture(void*, void*);
int cudaLaunchHostFunc(void*, void (*)(void*), void*);
int cudaEventCreate(void*);
int cudaEventRecord(void*, void*);
int cudaEventSynchronize(void*);
int cudaEventElapsedTime(float*, void*, void*);
int cudaEventDestroy(void*);
int cudaGraphCreate(void*, unsigned);
int cudaGraphDestroy(void*);
int cudaGraphAddKernelNode(void*, void*, void* const*, std::size_t, const void*);
int cudaGraphAddMemsetNode(void*, void*, void* const*, std::size_t, const void*);
int cudaGraphAddHostNode(void*, void*, void* const*, std::size_t, const void*);
int cudaGraphAddMemcpyNode1D(void*, void*, void* const*, std::size_t, void*, const void*, std::size_t, int);
int cudaGraphGetNodes(void*, void**, std::size_t*);
int cudaGraphClone(void*, void*);
int cudaGraphInstantiateWithFlags(void*, void*, unsigned long long);
int cudaGraphExecKernelNodeSetParams(void*, void*, const void*);
int cudaGraphNodeSetEnabled(void*, void*, unsigned);
int cudaGraphLaunch(void*, void*);
int cudaGraphExecDestroy(void*);
int cudaMallocAsync(void*, std::size_t, void*);
int cudaFreeAsync(void*, void*);
int cudaFuncGetAttributes(void*, const void*);
int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int*, const void*, int, std::size_t);
int cudaLibraryLoadData(void*, const void*, void*, void**, unsigned, void*, void**, unsigned);
int cudaLibraryGetKernel(void*, void*, const char*);
int cudaLibraryUnload(void*);
int cudaGLSetGLDevice(int);
int cudaIpcGetEventHandle(void*, void*);
}

// Ends the program, and says where, if something does not hold.
#define EXPECT(condition)                                                                 \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      std::fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                                       \
    }                                                                                     \
  } while (false)

// The same for a call that must give an error, or 0.
#define GIVES(error, call)                                                                            \
  do {                                                                                                \
    const int got = (call);                                                                           \
    if (got != (error)) {                                                                             \
      std::fprintf(stderr, "%s:%d: %s gives %s\n", __FILE__, __LINE__, #call, cudaGetErrorName(got)); \
      std::exit(1);                                                                                   \
    }                                                                                                 \
  } while (false)

#define MUST(call) GIVES(0, call)

// Kernels in PTX: `add` adds a number to each of n, `fill` writes the thread's number + a variable,
// `nothing`, and `trap`.
inline const char* kPtx = R"(.version 7.5
.target sm_70
.address_size 64
.global .align 4 .u32 offset = 7;
.const .align 4 .b8 table[64];
.visible .entry add(.param .u64 values, .param .u32 n, .param .u8 tiny, .param .u64 more)
{
  .reg .pred %p<2>;
  .reg .b32 %r<10>;
  .reg .b64 %d<6>;
  ld.param.u64 %d1, [values];
  ld.param.u32 %r1, [n];
  ld.param.u8 %r2, [tiny];
  ld.param.u64 %d2, [more];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.u32 %r6, %r3, %r4, %r5;
  setp.ge.u32 %p1, %r6, %r1;
  @%p1 bra done;
  mul.wide.u32 %d3, %r6, 4;
  add.u64 %d4, %d1, %d3;
  ld.global.u32 %r7, [%d4];
  add.u32 %r7, %r7, %r2;
  cvt.u32.u64 %r8, %d2;
  add.u32 %r7, %r7, %r8;
  st.global.u32 [%d4], %r7;
done:
  ret;
}
.visible .entry fill(.param .u64 values)
{
  .reg .b32 %r<4>;
  .reg .b64 %d<4>;
  ld.param.u64 %d1, [values];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %d2, %r1, 4;
  add.u64 %d3, %d1, %d2;
  ld.global.u32 %r2, [offset];
  add.u32 %r3, %r1, %r2;
  st.global.u32 [%d3], %r3;
  ret;
}
.visible .entry nothing()
{
  ret;
}
.visible .entry trap_now()
{
  trap;
}
)";

// A container with PTX as nvcc makes them, and the wrapper that points to it.
class Fatbin {
 public:
  explicit Fatbin(const char* ptx) {
    const std::size_t length = std::strlen(ptx) + 1;
    const std::size_t padded = (length + 7) / 8 * 8;
    put(std::uint32_t{0xBA55ED50});
    put(std::uint16_t{1});
    put(std::uint16_t{16});
    put(std::uint64_t{64 + padded});
    put(std::uint16_t{1});
    put(std::uint16_t{0x101});
    put(std::uint32_t{64});
    put(std::uint64_t{padded});
    put(std::uint64_t{0});
    put(std::uint16_t{5});
    put(std::uint16_t{7});
    put(std::uint32_t{70});
    put(std::uint64_t{0});
    put(std::uint64_t{0x11});
    put(std::uint64_t{0});
    put(std::uint64_t{0});
    bytes_.insert(bytes_.end(), ptx, ptx + length);
    bytes_.resize(80 + padded);
    wrapper_ = {0x466243b1, 1, bytes_.data(), nullptr};
  }
  void* wrapper() { return &wrapper_; }

 private:
  template <class Number>
  void put(Number number) {
    const auto* first = reinterpret_cast<const char*>(&number);
    bytes_.insert(bytes_.end(), first, first + sizeof number);
  }
  std::vector<char> bytes_;
  struct {
    std::uint32_t magic, version;
    const void* data;
    const void* more;
  } wrapper_{};
};

// Stands for the host's stubs of kernels and the host's shadows of variables: only their addresses count.
inline char add_stub, fill_stub, nothing_stub, trap_stub, offset_shadow, table_shadow;

// What the compiler's start-up code does.
inline void** register_program() {
  static Fatbin fatbin(kPtx);
  void** module = __cudaRegisterFatBinary(fatbin.wrapper());
  auto function = [&](char& stub, const char* name) {
    __cudaRegisterFunction(module, &stub, nullptr, name, -1, nullptr, nullptr, nullptr, nullptr, nullptr);
  };
  function(add_stub, "add");
  function(fill_stub, "fill");
  function(nothing_stub, "nothing");
  function(trap_stub, "trap_now");
  __cudaRegisterVar(module, &offset_shadow, nullptr, "offset", 0, 4, 0, 0);
  __cudaRegisterVar(module, &table_shadow, nullptr, "table", 0, 64, 1, 0);
  __cudaRegisterFatBinaryEnd(module);
  return module;
}

// The arguments of `add` as a stub hands them over.
struct AddArguments {
  void* values;
  unsigned n;
  unsigned char tiny;
  std::uint64_t more;
  void* pointers[4] = {&values, &n, &tiny, &more};
  AddArguments(void* values, unsigned n, unsigned char tiny, std::uint64_t more)
      : values(values), n(n), tiny(tiny), more(more) {}
  AddArguments(const AddArguments&) = delete;
  AddArguments& operator=(const AddArguments&) = delete;
};

inline std::vector<int> fetch(const void* device, std::size_t count) {
  std::vector<int> values(count);
  MUST(cudaMemcpy(values.data(), device, count * sizeof(int), to_host));
  return values;
}

// SPDX-License-Identifier: Apache-2.0
// Fills, copies of rows and slices, arrays, textures and pointers through the driver alone.
#include "driver.hpp"

FUNCTION(cuInit)
FUNCTION(cuArray3DCreate_v2)
FUNCTION(cuArray3DGetDescriptor_v2)
FUNCTION(cuArrayCreate_v2)
FUNCTION(cuArrayDestroy)
FUNCTION(cuCtxSynchronize)
FUNCTION(cuDeviceGetDefaultMemPool)
FUNCTION(cuLaunchKernel)
FUNCTION(cuMemAdvise)
FUNCTION(cuMemAlloc_v2)
FUNCTION(cuMemAllocAsync)
FUNCTION(cuMemAllocHost_v2)
FUNCTION(cuMemAllocManaged)
FUNCTION(cuMemFreeAsync)
FUNCTION(cuMemGetAddressRange_v2)
FUNCTION(cuMemHostRegister_v2)
FUNCTION(cuMemHostUnregister)
FUNCTION(cuMemPoolGetAttribute)
FUNCTION(cuMemPrefetchAsync)
FUNCTION(cuMemcpy2D_v2)
FUNCTION(cuMemcpy2DAsync_v2)
FUNCTION(cuMemcpy3D_v2)
FUNCTION(cuMemcpyAsync)
FUNCTION(cuMemcpyDtoH_v2)
FUNCTION(cuMemcpyHtoDAsync_v2_ptsz)
FUNCTION(cuMemsetD16_v2)
FUNCTION(cuMemsetD2D32_v2)
FUNCTION(cuMemsetD8Async)
FUNCTION(cuModuleGetFunction)
FUNCTION(cuModuleLoadData)
FUNCTION(cuPointerGetAttribute)
FUNCTION(cuPointerGetAttributes)
FUNCTION(cuStreamSynchronize)
FUNCTION(cuStreamSynchronize_ptsz)
FUNCTION(cuTexObjectCreate)
FUNCTION(cuTexObjectDestroy)

namespace {

enum Memory : int { host = 1, device = 2, array = 3 };

struct Side2D {
  Size x, y;
  int type;
  const void* host;
  Address device;
  void* array;
  Size pitch;
};

struct Copy2D {
  Side2D source, target;
  Size width, height;
};

struct Side3D {
  Size x, y, z, level;
  int type;
  const void* host;
  Address device;
  void* array;
  void* reserved;
  Size pitch, height;
};

struct Copy3D {
  Side3D source, target;
  Size width, height, depth;
};

struct Description {
  Size width, height;
  int format;
  unsigned channels;
};

struct Description3D {
  Size width, height, depth;
  int format;
  unsigned channels, flags;
};

struct Resource {
  int type;
  union {
    void* array;
    int reserved[32];
  };
  unsigned flags;
};

struct Texture {
  int address[3], filter;
  unsigned flags, anisotropy;
  int mipmap_filter;
  float bias, minimum, maximum, border[4];
  int reserved[12];
};

const char* kPtx = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry fetch(.param .u64 values, .param .u64 texture)
{
  .reg .b32 %r<3>;
  .reg .f32 %f<6>;
  .reg .b64 %d<4>;
  ld.param.u64 %d1, [values];
  ld.param.u64 %d2, [texture];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %d3, %r1, 4;
  add.u64 %d1, %d1, %d3;
  cvt.rn.f32.u32 %f5, %r1;
  add.f32 %f5, %f5, 0f3F000000;
  tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%d2, {%f5, %f5}];
  st.global.f32 [%d1], %f1;
  ret;
}
)";

template <class Element>
std::vector<Element> taken(Address from, Size count) {
  std::vector<Element> values(count);
  MUST(cuMemcpyDtoH_v2(values.data(), from, count * sizeof(Element)));
  return values;
}

void check_fills() {
  Address memory = 0;
  MUST(cuMemAlloc_v2(&memory, Size{4096}));
  MUST(cuMemsetD16_v2(memory, 0x1234, Size{2048}));
  for (const auto value : taken<std::uint16_t>(memory, 2048)) EXPECT(value == 0x1234);
  MUST(cuMemsetD2D32_v2(memory, Size{64}, 0xabcd0123u, Size{3}, Size{4}));
  const auto rows = taken<std::uint32_t>(memory, 64);
  for (Size i = 0; i < 64; ++i) EXPECT(rows[i] == (i % 16 < 3 ? 0xabcd0123u : 0x12341234u));
  MUST(cuMemsetD8Async(memory, 7, Size{100}, nullptr));
  MUST(cuStreamSynchronize(nullptr));
  EXPECT(taken<unsigned char>(memory, 101)[99] == 7 && taken<unsigned char>(memory, 101)[100] != 7);
  GIVES(1, cuMemsetD16_v2(memory + 1, 0, Size{2}));
}

void check_rows_and_slices() {
  std::vector<float> values(8 * 8), back(8 * 8), part(2 * 2);
  for (Size i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  void* plane = nullptr;
  const Description flat{8, 8, 0x20, 1};
  MUST(cuArrayCreate_v2(&plane, &flat));
  Copy2D in{{0, 0, host, values.data(), 0, nullptr, 32}, {0, 0, array, nullptr, 0, plane, 0}, 32, 8};
  MUST(cuMemcpy2D_v2(&in));
  Copy2D out{{8, 3, array, nullptr, 0, plane, 0}, {0, 0, host, part.data(), 0, nullptr, 8}, 8, 2};
  MUST(cuMemcpy2DAsync_v2(&out, nullptr));
  MUST(cuCtxSynchronize());
  EXPECT(part[0] == 26 && part[1] == 27 && part[2] == 34 && part[3] == 35);
  out.source.x = 3;
  GIVES(1, cuMemcpy2D_v2(&out));

  void* volume = nullptr;
  const Description3D deep{4, 4, 4, 0x20, 1, 0};
  Description3D told{};
  MUST(cuArray3DCreate_v2(&volume, &deep));
  MUST(cuArray3DGetDescriptor_v2(&told, volume));
  EXPECT(told.width == 4 && told.depth == 4 && told.format == 0x20 && told.channels == 1);
  Address memory = 0;
  MUST(cuMemAlloc_v2(&memory, Size{256}));
  Copy3D to{{0, 0, 0, 0, host, values.data(), 0, nullptr, nullptr, 16, 4},
            {0, 0, 0, 0, array, nullptr, 0, volume, nullptr, 0, 0},
            16,
            4,
            4};
  MUST(cuMemcpy3D_v2(&to));
  Copy3D from{{0, 0, 1, 0, array, nullptr, 0, volume, nullptr, 0, 0},
              {0, 0, 0, 0, device, nullptr, memory, nullptr, nullptr, 16, 4},
              16,
              4,
              2};
  MUST(cuMemcpy3D_v2(&from));
  const auto slices = taken<float>(memory, 32);
  for (Size i = 0; i < 32; ++i) EXPECT(slices[i] == static_cast<float>(16 + i));

  void *module = nullptr, *fetch = nullptr;
  Address texture = 0;
  Resource resource{};
  resource.array = plane;
  Texture how{};
  MUST(cuTexObjectCreate(&texture, &resource, &how, nullptr));
  MUST(cuModuleLoadData(&module, kPtx));
  MUST(cuModuleGetFunction(&fetch, module, "fetch"));
  void* arguments[] = {&memory, &texture};
  MUST(cuLaunchKernel(fetch, 1, 1, 1, 8, 1, 1, 0, nullptr, arguments, nullptr));
  const auto diagonal = taken<float>(memory, 8);
  for (Size i = 0; i < 8; ++i) EXPECT(diagonal[i] == static_cast<float>(9 * i));
  MUST(cuTexObjectDestroy(texture));
  MUST(cuArrayDestroy(plane));
  MUST(cuArrayDestroy(volume));
}

void check_pointers() {
  Address memory = 0, begin = 0, managed = 0;
  Size bytes = 0;
  MUST(cuMemAlloc_v2(&memory, Size{1000}));
  MUST(cuMemGetAddressRange_v2(&begin, &bytes, memory + 500));
  EXPECT(begin == memory && bytes == 1000);
  GIVES(500, cuMemGetAddressRange_v2(&begin, &bytes, Address{64}));
  unsigned type = 0;
  void* context = nullptr;
  int ordinal = -1;
  bool is_managed = true;
  MUST(cuPointerGetAttribute(&type, 2, memory));
  EXPECT(type == device);
  const int wanted[] = {1, 8, 9, 12};
  void* answers[] = {&context, &is_managed, &ordinal, &bytes};
  MUST(cuPointerGetAttributes(4, wanted, answers, memory));
  EXPECT(context != nullptr && !is_managed && ordinal == 0 && bytes == 1000);
  bool is_shared = false, by_network = true;
  Size mapped = 0;
  const int more[] = {10, 15, 18};
  void* facts[] = {&is_shared, &by_network, &mapped};
  MUST(cuPointerGetAttributes(3, more, facts, memory));
  EXPECT(is_shared && !by_network && mapped == 1000);
  bool beside[] = {true, true};
  void* flag[] = {beside};
  MUST(cuPointerGetAttributes(1, more, flag, Address{64}));
  EXPECT(!beside[0] && beside[1]);  // one byte is a flag
  MUST(cuMemAllocManaged(&managed, Size{4096}, 1));
  MUST(cuPointerGetAttribute(&is_managed, 8, managed));
  EXPECT(is_managed);
  MUST(cuMemAdvise(managed, Size{4096}, 1, 0));
  MUST(cuMemPrefetchAsync(managed, Size{4096}, 0, nullptr));
  MUST(cuCtxSynchronize());
  void* pinned = nullptr;
  MUST(cuMemAllocHost_v2(&pinned, Size{64}));
  MUST(cuPointerGetAttribute(&type, 2, reinterpret_cast<Address>(pinned)));
  EXPECT(type == host);
  int local = 0;
  GIVES(1, cuPointerGetAttribute(&type, 2, reinterpret_cast<Address>(&local)));
}

void check_pools() {
  Address memory = 0;
  void* pool = nullptr;
  std::uint64_t used = 0;
  MUST(cuMemAllocAsync(&memory, Size{1 << 16}, nullptr));
  MUST(cuDeviceGetDefaultMemPool(&pool, 0));
  MUST(cuMemPoolGetAttribute(pool, 7, &used));
  EXPECT(used >= 1 << 16);
  const int value = 42;
  int back = 0;
  MUST(cuMemcpyHtoDAsync_v2_ptsz(memory, &value, Size{4}, nullptr));
  MUST(cuStreamSynchronize_ptsz(nullptr));
  MUST(cuMemcpyAsync(reinterpret_cast<Address>(&back), memory, Size{4}, nullptr));
  MUST(cuCtxSynchronize());
  EXPECT(back == 42);
  MUST(cuMemFreeAsync(memory, nullptr));
  alignas(4096) static char own[4096];
  MUST(cuMemHostRegister_v2(own, Size{4096}, 0));
  GIVES(712, cuMemHostRegister_v2(own, Size{4096}, 0));
  MUST(cuMemHostUnregister(own));
}

}  // namespace

int main() {
  MUST(cuInit(0));
  check_fills();
  check_rows_and_slices();
  check_pointers();
  check_pools();
  std::puts("ok");
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Copies to and from rows of arrays, batches of copies and prefetches, and what textures, surfaces and pools
// are told to be.
#include <numeric>

#include "driver.hpp"

FUNCTION(cuInit)
FUNCTION(cuArrayCreate_v2)
FUNCTION(cuCtxAttach)
FUNCTION(cuCtxDetach)
FUNCTION(cuCtxSynchronize)
FUNCTION(cuDeviceGetDefaultMemPool)
FUNCTION(cuDeviceGetTexture1DLinearMaxWidth)
FUNCTION(cuMemAllocManaged)
FUNCTION(cuMemAlloc_v2)
FUNCTION(cuMemGetDefaultMemPool)
FUNCTION(cuMemGetMemPool)
FUNCTION(cuMemPrefetchBatchAsync)
FUNCTION(cuMemSetMemPool)
FUNCTION(cuMemcpy3DPeer)
FUNCTION(cuMemcpyAtoA_v2)
FUNCTION(cuMemcpyAtoD_v2)
FUNCTION(cuMemcpyAtoHAsync_v2)
FUNCTION(cuMemcpyAtoH_v2)
FUNCTION(cuMemcpyBatchAsync)
FUNCTION(cuMemcpyBatchAsync_v2)
FUNCTION(cuMemcpyDtoA_v2)
FUNCTION(cuMemcpyDtoH_v2)
FUNCTION(cuMemcpyHtoAAsync_v2)
FUNCTION(cuMemcpyHtoA_v2)
FUNCTION(cuMemcpyHtoD_v2)
FUNCTION(cuProfilerInitialize)
FUNCTION(cuSurfObjectCreate)
FUNCTION(cuSurfObjectDestroy)
FUNCTION(cuSurfObjectGetResourceDesc)
FUNCTION(cuTexObjectCreate)
FUNCTION(cuTexObjectDestroy)
FUNCTION(cuTexObjectGetResourceDesc)
FUNCTION(cuTexObjectGetResourceViewDesc)
FUNCTION(cuTexObjectGetTextureDesc)

namespace {

enum : int { invalid_value = 1, not_supported = 801 };
constexpr int kFloat = 0x20;  // CUarray_format
constexpr Size kCount = 64, kBytes = kCount * sizeof(float);

struct Location {
  int type, id;
};

Address allocated(Size bytes) {
  Address made = 0;
  MUST(cuMemAlloc_v2(&made, bytes));
  return made;
}

std::vector<float> numbers() {
  std::vector<float> made(kCount);
  std::iota(made.begin(), made.end(), 1.0f);
  return made;
}

void* new_array() {
  struct {
    Size width = kCount, height = 0;
    int format = kFloat;
    unsigned channels = 1;
  } description;
  void* array = nullptr;
  MUST(cuArrayCreate_v2(&array, &description));
  return array;
}

void rows_of_arrays_are_copied() {
  void *first = new_array(), *second = new_array();
  const std::vector<float> given = numbers();
  const Address memory = allocated(kBytes);
  std::vector<float> got(kCount);
  MUST(cuMemcpyHtoA_v2(first, Size{0}, given.data(), kBytes));
  MUST(cuMemcpyAtoA_v2(second, Size{16}, first, Size{0}, kBytes - 16));
  MUST(cuMemcpyAtoD_v2(memory, second, Size{16}, kBytes - 16));
  MUST(cuMemcpyDtoA_v2(first, Size{4}, memory, Size{8}));
  MUST(cuMemcpyAtoH_v2(got.data(), first, Size{0}, kBytes));
  EXPECT(got[0] == 1 && got[1] == 1 && got[2] == 2 && got[3] == 4 && got[kCount - 1] == kCount);
  MUST(cuMemcpyHtoAAsync_v2(first, Size{0}, given.data() + 8, Size{32}, nullptr));
  MUST(cuMemcpyAtoHAsync_v2(got.data(), first, Size{0}, Size{36}, nullptr));
  MUST(cuCtxSynchronize());
  EXPECT(got[0] == 9 && got[7] == 16 && got[8] == 9);
}

void batches_are_copied() {
  const std::vector<float> given = numbers();
  const Address memory = allocated(kBytes);
  std::vector<float> got(kCount);
  Address to[2] = {memory, memory + kBytes / 2};
  Address from[2] = {reinterpret_cast<Address>(given.data() + kCount / 2),
                     reinterpret_cast<Address>(given.data())};
  Size bytes[2] = {kBytes / 2, kBytes / 2}, failed = 99;
  MUST(cuMemcpyBatchAsync_v2(to, from, bytes, Size{2}, nullptr, nullptr, Size{0}, nullptr));
  MUST(cuMemcpyDtoH_v2(got.data(), memory, kBytes));
  EXPECT(got[0] == kCount / 2 + 1 && got[kCount / 2] == 1);
  bytes[1] = kBytes;  // too many
  GIVES(invalid_value,
        cuMemcpyBatchAsync(to, from, bytes, Size{2}, nullptr, nullptr, Size{0}, &failed, nullptr));
  EXPECT(failed == 1);
  Address managed[2] = {};
  for (Address& each : managed) MUST(cuMemAllocManaged(&each, Size{4096}, 1u));
  Size sizes[2] = {4096, 4096}, firsts[2] = {0, 1};
  Location locations[2] = {{1, 0}, {2, 0}};
  MUST(cuMemPrefetchBatchAsync(managed, sizes, Size{2}, locations, firsts, Size{2}, 0ull, nullptr));
  GIVES(invalid_value,
        cuMemPrefetchBatchAsync(managed, sizes, Size{2}, locations, firsts, Size{0}, 0ull, nullptr));
}

void volumes_are_copied_between_contexts() {
  struct Side {
    Size x = 0, y = 0, z = 0, level = 0;
    int type = 2;
    const void* host = nullptr;
    Address device = 0;
    void *array = nullptr, *context = nullptr;
    Size pitch = kBytes, height = 1;
  };
  struct {
    Side source, target;
    Size width = kBytes, height = 1, depth = 1;
  } copy;
  const std::vector<float> given = numbers();
  copy.source.device = allocated(kBytes);
  copy.target.device = allocated(kBytes);
  MUST(cuMemcpyHtoD_v2(copy.source.device, given.data(), kBytes));
  MUST(cuMemcpy3DPeer(&copy));
  std::vector<float> got(kCount);
  MUST(cuMemcpyDtoH_v2(got.data(), copy.target.device, kBytes));
  EXPECT(got == given);
}

void textures_say_what_they_were_made_of() {
  struct Resource {
    int type = 0;
    union {
      void* array;
      int reserved[32] = {};
    };
    unsigned flags = 0;
  } resource, told;
  struct Texture {
    int address[3] = {1, 2, 0}, filter = 1;
    int rest[22] = {};
  } texture, told_texture;
  told_texture.filter = 0;
  resource.array = new_array();
  std::uint64_t handle = 0;
  MUST(cuTexObjectCreate(&handle, &resource, &texture, nullptr));
  MUST(cuTexObjectGetResourceDesc(&told, handle));
  MUST(cuTexObjectGetTextureDesc(&told_texture, handle));
  EXPECT(told.array == resource.array && told_texture.filter == 1 && told_texture.address[1] == 2);
  char view[128];
  GIVES(invalid_value, cuTexObjectGetResourceViewDesc(view, handle));
  MUST(cuTexObjectDestroy(handle));
  GIVES(invalid_value, cuTexObjectGetResourceDesc(&told, handle));
  told.array = nullptr;
  MUST(cuSurfObjectCreate(&handle, &resource));
  MUST(cuSurfObjectGetResourceDesc(&told, handle));
  EXPECT(told.array == resource.array);
  MUST(cuSurfObjectDestroy(handle));
  Size width = 0;
  MUST(cuDeviceGetTexture1DLinearMaxWidth(&width, kFloat, 1u, 0));
  EXPECT(width == Size{1} << 28);
}

void pools_are_found_by_their_location() {
  void *pool = nullptr, *same = nullptr;
  const Location device{1, 0}, host{2, 0};
  MUST(cuDeviceGetDefaultMemPool(&pool, 0));
  MUST(cuMemGetDefaultMemPool(&same, &device, 1));
  EXPECT(same == pool);
  MUST(cuMemSetMemPool(&device, 1, pool));
  MUST(cuMemGetMemPool(&same, &device, 1));
  EXPECT(same == pool);
  GIVES(not_supported, cuMemGetDefaultMemPool(&same, &host, 1));
}

}  // namespace

int main() {
  MUST(cuInit(0));
  MUST(cuProfilerInitialize("", "", 0));
  rows_of_arrays_are_copied();
  batches_are_copied();
  volumes_are_copied_between_contexts();
  textures_say_what_they_were_made_of();
  pools_are_found_by_their_location();
  void* context = nullptr;
  MUST(cuCtxAttach(&context, 0));
  MUST(cuCtxDetach(context));
  std::puts("ok");
}

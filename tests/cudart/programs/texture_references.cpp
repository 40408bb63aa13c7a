// SPDX-License-Identifier: Apache-2.0
// Texture and surface references, as programs of CUDA 11 have them: bound to linear memory, to rows with a
// pitch and to arrays, and bound again between launches.
#include "cuda.hpp"

// struct textureReference and surfaceReference of CUDA 11.
struct TextureReference {
  int normalized = 0;
  int filter = 0;  // 0 the nearest, 1 linear
  int address[3] = {1, 1, 1};
  Format format{32, 0, 0, 0, 2};
  int srgb = 0;
  unsigned anisotropy = 0;
  int mipmap_filter = 0;
  float bias = 0, minimum = 0, maximum = 0;
  int no_trilinear = 0;
  int reserved[14] = {};
};

struct SurfaceReference {
  Format format{};
};

extern "C" {
void __cudaRegisterTexture(void**, const void*, const void**, const char*, int, int, int);
void __cudaRegisterSurface(void**, const void*, const void**, const char*, int, int);
int cudaBindTexture(std::size_t*, const void*, const void*, const Format*, std::size_t);
int cudaBindTexture2D(std::size_t*, const void*, const void*, const Format*, std::size_t, std::size_t,
                      std::size_t);
int cudaBindTextureToArray(const void*, const void*, const Format*);
int cudaBindSurfaceToArray(const void*, const void*, const Format*);
int cudaUnbindTexture(const void*);
int cudaGetTextureReference(const void**, const void*);
int cudaGetTextureAlignmentOffset(std::size_t*, const void*);
}

namespace {

// `line` reads out[i] = linear[i]; `plane` reads flat at (x + 0.5, y + 0.5) and bytes at the same point;
// `put` writes into a surface.
const char* kKernels = R"(.version 7.0
.target sm_70
.address_size 64
.global .texref linear;
.global .texref flat;
.global .texref bytes;
.global .surfref drawn;
.visible .entry line(.param .u64 out)
{
  .reg .b32 %r<2>;
  .reg .b64 %d<3>;
  .reg .f32 %f<5>;
  mov.u32 %r1, %tid.x;
  tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [linear, {%r1}];
  ld.param.u64 %d1, [out];
  mul.wide.u32 %d2, %r1, 4;
  add.u64 %d1, %d1, %d2;
  st.global.f32 [%d1], %f1;
  ret;
}
.visible .entry plane(.param .u64 out, .param .f32 shift)
{
  .reg .b32 %r<4>;
  .reg .b64 %d<4>;
  .reg .f32 %f<12>;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %tid.y;
  ld.param.f32 %f10, [shift];
  cvt.rn.f32.u32 %f5, %r1;
  cvt.rn.f32.u32 %f6, %r2;
  add.f32 %f5, %f5, %f10;
  add.f32 %f6, %f6, 0f3F000000;
  mov.u64 %d3, flat;
  tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%d3, {%f5, %f6}];
  tex.2d.v4.f32.f32 {%f7, %f2, %f3, %f4}, [bytes, {%f5, %f6}];
  add.f32 %f1, %f1, %f7;
  ld.param.u64 %d1, [out];
  mov.u32 %r3, %ntid.x;
  mad.lo.u32 %r3, %r2, %r3, %r1;
  mul.wide.u32 %d2, %r3, 4;
  add.u64 %d1, %d1, %d2;
  st.global.f32 [%d1], %f1;
  ret;
}
.visible .entry put()
{
  .reg .b32 %r<4>;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %tid.y;
  shl.b32 %r3, %r1, 2;
  mad.lo.u32 %r1, %r2, 100, %r1;
  sust.b.2d.b32.trap [drawn, {%r3, %r2}], {%r1};
  ret;
}
)";

char line_stub, plane_stub, put_stub;
TextureReference linear, flat, bytes;
SurfaceReference drawn;
constexpr unsigned width = 8, height = 4, n = width * height;
const Format floats{32, 0, 0, 0, 2}, small{8, 0, 0, 0, 1}, words{32, 0, 0, 0, 1};

std::vector<float> floats_at(const void* device) {
  std::vector<float> values(n);
  MUST(cudaMemcpy(values.data(), device, n * 4, to_host));
  return values;
}

void of_linear_memory(float* out) {
  void* arguments[] = {&out};
  std::vector<float> values(2 * n);
  for (unsigned i = 0; i < 2 * n; ++i) values[i] = 0.5f * static_cast<float>(i);
  float* memory = nullptr;
  MUST(cudaMalloc(&memory, 2 * n * 4));
  MUST(cudaMemcpy(memory, values.data(), 2 * n * 4, to_device));
  std::size_t offset = 99;
  MUST(cudaBindTexture(&offset, &linear, memory, &floats, 0xffffffff));
  EXPECT(offset == 0);
  MUST(cudaLaunchKernel(&line_stub, {}, {n, 1, 1}, arguments, 0, nullptr));
  // Bound again while the first kernel may not have begun.
  float* other = nullptr;
  MUST(cudaMalloc(&other, n * 4));
  MUST(cudaBindTexture(nullptr, &linear, memory + n, &floats, n * 4));
  void* later[] = {&other};
  MUST(cudaLaunchKernel(&line_stub, {}, {n, 1, 1}, later, 0, nullptr));
  const auto first = floats_at(out), second = floats_at(other);
  for (unsigned i = 0; i < n; ++i) EXPECT(first[i] == values[i] && second[i] == values[i + n]);
  MUST(cudaUnbindTexture(&linear));
  GIVES(18, cudaUnbindTexture(&offset));  // cudaErrorInvalidTexture
  MUST(cudaFree(memory));
  MUST(cudaFree(other));
}

void of_arrays(float* out) {
  std::vector<float> values(n);
  for (unsigned i = 0; i < n; ++i) values[i] = static_cast<float>(i);
  void* array = nullptr;
  MUST(cudaMallocArray(&array, &floats, width, height, 0));
  MUST(cudaMemcpy2DToArray(array, 0, 0, values.data(), width * 4, width * 4, height, to_device));
  flat.filter = 1;
  MUST(cudaBindTextureToArray(&flat, array, &floats));
  unsigned char* rows = nullptr;
  std::size_t pitch = 0;
  MUST(cudaMallocPitch(&rows, &pitch, width, height));
  const std::vector<unsigned char> ones(n, 255);
  MUST(cudaMemcpy2D(rows, pitch, ones.data(), width, width, height, to_device));
  MUST(cudaBindTexture2D(nullptr, &bytes, rows, &small, width, height, pitch));
  float shift = 0.5f;
  void* arguments[] = {&out, &shift};
  MUST(cudaLaunchKernel(&plane_stub, {}, {width, height, 1}, arguments, 0, nullptr));
  auto got = floats_at(out);
  for (unsigned i = 0; i < n; ++i) EXPECT(got[i] == values[i] + 1.0f);  // 255 is read as 1
  shift = 1.0f;
  MUST(cudaLaunchKernel(&plane_stub, {}, {width, height, 1}, arguments, 0, nullptr));
  got = floats_at(out);
  for (unsigned i = 0; i < n; ++i)  // half way to the next, but at the end of a row
    EXPECT(got[i] == values[i] + (i % width == width - 1 ? 1.0f : 1.5f));
  MUST(cudaFree(rows));
  MUST(cudaFreeArray(array));
}

void of_surfaces() {
  constexpr unsigned for_surfaces = 2;
  void* array = nullptr;
  MUST(cudaMallocArray(&array, &words, width, height, for_surfaces));
  MUST(cudaBindSurfaceToArray(&drawn, array, &words));
  MUST(cudaLaunchKernel(&put_stub, {}, {width, height, 1}, nullptr, 0, nullptr));
  std::vector<unsigned> written(n);
  MUST(cudaMemcpy2DFromArray(written.data(), width * 4, array, 0, 0, width * 4, height, to_host));
  for (unsigned i = 0; i < n; ++i) EXPECT(written[i] == i / width * 100 + i % width);
  MUST(cudaFreeArray(array));
}

}  // namespace

int main() {
  Fatbin fatbin(kKernels);
  void** module = __cudaRegisterFatBinary(fatbin.wrapper());
  auto function = [&](char& stub, const char* name) {
    __cudaRegisterFunction(module, &stub, nullptr, name, -1, nullptr, nullptr, nullptr, nullptr, nullptr);
  };
  function(line_stub, "line");
  function(plane_stub, "plane");
  function(put_stub, "put");
  __cudaRegisterTexture(module, &linear, nullptr, "linear", 1, 0, 0);
  __cudaRegisterTexture(module, &flat, nullptr, "flat", 2, 0, 0);
  __cudaRegisterTexture(module, &bytes, nullptr, "bytes", 2, 1, 0);
  __cudaRegisterSurface(module, &drawn, nullptr, "drawn", 2, 0);
  __cudaRegisterFatBinaryEnd(module);
  float* out = nullptr;
  MUST(cudaMalloc(&out, n * 4));
  of_linear_memory(out);
  of_arrays(out);
  of_surfaces();
  const void* found = nullptr;
  MUST(cudaGetTextureReference(&found, &flat));
  EXPECT(found == &flat);
  std::size_t offset = 1;
  MUST(cudaGetTextureAlignmentOffset(&offset, &flat));
  EXPECT(offset == 0);
  // One that is not bound ends the kernel with an error.
  void* arguments[] = {&out};
  MUST(cudaLaunchKernel(&line_stub, {}, {1, 1, 1}, arguments, 0, nullptr));
  EXPECT(cudaDeviceSynchronize() != 0);
  std::puts("ok");
  return 0;
}

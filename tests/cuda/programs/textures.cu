// SPDX-License-Identifier: Apache-2.0
// Texture objects over linear memory, pitched memory and arrays: points, interpolation, borders, normalised
// values.
#include "check.hpp"

__global__ void fetch_linear(cudaTextureObject_t texture, float4* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tex1Dfetch<float4>(texture, n - 1 - i);
}

__global__ void sample(cudaTextureObject_t texture, const float* x, const float* y, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tex2D<float>(texture, x[i], y[i]);
}

__global__ void sample_1d(cudaTextureObject_t texture, const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tex1D<float>(texture, x[i]);
}

__global__ void sample_3d(cudaTextureObject_t texture, float* out, int width, int height, int depth) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= width * height * depth) return;
  const int x = i % width, y = i / width % height, z = i / width / height;
  out[i] = tex3D<float>(texture, x + 0.5f, y + 0.5f, z + 0.5f);
}

constexpr int kWidth = 24, kHeight = 10;

float texel(int x, int y) {
  return float(3 * x - 7 * y);
}

void check_linear() {
  const int n = 200;
  std::vector<float4> values(n);
  for (int i = 0; i < n; ++i) values[i] = make_float4(i, 2.0f * i, -i, 0.5f);
  float4* data = to_device(values);
  float4* out = device_zeros<float4>(n);
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = data;
  resource.res.linear.desc = cudaCreateChannelDesc<float4>();
  resource.res.linear.sizeInBytes = n * sizeof(float4);
  cudaTextureDesc description{};
  description.readMode = cudaReadModeElementType;
  cudaTextureObject_t texture = 0;
  must(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  fetch_linear<<<1, 256>>>(texture, out, n);
  const std::vector<float4> got = from_device(out, n);
  for (int i = 0; i < n; ++i)
    expect(got[i].x == n - 1 - i && got[i].y == 2.0f * (n - 1 - i) && got[i].w == 0.5f);
  must(cudaDestroyTextureObject(texture));
}

// Both through an array and through pitched memory.
void check_points(bool pitched) {
  std::vector<float> image(kWidth * kHeight);
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x) image[y * kWidth + x] = texel(x, y);
  cudaResourceDesc resource{};
  cudaArray_t array = nullptr;
  float* memory = nullptr;
  size_t pitch = 0;
  const cudaChannelFormatDesc channel = cudaCreateChannelDesc<float>();
  const size_t row = kWidth * sizeof(float);
  if (pitched) {
    must(cudaMallocPitch(&memory, &pitch, row, kHeight));
    must(cudaMemcpy2D(memory, pitch, image.data(), row, row, kHeight, cudaMemcpyHostToDevice));
    resource.resType = cudaResourceTypePitch2D;
    resource.res.pitch2D.devPtr = memory;
    resource.res.pitch2D.desc = channel;
    resource.res.pitch2D.width = kWidth;
    resource.res.pitch2D.height = kHeight;
    resource.res.pitch2D.pitchInBytes = pitch;
  } else {
    must(cudaMallocArray(&array, &channel, kWidth, kHeight));
    must(cudaMemcpy2DToArray(array, 0, 0, image.data(), row, row, kHeight, cudaMemcpyHostToDevice));
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
  }
  cudaTextureDesc description{};
  description.addressMode[0] = cudaAddressModeClamp;
  description.addressMode[1] = cudaAddressModeBorder;
  description.filterMode = cudaFilterModePoint;
  description.readMode = cudaReadModeElementType;

  // Texel centres, left of the image (the first texel of the row) and below it (the border: zero).
  std::vector<float> x{0.5f, 5.5f, 23.9f, -4.0f, 30.0f, 3.5f, 3.5f};
  std::vector<float> y{0.5f, 7.2f, 9.9f, 2.5f, 4.5f, -1.0f, 10.5f};
  const std::vector<float> wanted{texel(0, 0), texel(5, 7), texel(23, 9), texel(0, 2), texel(23, 4), 0, 0};
  const int n = int(x.size());
  float* dx = to_device(x);
  float* dy = to_device(y);
  float* out = device_zeros<float>(n);
  cudaTextureObject_t texture = 0;
  must(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  sample<<<1, 32>>>(texture, dx, dy, out, n);
  expect_same(from_device(out, n), wanted);
  must(cudaDestroyTextureObject(texture));

  // Between texels, where the image is a plane and interpolation therefore exact.
  description.filterMode = cudaFilterModeLinear;
  description.addressMode[1] = cudaAddressModeClamp;
  must(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  const std::vector<float> between_x{1.0f, 4.25f, 10.75f};
  const std::vector<float> between_y{1.0f, 6.5f, 3.25f};
  float* bx = to_device(between_x);
  float* by = to_device(between_y);
  sample<<<1, 32>>>(texture, bx, by, out, 3);
  const std::vector<float> got = from_device(out, 3);
  for (int i = 0; i < 3; ++i) expect_near(got[i], 3 * (between_x[i] - 0.5) - 7 * (between_y[i] - 0.5), 1e-5);
  cudaResourceDesc back{};
  must(cudaGetTextureObjectResourceDesc(&back, texture));
  expect(back.resType == resource.resType);
  must(cudaDestroyTextureObject(texture));
  if (pitched)
    must(cudaFree(memory));
  else
    must(cudaFreeArray(array));
}

// Bytes read as numbers between 0 and 1 at coordinates between 0 and 1 that wrap around.
void check_normalised() {
  std::vector<unsigned char> bytes{0, 51, 102, 255};
  const cudaChannelFormatDesc channel = cudaCreateChannelDesc<unsigned char>();
  cudaArray_t array = nullptr;
  must(cudaMallocArray(&array, &channel, bytes.size()));
  must(cudaMemcpy2DToArray(array, 0, 0, bytes.data(), 4, 4, 1, cudaMemcpyHostToDevice));
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc description{};
  description.addressMode[0] = cudaAddressModeWrap;
  description.filterMode = cudaFilterModePoint;
  description.readMode = cudaReadModeNormalizedFloat;
  description.normalizedCoords = 1;
  cudaTextureObject_t texture = 0;
  must(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  float* x = to_device(std::vector<float>{0.1f, 0.3f, 0.6f, 0.9f, 1.3f, -0.1f});
  float* out = device_zeros<float>(6);
  sample_1d<<<1, 32>>>(texture, x, out, 6);
  const std::vector<float> got = from_device(out, 6);
  const double wanted[] = {0, 0.2, 0.4, 1, 0.2, 1};
  for (int i = 0; i < 6; ++i) expect_near(got[i], wanted[i], 1e-6);
  must(cudaDestroyTextureObject(texture));
  must(cudaFreeArray(array));
}

void check_volume() {
  const int width = 5, height = 4, depth = 3;
  std::vector<float> volume(width * height * depth);
  for (size_t i = 0; i < volume.size(); ++i) volume[i] = float(i);
  const cudaExtent extent = make_cudaExtent(width, height, depth);
  const cudaChannelFormatDesc channel = cudaCreateChannelDesc<float>();
  cudaArray_t array = nullptr;
  must(cudaMalloc3DArray(&array, &channel, extent));
  cudaMemcpy3DParms copy{};
  copy.srcPtr = make_cudaPitchedPtr(volume.data(), width * sizeof(float), width, height);
  copy.dstArray = array;
  copy.extent = extent;
  copy.kind = cudaMemcpyHostToDevice;
  must(cudaMemcpy3D(&copy));
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc description{};
  for (cudaTextureAddressMode& mode : description.addressMode) mode = cudaAddressModeClamp;
  description.filterMode = cudaFilterModePoint;
  cudaTextureObject_t texture = 0;
  must(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  float* out = device_zeros<float>(volume.size());
  sample_3d<<<1, 64>>>(texture, out, width, height, depth);
  expect_same(from_device(out, volume.size()), volume);
  must(cudaDestroyTextureObject(texture));
  must(cudaFreeArray(array));
}

int main() {
  check_linear();
  check_points(false);
  check_points(true);
  check_normalised();
  check_volume();
  return verdict();
}

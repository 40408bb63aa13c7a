// SPDX-License-Identifier: Apache-2.0
// An array written through a surface and read through a texture.
#include "check.hpp"

__global__ void write(cudaSurfaceObject_t surface, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height) surf2Dwrite(x * 100 + y, surface, x * int(sizeof(int)), y);
}

__global__ void flip(cudaSurfaceObject_t surface, cudaTextureObject_t texture, int* out, int width,
                     int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  const int stored = surf2Dread<int>(surface, (width - 1 - x) * int(sizeof(int)), y);
  out[y * width + x] = stored - tex2D<int>(texture, float(x), float(y));
}

int main() {
  const int width = 40, height = 12;
  const cudaChannelFormatDesc channel = cudaCreateChannelDesc<int>();
  cudaArray_t array = nullptr;
  must(cudaMallocArray(&array, &channel, width, height, cudaArraySurfaceLoadStore));
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaSurfaceObject_t surface = 0;
  must(cudaCreateSurfaceObject(&surface, &resource));
  cudaTextureDesc description{};
  cudaTextureObject_t texture = 0;
  must(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  const dim3 block(16, 4);
  const dim3 grid((width + 15) / 16, (height + 3) / 4);
  int* out = device_zeros<int>(width * height);
  write<<<grid, block>>>(surface, width, height);
  flip<<<grid, block>>>(surface, texture, out, width, height);
  const std::vector<int> got = from_device(out, width * height);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) expect(got[y * width + x] == (width - 1 - 2 * x) * 100);
  std::vector<int> image(width * height);
  must(
      cudaMemcpy2DFromArray(image.data(), width * 4, array, 0, 0, width * 4, height, cudaMemcpyDeviceToHost));
  expect(image[3 * width + 7] == 703);
  must(cudaDestroySurfaceObject(surface));
  must(cudaDestroyTextureObject(texture));
  must(cudaFreeArray(array));
  return verdict();
}

// SPDX-License-Identifier: Apache-2.0
// Rectangles and boxes: pitched memory, copies of parts, memset of parts.
#include "check.hpp"

__global__ void transpose_add(const float* in, size_t in_pitch, float* out, size_t out_pitch, int width,
                              int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  const float* row = reinterpret_cast<const float*>(reinterpret_cast<const char*>(in) + y * in_pitch);
  float* column = reinterpret_cast<float*>(reinterpret_cast<char*>(out) + x * out_pitch);
  column[y] = row[x] + 1;
}

__global__ void sum_box(cudaPitchedPtr box, int width, int height, int depth, int* sum) {
  const int z = threadIdx.x;
  if (z >= depth) return;
  int of_slice = 0;
  for (int y = 0; y < height; ++y) {
    const int* row = reinterpret_cast<const int*>(static_cast<char*>(box.ptr) + (z * height + y) * box.pitch);
    for (int x = 0; x < width; ++x) of_slice += row[x];
  }
  atomicAdd(sum, of_slice);
}

void check_rectangle() {
  const int width = 37, height = 21;
  std::vector<float> image(width * height), got(width * height);
  for (int i = 0; i < width * height; ++i) image[i] = float(i);
  float *in, *out;
  size_t in_pitch = 0, out_pitch = 0;
  must(cudaMallocPitch(&in, &in_pitch, width * sizeof(float), height));
  must(cudaMallocPitch(&out, &out_pitch, height * sizeof(float), width));
  expect(in_pitch >= width * sizeof(float) && in_pitch % 32 == 0);
  must(cudaMemcpy2D(in, in_pitch, image.data(), width * sizeof(float), width * sizeof(float), height,
                    cudaMemcpyHostToDevice));
  transpose_add<<<dim3(3, 2), dim3(16, 16)>>>(in, in_pitch, out, out_pitch, width, height);
  must(cudaMemcpy2D(got.data(), height * sizeof(float), out, out_pitch, height * sizeof(float), width,
                    cudaMemcpyDeviceToHost));
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) expect(got[x * height + y] == image[y * width + x] + 1);

  must(cudaMemset2D(in, in_pitch, 0, 5 * sizeof(float), 4));
  std::vector<float> corner(width * 6);
  must(cudaMemcpy2DAsync(corner.data(), width * sizeof(float), in, in_pitch, width * sizeof(float), 6,
                         cudaMemcpyDeviceToHost, nullptr));
  must(cudaDeviceSynchronize());
  expect(corner[0] == 0 && corner[4] == 0 && corner[5] == 5 && corner[3 * width + 4] == 0);
  expect(corner[4 * width] == 4 * width);
  must(cudaFree(in));
  must(cudaFree(out));
}

void check_box() {
  const int width = 10, height = 6, depth = 5;
  std::vector<int> values(width * height * depth);
  int wanted = 0;
  for (size_t i = 0; i < values.size(); ++i) wanted += values[i] = int(i);
  cudaPitchedPtr box{};
  must(cudaMalloc3D(&box, make_cudaExtent(width * sizeof(int), height, depth)));
  must(cudaMemset3D(box, 0, make_cudaExtent(width * sizeof(int), height, depth)));
  cudaMemcpy3DParms copy{};
  copy.srcPtr = make_cudaPitchedPtr(values.data(), width * sizeof(int), width, height);
  copy.dstPtr = box;
  copy.extent = make_cudaExtent(width * sizeof(int), height, depth);
  copy.kind = cudaMemcpyHostToDevice;
  must(cudaMemcpy3D(&copy));
  int* sum = device_zeros<int>(1);
  sum_box<<<1, 32>>>(box, width, height, depth, sum);
  expect(from_device(sum, 1)[0] == wanted);

  // A small box out of the middle.
  std::vector<int> part(3 * 2 * 2, -1);
  cudaMemcpy3DParms out{};
  out.srcPtr = box;
  out.srcPos = make_cudaPos(4 * sizeof(int), 1, 2);
  out.dstPtr = make_cudaPitchedPtr(part.data(), 3 * sizeof(int), 3, 2);
  out.extent = make_cudaExtent(3 * sizeof(int), 2, 2);
  out.kind = cudaMemcpyDeviceToHost;
  must(cudaMemcpy3D(&out));
  for (int z = 0; z < 2; ++z)
    for (int y = 0; y < 2; ++y)
      for (int x = 0; x < 3; ++x)
        expect(part[(z * 2 + y) * 3 + x] == ((z + 2) * height + y + 1) * width + x + 4);
  must(cudaFree(box.ptr));
}

int main() {
  check_rectangle();
  check_box();
  return verdict();
}

// SPDX-License-Identifier: Apache-2.0
// Tiles of two matrices in shared memory, for several tile widths and element types.
#include "check.hpp"

template <typename T, int kTile>
__global__ void multiply(const T* a, const T* b, T* c, int rows, int inner, int columns) {
  __shared__ T tile_a[kTile][kTile];
  __shared__ T tile_b[kTile][kTile + 1];
  const int row = blockIdx.y * kTile + threadIdx.y;
  const int column = blockIdx.x * kTile + threadIdx.x;
  T sum = 0;
  for (int first = 0; first < inner; first += kTile) {
    const int across = first + threadIdx.x;
    const int down = first + threadIdx.y;
    tile_a[threadIdx.y][threadIdx.x] = row < rows && across < inner ? a[row * inner + across] : T(0);
    tile_b[threadIdx.y][threadIdx.x] = down < inner && column < columns ? b[down * columns + column] : T(0);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kTile; ++k) sum += tile_a[threadIdx.y][k] * tile_b[k][threadIdx.x];
    __syncthreads();
  }
  if (row < rows && column < columns) c[row * columns + column] = sum;
}

template <typename T, int kTile>
void check_multiply(int rows, int inner, int columns) {
  Random random;
  std::vector<T> a(rows * inner), b(inner * columns), wanted(rows * columns);
  for (T& value : a) value = T(int(random.below(17)) - 8);
  for (T& value : b) value = T(int(random.below(17)) - 8);
  for (int i = 0; i < rows; ++i)
    for (int k = 0; k < inner; ++k)
      for (int j = 0; j < columns; ++j) wanted[i * columns + j] += a[i * inner + k] * b[k * columns + j];
  T* da = to_device(a);
  T* db = to_device(b);
  T* dc = device_zeros<T>(rows * columns);
  const dim3 block(kTile, kTile);
  const dim3 grid((columns + kTile - 1) / kTile, (rows + kTile - 1) / kTile);
  multiply<T, kTile><<<grid, block>>>(da, db, dc, rows, inner, columns);
  must(cudaGetLastError());
  expect_same(from_device(dc, rows * columns), wanted);  // small whole numbers: exact in every type
  must(cudaFree(da));
  must(cudaFree(db));
  must(cudaFree(dc));
}

int main() {
  check_multiply<float, 16>(48, 64, 32);
  check_multiply<double, 16>(33, 17, 50);
  check_multiply<int, 8>(20, 31, 9);
  check_multiply<float, 32>(40, 40, 40);
  return verdict();
}

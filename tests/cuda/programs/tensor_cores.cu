// SPDX-License-Identifier: Apache-2.0
// Matrices multiplied by tensor cores: halves into floats, and bytes into integers.
#include <cuda_fp16.h>
#include <mma.h>

#include "check.hpp"

using namespace nvcuda;

__global__ void multiply(const half* a, const half* b, float* c, int inner, int columns) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 1.0f);
  for (int k = 0; k < inner; k += 16) {
    wmma::load_matrix_sync(left, a + blockIdx.y * 16 * inner + k, inner);
    wmma::load_matrix_sync(right, b + blockIdx.x * 16 * inner + k, inner);
    wmma::mma_sync(sum, left, right, sum);
  }
  for (int i = 0; i < sum.num_elements; ++i) sum.x[i] *= 2;
  wmma::store_matrix_sync(c + blockIdx.y * 16 * columns + blockIdx.x * 16, sum, columns, wmma::mem_row_major);
}

__global__ void multiply_bytes(const signed char* a, const signed char* b, int* c) {
  wmma::fragment<wmma::matrix_a, 8, 32, 16, signed char, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 8, 32, 16, signed char, wmma::row_major> right;
  wmma::fragment<wmma::accumulator, 8, 32, 16, int> sum;
  wmma::fill_fragment(sum, 0);
  wmma::load_matrix_sync(left, a, 16);
  wmma::load_matrix_sync(right, b, 32);
  wmma::mma_sync(sum, left, right, sum);
  wmma::store_matrix_sync(c, sum, 32, wmma::mem_row_major);
}

int main() {
  const int rows = 32, inner = 48, columns = 64;
  Random random;
  std::vector<half> a(rows * inner), b(inner * columns);
  for (half& value : a) value = __float2half(float(int(random.below(9)) - 4));
  for (half& value : b) value = __float2half(float(int(random.below(9)) - 4));
  std::vector<float> wanted(rows * columns);
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) {
      float sum = 1;
      for (int k = 0; k < inner; ++k) sum += __half2float(a[i * inner + k]) * __half2float(b[j * inner + k]);
      wanted[i * columns + j] = 2 * sum;
    }
  float* c = device_zeros<float>(rows * columns);
  multiply<<<dim3(columns / 16, rows / 16), 32>>>(to_device(a), to_device(b), c, inner, columns);
  expect_same(from_device(c, rows * columns), wanted);

  std::vector<signed char> left(8 * 16), right(16 * 32);
  for (signed char& value : left) value = (signed char)(random.below(256));
  for (signed char& value : right) value = (signed char)(random.below(256));
  std::vector<int> product(8 * 32);
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 32; ++j)
      for (int k = 0; k < 16; ++k) product[i * 32 + j] += left[i * 16 + k] * right[k * 32 + j];
  int* result = device_zeros<int>(8 * 32);
  multiply_bytes<<<1, 32>>>(to_device(left), to_device(right), result);
  expect_same(from_device(result, 8 * 32), product);
  return verdict();
}

// SPDX-License-Identifier: Apache-2.0
// Half precision: single values, pairs, conversions and atomics.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "check.hpp"

__global__ void fused(const __half* a, const __half* b, __half* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = __hfma(a[i], b[i], c[i]);
}

__global__ void pairs(const __half2* a, const __half2* b, __half2* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = __hmul2(__hadd2(a[i], b[i]), __float2half2_rn(0.5f));
}

__global__ void sum(const __half* values, int n, __half2* total) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(total, __halves2half2(values[i], __float2half(1.0f)));
}

__global__ void through_bfloat16(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __bfloat162float(__float2bfloat16(in[i])) + __half2float(hsqrt(__float2half(float(i))));
}

int main() {
  const int n = 256;
  std::vector<__half> a(n), b(n), c(n);
  for (int i = 0; i < n; ++i) {
    a[i] = __float2half(float(i % 16));
    b[i] = __float2half(float(i % 9) - 4);
    c[i] = __float2half(0.25f);
  }
  __half* da = to_device(a);
  __half* db = to_device(b);
  __half* dc = to_device(c);
  fused<<<2, 128>>>(da, db, dc, n);
  const std::vector<__half> got = from_device(dc, n);
  for (int i = 0; i < n; ++i) expect(__half2float(got[i]) == float(i % 16) * (float(i % 9) - 4) + 0.25f);

  pairs<<<1, 128>>>(reinterpret_cast<__half2*>(da), reinterpret_cast<__half2*>(db),
                    reinterpret_cast<__half2*>(dc), n / 2);
  const std::vector<__half> means = from_device(dc, n);
  for (int i = 0; i < n; ++i) expect(__half2float(means[i]) == 0.5f * (float(i % 16) + float(i % 9) - 4));

  __half2* total = device_zeros<__half2>(1);
  sum<<<1, 128>>>(da, 128, total);
  const __half2 both = from_device(total, 1)[0];
  expect(__low2float(both) == 960.0f && __high2float(both) == 128.0f);

  std::vector<float> floats(n);
  for (int i = 0; i < n; ++i) floats[i] = 1.0f + i / 256.0f;
  float* in = to_device(floats);
  float* out = device_zeros<float>(n);
  through_bfloat16<<<2, 128>>>(in, out, n);
  const std::vector<float> rounded = from_device(out, n);
  for (int i = 0; i < n; ++i) expect_near(rounded[i], floats[i] + std::sqrt(double(i)), 1.0 / 128);
  expect(rounded[2] == 1.0f + 2 / 256.0f + __half2float(__float2half(std::sqrt(2.0f))));
  return verdict();
}

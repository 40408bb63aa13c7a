// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_90
// Matrix product by tiles of 16 by 16 in shared memory; sizes need not be multiples of the tile.

template <typename T>
__device__ void multiply(const T* a, const T* b, T* c, int m, int n, int k)
{
    __shared__ T a_tile[16][16];
    __shared__ T b_tile[16][16];
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    T sum = 0;
    for (int base = 0; base < k; base += 16) {
        int a_column = base + threadIdx.x;
        int b_row = base + threadIdx.y;
        a_tile[threadIdx.y][threadIdx.x] = row < m && a_column < k ? a[row * k + a_column] : T(0);
        b_tile[threadIdx.y][threadIdx.x] = b_row < k && column < n ? b[b_row * n + column] : T(0);
        __syncthreads();
        for (int i = 0; i < 16; i++) {
            sum += a_tile[threadIdx.y][i] * b_tile[i][threadIdx.x];
        }
        __syncthreads();
    }
    if (row < m && column < n) {
        c[row * n + column] = sum;
    }
}

extern "C" __global__ void gemm_f32(const float* a, const float* b, float* c, int m, int n, int k)
{
    multiply(a, b, c, m, n, k);
}

extern "C" __global__ void gemm_f64(const double* a, const double* b, double* c, int m, int n, int k)
{
    multiply(a, b, c, m, n, k);
}

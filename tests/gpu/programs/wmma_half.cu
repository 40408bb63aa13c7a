// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_70 sm_75 sm_90
// Matrix product on tensor cores from halves, one warp per tile of 16 by 16, into floats and into halves.

#include <mma.h>

using namespace nvcuda;

extern "C" __global__ void wmma_half_float(const half* a, const half* b, float* c, int m, int n, int k)
{
    int row = blockIdx.y * 16;
    int column = (blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32) * 16;
    if (column >= n) {
        return;
    }
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a_part;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> b_part;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int base = 0; base < k; base += 16) {
        wmma::load_matrix_sync(a_part, a + row * k + base, k);
        wmma::load_matrix_sync(b_part, b + column * k + base, k);
        wmma::mma_sync(sum, a_part, b_part, sum);
    }
    for (int i = 0; i < sum.num_elements; i++) {
        sum.x[i] *= 2.0f;
    }
    wmma::store_matrix_sync(c + row * n + column, sum, n, wmma::mem_row_major);
}

// The other layouts and shapes: 32 by 8 through shared memory, columns first for a, rows first for b.
extern "C" __global__ void wmma_half_half(const half* a, const half* b, const half* c, half* d)
{
    __shared__ half a_tile[16 * 32];
    __shared__ half b_tile[16 * 8];
    for (int i = threadIdx.x; i < 16 * 32; i += 32) {
        a_tile[i] = a[i];
    }
    for (int i = threadIdx.x; i < 16 * 8; i += 32) {
        b_tile[i] = b[i];
    }
    __syncwarp();
    wmma::fragment<wmma::matrix_a, 32, 8, 16, half, wmma::col_major> a_part;
    wmma::fragment<wmma::matrix_b, 32, 8, 16, half, wmma::row_major> b_part;
    wmma::fragment<wmma::accumulator, 32, 8, 16, half> sum;
    wmma::load_matrix_sync(a_part, a_tile, 32);
    wmma::load_matrix_sync(b_part, b_tile, 8);
    wmma::load_matrix_sync(sum, c, 8, wmma::mem_row_major);
    wmma::mma_sync(sum, a_part, b_part, sum);
    wmma::store_matrix_sync(d, sum, 32, wmma::mem_col_major);
}

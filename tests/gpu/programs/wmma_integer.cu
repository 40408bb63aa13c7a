// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_75 sm_80
// Matrix product on tensor cores from bytes, signed and unsigned, with 32-bit sums.

#include <mma.h>

using namespace nvcuda;

template <typename T, typename Layout>
__device__ void multiply(const T* a, const T* b, int* c, int k, int b_stride, int b_step)
{
    wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> a_part;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, T, Layout> b_part;
    wmma::fragment<wmma::accumulator, 16, 16, 16, int> sum;
    wmma::fill_fragment(sum, 0);
    for (int base = 0; base < k; base += 16) {
        wmma::load_matrix_sync(a_part, a + base, k);
        wmma::load_matrix_sync(b_part, b + base * b_step, b_stride);
        wmma::mma_sync(sum, a_part, b_part, sum);
    }
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}

extern "C" __global__ void wmma_s8(const signed char* a, const signed char* b, int* c, int k)
{
    multiply<signed char, wmma::col_major>(a, b, c, k, k, 1);
}

extern "C" __global__ void wmma_u8(const unsigned char* a, const unsigned char* b, int* c, int k)
{
    multiply<unsigned char, wmma::row_major>(a, b, c, k, 16, 16);
}

// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_80 sm_90
// Matrix products on tensor cores from bfloat16, tf32 and doubles.

#include <cuda_bf16.h>
#include <mma.h>

using namespace nvcuda;

extern "C" __global__ void wmma_bf16(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c, int k)
{
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> a_part;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::row_major> b_part;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int base = 0; base < k; base += 16) {
        wmma::load_matrix_sync(a_part, a + base, k);
        wmma::load_matrix_sync(b_part, b + base * 16, 16);
        wmma::mma_sync(sum, a_part, b_part, sum);
    }
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}

extern "C" __global__ void wmma_tf32(const float* a, const float* b, float* c, int k)
{
    wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> a_part;
    wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::col_major> b_part;
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int base = 0; base < k; base += 8) {
        wmma::load_matrix_sync(a_part, a + base, k);
        wmma::load_matrix_sync(b_part, b + base, k);
        for (int i = 0; i < a_part.num_elements; i++) {
            a_part.x[i] = wmma::__float_to_tf32(a_part.x[i]);
        }
        for (int i = 0; i < b_part.num_elements; i++) {
            b_part.x[i] = wmma::__float_to_tf32(b_part.x[i]);
        }
        wmma::mma_sync(sum, a_part, b_part, sum);
    }
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}

extern "C" __global__ void wmma_f64(const double* a, const double* b, double* c, int k)
{
    wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> a_part;
    wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::col_major> b_part;
    wmma::fragment<wmma::accumulator, 8, 8, 4, double> sum;
    wmma::load_matrix_sync(sum, c, 8, wmma::mem_row_major);
    for (int base = 0; base < k; base += 4) {
        wmma::load_matrix_sync(a_part, a + base, k);
        wmma::load_matrix_sync(b_part, b + base, k);
        wmma::mma_sync(sum, a_part, b_part, sum);
    }
    wmma::store_matrix_sync(c, sum, 8, wmma::mem_row_major);
}

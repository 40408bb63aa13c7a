// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_80 sm_100
// Each thread holds 4 by 4 results in registers; a block of 64 threads makes a tile of 32 by 32.

extern "C" __global__ void gemm_register_blocked(float alpha, const float* __restrict__ a, const float* __restrict__ b,
                                                 float beta, float* __restrict__ c, int n, int k)
{
    __shared__ float a_tile[8][32];
    __shared__ __align__(16) float b_tile[8][32];
    int thread = threadIdx.x;
    int row = blockIdx.y * 32;
    int column = blockIdx.x * 32;
    int own_row = thread / 8 * 4;
    int own_column = thread % 8 * 4;
    float sums[4][4] = {};
    for (int base = 0; base < k; base += 8) {
        for (int i = thread; i < 8 * 32; i += 64) {
            a_tile[i % 8][i / 8] = a[(row + i / 8) * k + base + i % 8];
        }
        float4 vector = *reinterpret_cast<const float4*>(&b[(base + thread / 8) * n + column + thread % 8 * 4]);
        *reinterpret_cast<float4*>(&b_tile[thread / 8][thread % 8 * 4]) = vector;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 8; i++) {
            float a_part[4];
            float b_part[4];
#pragma unroll
            for (int j = 0; j < 4; j++) {
                a_part[j] = a_tile[i][own_row + j];
                b_part[j] = b_tile[i][own_column + j];
            }
#pragma unroll
            for (int y = 0; y < 4; y++) {
#pragma unroll
                for (int x = 0; x < 4; x++) {
                    sums[y][x] = fmaf(a_part[y], b_part[x], sums[y][x]);
                }
            }
        }
        __syncthreads();
    }
    for (int y = 0; y < 4; y++) {
        for (int x = 0; x < 4; x++) {
            float* element = &c[(row + own_row + y) * n + column + own_column + x];
            *element = alpha * sums[y][x] + beta * *element;
        }
    }
}

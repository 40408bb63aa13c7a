// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_80 sm_90
// A tensor-core product written in PTX: tiles arrive by cp.async in two stages, ldmatrix spreads them over the warp.

#include <cuda_fp16.h>

__device__ unsigned shared_address(const void* pointer)
{
    return (unsigned)__cvta_generic_to_shared(pointer);
}

__device__ void copy_16(void* to, const void* from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from));
}

// c (16 by 8 per warp) = a (16 by k) * b (k by 8), both rows first; k is a multiple of 16.
extern "C" __global__ void mma_pipeline(const half* a, const half* b, float* c, int k)
{
    __shared__ __align__(16) half a_tile[2][16][16];
    __shared__ __align__(16) half b_tile[2][16][8];
    int lane = threadIdx.x;
    a += blockIdx.x * 16 * k;
    c += blockIdx.x * 16 * 8;
    auto fetch = [&](int stage, int base) {
        copy_16(&a_tile[stage][lane / 2][lane % 2 * 8], &a[lane / 2 * k + base + lane % 2 * 8]);
        if (lane < 16) {
            copy_16(&b_tile[stage][lane][0], &b[(base + lane) * 8]);
        }
        asm volatile("cp.async.commit_group;");
    };
    float d[4] = {};
    fetch(0, 0);
    for (int base = 0; base < k; base += 16) {
        int stage = base / 16 % 2;
        if (base + 16 < k) {
            fetch(1 - stage, base + 16);
            asm volatile("cp.async.wait_group 1;" ::: "memory");
        } else {
            asm volatile("cp.async.wait_group 0;" ::: "memory");
        }
        __syncwarp();
        unsigned x[4];
        unsigned y[2];
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                     : "r"(shared_address(&a_tile[stage][lane % 16][lane / 16 * 8])));
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                     : "=r"(y[0]), "=r"(y[1])
                     : "r"(shared_address(&b_tile[stage][lane % 16][0])));
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                     "{%0, %1, %2, %3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
        __syncwarp();
    }
    int row = lane / 4;
    int column = lane % 4 * 2;
    c[row * 8 + column] = d[0];
    c[row * 8 + column + 1] = d[1];
    c[(row + 8) * 8 + column] = d[2];
    c[(row + 8) * 8 + column + 1] = d[3];
}

// Integer: 16 by 8 by 32 from signed bytes, the fragments loaded word by word.
extern "C" __global__ void mma_s8(const int* a, const int* b, int* c)
{
    int lane = threadIdx.x;
    int group = lane / 4;
    int member = lane % 4;
    int x[4] = {a[group * 8 + member], a[(group + 8) * 8 + member], a[group * 8 + member + 4], a[(group + 8) * 8 + member + 4]};
    int y[2] = {b[group * 8 + member], b[group * 8 + member + 4]};
    int d[4];
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%10, %10, %10, %10};"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]), "r"(7));
    c[group * 8 + member * 2] = d[0];
    c[group * 8 + member * 2 + 1] = d[1];
    c[(group + 8) * 8 + member * 2] = d[2];
    c[(group + 8) * 8 + member * 2 + 1] = d[3];
}

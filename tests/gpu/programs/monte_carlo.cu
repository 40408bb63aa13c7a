// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_100
// Points in a square that fall into the circle: a linear congruential and a xorshift generator per thread.

extern "C" __global__ void pi_congruential(unsigned long long seed, int points, unsigned long long* inside)
{
    unsigned long long state = seed + (blockIdx.x * blockDim.x + threadIdx.x) * 0x9e3779b97f4a7c15ull;
    unsigned long long hits = 0;
    for (int i = 0; i < points; i++) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        unsigned x = (unsigned)(state >> 33);
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        unsigned y = (unsigned)(state >> 33);
        unsigned long long squared = (unsigned long long)x * x + (unsigned long long)y * y;
        hits += squared < 1ull << 62;
    }
    atomicAdd(inside, hits);
}

extern "C" __global__ void pi_xorshift(unsigned seed, int points, unsigned* inside)
{
    __shared__ unsigned block_hits;
    if (threadIdx.x == 0) {
        block_hits = 0;
    }
    __syncthreads();
    unsigned state = seed ^ (blockIdx.x * blockDim.x + threadIdx.x + 1) * 2654435761u;
    unsigned hits = 0;
    for (int i = 0; i < points; i++) {
        float at[2];
        for (int axis = 0; axis < 2; axis++) {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            at[axis] = (state >> 8) * (1.0f / 16777216.0f);
        }
        if (__fadd_rn(__fmul_rn(at[0], at[0]), __fmul_rn(at[1], at[1])) < 1.0f) {
            hits++;
        }
    }
    atomicAdd(&block_hits, hits);
    __syncthreads();
    if (threadIdx.x == 0) {
        inside[blockIdx.x] = block_hits;
    }
}

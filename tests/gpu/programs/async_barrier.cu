// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_80 sm_90
// Asynchronous copies to shared memory that end at a barrier, and phases of arrivals and waits.

#include <cooperative_groups.h>
#include <cuda/barrier>

#pragma nv_diag_suppress static_var_with_dynamic_init

namespace cg = cooperative_groups;

extern "C" __global__ void copy_to_barrier(const int* values, int* out, int rounds)
{
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    extern __shared__ __align__(16) int staged[];
    auto block = cg::this_thread_block();
    if (block.thread_rank() == 0) {
        init(&barrier, block.size());
    }
    block.sync();
    for (int round = 0; round < rounds; round++) {
        const int* from = values + (blockIdx.x * rounds + round) * block.size();
        cuda::memcpy_async(block, staged, from, cuda::aligned_size_t<16>(sizeof(int) * block.size()), barrier);
        barrier.arrive_and_wait();
        out[(blockIdx.x * rounds + round) * block.size() + threadIdx.x] = staged[block.size() - 1 - threadIdx.x] + round;
        block.sync();
    }
}

// Arrival and wait apart: each thread does something of its own between them.
extern "C" __global__ void split_arrival(int* out)
{
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    __shared__ int values[64];
    if (threadIdx.x == 0) {
        init(&barrier, blockDim.x);
    }
    __syncthreads();
    for (int phase = 0; phase < 3; phase++) {
        values[threadIdx.x] = threadIdx.x * (phase + 1);
        auto token = barrier.arrive();
        int own = threadIdx.x * 1000 + phase;
        barrier.wait(std::move(token));
        out[phase * 64 + threadIdx.x] = own + values[(threadIdx.x + 33) % 64];
        barrier.arrive_and_wait();
    }
}

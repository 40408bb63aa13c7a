// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_70 sm_80 sm_90
// Messages between threads by atomics with an order: release on one side, acquire on the other.

__device__ void store_release(unsigned* address, unsigned value)
{
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(address)), "r"(value) : "memory");
}

__device__ unsigned load_acquire(const unsigned* address)
{
    unsigned value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(__cvta_generic_to_global(address)) : "memory");
    return value;
}

// A chain of all warps of the grid: each adds to what the one before it left.
extern "C" __global__ void chain(unsigned* turn, unsigned* values)
{
    unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    int lane = threadIdx.x % 32;
    if (lane == 0) {
        while (load_acquire(turn) != warp) {
            __nanosleep(20);
        }
    }
    __syncwarp();
    values[(warp + 1) * 32 + lane] = values[warp * 32 + (lane + 1) % 32] + warp;
    __syncwarp();
    if (lane == 0) {
        store_release(turn, warp + 1);
    }
}

extern "C" __global__ void scopes(unsigned* cells, const unsigned* values, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) {
        return;
    }
    unsigned old;
    unsigned seen;
    asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], %2;" : "=r"(old) : "l"(&cells[0]), "r"(values[i]) : "memory");
    asm volatile("red.relaxed.sys.global.max.u32 [%0], %1;" ::"l"(&cells[1]), "r"(values[i]) : "memory");
    asm volatile("atom.xor.relaxed.cta.global.b32 %0, [%1], %2;" : "=r"(seen) : "l"(&cells[2]), "r"(values[i]) : "memory");
    cells[8 + i] = old <= 0xfffffff0u && seen <= 0xffffu;
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
    asm volatile("fence.sc.sys;" ::: "memory");
    asm volatile("red.global.add.u64 [%0], %1;" ::"l"(&cells[4]), "l"((unsigned long long)values[i] << 20) : "memory");
}

// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_100
// Every atomic operation on integers, on global and on shared memory, with and without its result.

extern "C" __global__ void atomics_u32(const unsigned* values, unsigned* cells, unsigned* old, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) {
        return;
    }
    unsigned value = values[i];
    atomicAdd(&cells[0], value);
    atomicSub(&cells[1], value);
    atomicMin(&cells[2], value);
    atomicMax(&cells[3], value);
    atomicAnd(&cells[4], value | 0xf0f0u);
    atomicOr(&cells[5], value & 0x0ff0u);
    atomicXor(&cells[6], value);
    old[i] = atomicInc(&cells[7], 36u);
    old[count + i] = atomicDec(&cells[8], 22u);
    old[2 * count + i] = atomicExch(&cells[9], value);
    unsigned seen = cells[10];
    unsigned expected;
    do {
        expected = seen;
        seen = atomicCAS(&cells[10], expected, expected ^ value * 2654435761u);
    } while (seen != expected);
    old[3 * count + i] = atomicAdd(&cells[11], 1u);
}

extern "C" __global__ void atomics_signed(const int* values, int* cells, const long long* wide, long long* wide_cells,
                                          int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) {
        return;
    }
    atomicAdd(&cells[0], values[i]);
    atomicMin(&cells[1], values[i]);
    atomicMax(&cells[2], values[i]);
    atomicMin(&wide_cells[0], wide[i]);
    atomicMax(&wide_cells[1], wide[i]);
}

extern "C" __global__ void atomics_u64(const unsigned long long* values, unsigned long long* cells, unsigned long long* old,
                                       int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) {
        return;
    }
    unsigned long long value = values[i];
    atomicAdd(&cells[0], value);
    atomicMin(&cells[1], value);
    atomicMax(&cells[2], value);
    atomicAnd(&cells[3], value | 0xffff0000ffffull);
    atomicOr(&cells[4], value & 0xff00ff00ff00ull);
    atomicXor(&cells[5], value);
    old[i] = atomicExch(&cells[6], value);
    atomicCAS(&cells[7], 0ull, value);
}

extern "C" __global__ void atomics_shared(const int* values, int* out, int per_block)
{
    __shared__ int cells[8];
    __shared__ unsigned long long wide;
    __shared__ unsigned wrapped;
    if (threadIdx.x < 8) {
        cells[threadIdx.x] = threadIdx.x == 1 ? 0x7fffffff : threadIdx.x == 3 ? -1 : 0;
        wide = 0;
        wrapped = 0;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < per_block; i += blockDim.x) {
        int value = values[blockIdx.x * per_block + i];
        atomicAdd(&cells[0], value);
        atomicMin(&cells[1], value);
        atomicMax(&cells[2], value);
        atomicAnd(&cells[3], value | 0xff);
        atomicOr(&cells[4], value & 0xf00);
        atomicXor(&cells[5], value);
        atomicAdd(&wide, (unsigned long long)(unsigned)value);
        atomicInc(&wrapped, 10u);
        atomicAdd_block(&cells[6], 1);
    }
    __syncthreads();
    if (threadIdx.x < 7) {
        out[blockIdx.x * 10 + threadIdx.x] = cells[threadIdx.x];
    }
    if (threadIdx.x == 7) {
        out[blockIdx.x * 10 + 7] = (int)wide;
        out[blockIdx.x * 10 + 8] = (int)(wide >> 32);
        out[blockIdx.x * 10 + 9] = (int)wrapped;
    }
}

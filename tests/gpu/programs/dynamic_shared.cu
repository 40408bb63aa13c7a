// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_90
// Several arrays of different types share the memory whose size the launch decides, beside a static array.

extern "C" __global__ void dynamic_shared(const int* ints, const double* doubles, const unsigned char* bytes, double* out,
                                          int per_block)
{
    extern __shared__ double arena[];
    __shared__ int offsets[3];
    double* some_doubles = arena;
    int* some_ints = reinterpret_cast<int*>(some_doubles + per_block);
    unsigned char* some_bytes = reinterpret_cast<unsigned char*>(some_ints + per_block);
    if (threadIdx.x < 3) {
        offsets[threadIdx.x] = threadIdx.x * 5;
    }
    int base = blockIdx.x * per_block;
    for (int i = threadIdx.x; i < per_block; i += blockDim.x) {
        some_doubles[i] = doubles[base + i];
        some_ints[i] = ints[base + i];
        some_bytes[i] = bytes[base + i];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < per_block; i += blockDim.x) {
        int x = (i + offsets[0]) % per_block;
        int y = (i + offsets[1]) % per_block;
        int z = (i + offsets[2]) % per_block;
        out[base + i] = some_doubles[x] + some_ints[y] * some_bytes[z];
    }
}

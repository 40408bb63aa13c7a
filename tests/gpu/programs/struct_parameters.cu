// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_100
// Structures passed by value: small, mixed, and large with arrays that are read at an index only known at run time.

struct Pair {
    int first;
    double second;
};

struct Mixed {
    char letter;
    short small;
    int* pointer;
    float3 vector;
    unsigned char bytes[5];
    long long wide;
};

struct Large {
    int count;
    float table[200];
    Pair pairs[4];
};

extern "C" __global__ void read_structs(Pair pair, Mixed mixed, double* out)
{
    if (threadIdx.x == 0 && blockIdx.x == 0) {
        out[0] = pair.first + pair.second;
        out[1] = mixed.letter;
        out[2] = mixed.small;
        out[3] = *mixed.pointer;
        out[4] = mixed.vector.x + mixed.vector.y * mixed.vector.z;
        out[5] = mixed.bytes[0] + mixed.bytes[4];
        out[6] = (double)mixed.wide;
    }
}

extern "C" __global__ void gather_large(Large large, const int* indices, float* out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < large.count) {
        int index = indices[i];
        Pair pair = large.pairs[index % 4];
        large.table[index] += 1.0f;
        out[i] = large.table[index] * pair.first + (float)pair.second;
    }
}

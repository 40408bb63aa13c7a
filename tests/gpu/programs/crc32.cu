// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_100
// Checksums of one message per thread: bit by bit, and by a table that the block makes first.

__device__ unsigned step(unsigned value)
{
    return value & 1 ? value >> 1 ^ 0xedb88320u : value >> 1;
}

extern "C" __global__ void crc32_bits(const unsigned char* messages, const int* lengths, int stride, unsigned* sums, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) {
        return;
    }
    unsigned sum = 0xffffffffu;
    for (int at = 0; at < lengths[i]; at++) {
        sum ^= messages[i * stride + at];
        for (int bit = 0; bit < 8; bit++) {
            sum = step(sum);
        }
    }
    sums[i] = ~sum;
}

extern "C" __global__ void crc32_table(const unsigned char* messages, const int* lengths, int stride, unsigned* sums, int count)
{
    __shared__ unsigned table[256];
    for (int entry = threadIdx.x; entry < 256; entry += blockDim.x) {
        unsigned value = entry;
        for (int bit = 0; bit < 8; bit++) {
            value = step(value);
        }
        table[entry] = value;
    }
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) {
        return;
    }
    unsigned sum = 0xffffffffu;
    for (int at = 0; at < lengths[i]; at++) {
        sum = sum >> 8 ^ table[(sum ^ messages[i * stride + at]) & 0xff];
    }
    sums[i] = ~sum;
}

// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_90
// SHA-256 of one short message per thread; the host has padded them to whole blocks of 64 bytes.

__constant__ unsigned round_constants[64] = {
    0x428a2f98u, 0x71374491u, 0xb5c0fbcfu, 0xe9b5dba5u, 0x3956c25bu, 0x59f111f1u, 0x923f82a4u, 0xab1c5ed5u,
    0xd807aa98u, 0x12835b01u, 0x243185beu, 0x550c7dc3u, 0x72be5d74u, 0x80deb1feu, 0x9bdc06a7u, 0xc19bf174u,
    0xe49b69c1u, 0xefbe4786u, 0x0fc19dc6u, 0x240ca1ccu, 0x2de92c6fu, 0x4a7484aau, 0x5cb0a9dcu, 0x76f988dau,
    0x983e5152u, 0xa831c66du, 0xb00327c8u, 0xbf597fc7u, 0xc6e00bf3u, 0xd5a79147u, 0x06ca6351u, 0x14292967u,
    0x27b70a85u, 0x2e1b2138u, 0x4d2c6dfcu, 0x53380d13u, 0x650a7354u, 0x766a0abbu, 0x81c2c92eu, 0x92722c85u,
    0xa2bfe8a1u, 0xa81a664bu, 0xc24b8b70u, 0xc76c51a3u, 0xd192e819u, 0xd6990624u, 0xf40e3585u, 0x106aa070u,
    0x19a4c116u, 0x1e376c08u, 0x2748774cu, 0x34b0bcb5u, 0x391c0cb3u, 0x4ed8aa4au, 0x5b9cca4fu, 0x682e6ff3u,
    0x748f82eeu, 0x78a5636fu, 0x84c87814u, 0x8cc70208u, 0x90befffau, 0xa4506cebu, 0xbef9a3f7u, 0xc67178f2u};

__device__ unsigned rotate(unsigned value, int by)
{
    return __funnelshift_r(value, value, by);
}

extern "C" __global__ void sha256(const unsigned* messages, const int* blocks, int stride, unsigned* digests, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) {
        return;
    }
    unsigned state[8] = {0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au,
                         0x510e527fu, 0x9b05688cu, 0x1f83d9abu, 0x5be0cd19u};
    for (int block = 0; block < blocks[i]; block++) {
        unsigned words[64];
        for (int j = 0; j < 16; j++) {
            words[j] = __byte_perm(messages[i * stride + block * 16 + j], 0, 0x0123);
        }
#pragma unroll 1
        for (int j = 16; j < 64; j++) {
            unsigned low = words[j - 15];
            unsigned high = words[j - 2];
            unsigned s0 = rotate(low, 7) ^ rotate(low, 18) ^ low >> 3;
            unsigned s1 = rotate(high, 17) ^ rotate(high, 19) ^ high >> 10;
            words[j] = words[j - 16] + s0 + words[j - 7] + s1;
        }
        unsigned v[8];
        for (int j = 0; j < 8; j++) {
            v[j] = state[j];
        }
#pragma unroll 8
        for (int j = 0; j < 64; j++) {
            unsigned s1 = rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25);
            unsigned choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
            unsigned first = v[7] + s1 + choice + round_constants[j] + words[j];
            unsigned s0 = rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22);
            unsigned majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
            unsigned second = s0 + majority;
            for (int to = 7; to > 0; to--) {
                v[to] = v[to - 1];
            }
            v[4] += first;
            v[0] = first + second;
        }
        for (int j = 0; j < 8; j++) {
            state[j] += v[j];
        }
    }
    for (int j = 0; j < 8; j++) {
        digests[i * 8 + j] = state[j];
    }
}

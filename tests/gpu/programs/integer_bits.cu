// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_100
// Counting, finding, reversing and moving bits, and reading fields across words.

extern "C" __global__ void integer_bits(const unsigned* a, const unsigned* b, unsigned* out, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) {
        return;
    }
    unsigned x = a[i];
    unsigned y = b[i];
    unsigned long long wide = (unsigned long long)x << 32 | y;
    out[0 * count + i] = __popc(x);
    out[1 * count + i] = __popcll(wide);
    out[2 * count + i] = __clz(x);
    out[3 * count + i] = __clzll(wide >> (x & 63));
    out[4 * count + i] = __brev(x);
    out[5 * count + i] = (unsigned)(__brevll(wide) >> 16);
    out[6 * count + i] = __ffs(x);
    out[7 * count + i] = __ffsll(wide & ~0xffffull);
    out[8 * count + i] = __byte_perm(x, y, 0x5172);
    out[9 * count + i] = __byte_perm(x, y, x & 0x7777);
    out[10 * count + i] = __funnelshift_l(x, y, y & 63);
    out[11 * count + i] = __funnelshift_r(x, y, 11);
    out[12 * count + i] = __funnelshift_lc(x, y, x & 63);
    out[13 * count + i] = __funnelshift_rc(x, y, y & 63);
    out[14 * count + i] = x << (y & 31) | x >> (-y & 31);
    out[15 * count + i] = (x & y) ^ (~x | y);
    out[16 * count + i] = (unsigned)((int)x >> (y & 31));
    out[17 * count + i] = __sad((int)x, (int)y, 5u);
    out[18 * count + i] = __usad(x, y, 5u);
    out[19 * count + i] = __hadd((int)x, (int)y);
    out[20 * count + i] = __rhadd((int)x, (int)y);
}

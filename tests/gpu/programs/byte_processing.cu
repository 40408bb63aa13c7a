// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_90
// Text and pixels: loads of single bytes, of four at once, and operations on the four bytes of a word.

extern "C" __global__ void upper_case(const unsigned char* text, unsigned char* out, int* letters, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) {
        return;
    }
    unsigned char letter = text[i];
    if (letter >= 'a' && letter <= 'z') {
        letter -= 'a' - 'A';
        atomicAdd(letters, 1);
    }
    out[i] = letter;
}

// The offsets at which a pattern occurs.
extern "C" __global__ void find_pattern(const char* text, int length, const char* pattern, int pattern_length, char* found)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i + pattern_length <= length) {
        bool same = true;
        for (int j = 0; j < pattern_length && same; j++) {
            same = text[i + j] == pattern[j];
        }
        found[i] = same;
    }
}

extern "C" __global__ void grey(const uchar4* pixels, unsigned char* out, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        uchar4 pixel = pixels[i];
        out[i] = (unsigned char)((77 * pixel.x + 150 * pixel.y + 29 * pixel.z + 128) >> 8);
    }
}

extern "C" __global__ void four_bytes(const unsigned* a, const unsigned* b, unsigned* out, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        out[0 * count + i] = __vaddus4(a[i], b[i]);
        out[1 * count + i] = __vsubss4(a[i], b[i]);
        out[2 * count + i] = __vabsdiffu4(a[i], b[i]);
        out[3 * count + i] = __vcmpgtu4(a[i], b[i]);
        out[4 * count + i] = __vavgu4(a[i], b[i]);
        out[5 * count + i] = __vminu4(a[i], b[i]);
        out[6 * count + i] = __vsadu4(a[i], b[i]);
        out[7 * count + i] = __vadd2(a[i], b[i]);
        out[8 * count + i] = __vmaxs2(a[i], b[i]);
    }
}

extern "C" __global__ void widen(const signed char* a, const short* b, long long* out, short* narrow, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        out[i] = (long long)a[i] * b[i] - (unsigned char)a[i] + (unsigned short)b[i];
        narrow[i] = (short)(a[i] * 300 + b[i]);
    }
}

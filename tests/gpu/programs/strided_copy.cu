// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_80 sm_90
// Copies that do not coalesce, and copies by vectors of two and four elements.

extern "C" __global__ void strided_copy(const int* from, int* to, int count, int from_stride, int to_stride)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        to[(long long)i * to_stride] = from[(long long)i * from_stride];
    }
}

extern "C" __global__ void reverse_float4(const float4* from, float4* to, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        float4 value = from[count - 1 - i];
        to[i] = make_float4(value.w, value.z, value.y, value.x);
    }
}

extern "C" __global__ void swap_pairs(const double2* from, double2* to, const short4* small, short4* small_to, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        double2 value = from[i];
        to[i] = make_double2(value.y, value.x);
        short4 four = small[i];
        small_to[i] = make_short4(four.y, four.x, -four.w, four.z);
    }
}

// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_80 sm_100
// Merges two sorted lists: each thread finds where its part of the result begins by bisection along a diagonal.

__device__ int split(const int* a, int a_count, const int* b, int b_count, int diagonal)
{
    int low = max(0, diagonal - b_count);
    int high = min(diagonal, a_count);
    while (low < high) {
        int middle = (low + high) / 2;
        if (a[middle] <= b[diagonal - 1 - middle]) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

extern "C" __global__ void merge_path(const int* a, int a_count, const int* b, int b_count, int* merged, int per_thread)
{
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    int total = a_count + b_count;
    int begin = min(thread * per_thread, total);
    int end = min(begin + per_thread, total);
    int from_a = split(a, a_count, b, b_count, begin);
    int from_b = begin - from_a;
    for (int i = begin; i < end; i++) {
        bool take_a = from_b >= b_count || (from_a < a_count && a[from_a] <= b[from_b]);
        merged[i] = take_a ? a[from_a++] : b[from_b++];
    }
}

// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_90
// Variables of the module: with and without values, with pointers to each other, and lasting from launch to launch.

__device__ int counter = 41;
__device__ double table[6] = {0.5, 1.5, -2.25, 1e10, 0.1, 7.0};
__device__ int zeros[4];
__device__ int* pointer_to_counter = &counter;
__device__ double* middle = &table[2];
__device__ const char* words[3] = {"alpha", "beta", "gamma"};

struct Node {
    int value;
    const Node* next;
};

__device__ Node third = {30, nullptr};
__device__ Node second = {20, &third};
__device__ Node first = {10, &second};

extern "C" __global__ void use_globals(int* ints, double* doubles)
{
    int thread = threadIdx.x;
    if (thread == 0) {
        int sum = 0;
        for (const Node* node = &first; node; node = node->next) {
            sum += node->value;
        }
        ints[0] = sum;
        ints[1] = ++*pointer_to_counter;
        doubles[6] = *middle;
    }
    if (thread < 3) {
        int length = 0;
        for (const char* at = words[thread]; *at; at++) {
            length += *at;
        }
        ints[2 + thread] = length;
    }
    if (thread < 6) {
        doubles[thread] = table[thread] * 2;
    }
    atomicAdd(&zeros[thread % 4], thread);
}

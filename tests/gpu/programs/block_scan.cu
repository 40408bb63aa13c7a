// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_100
// Prefix sums of one block: Hillis and Steele's with two buffers, and Blelloch's up-sweep and down-sweep.

extern "C" __global__ void hillis_steele(const int* values, int* inclusive)
{
    __shared__ int buffers[2][256];
    int thread = threadIdx.x;
    int base = blockIdx.x * blockDim.x;
    int now = 0;
    buffers[0][thread] = values[base + thread];
    __syncthreads();
    for (int distance = 1; distance < blockDim.x; distance *= 2) {
        int value = buffers[now][thread];
        if (thread >= distance) {
            value += buffers[now][thread - distance];
        }
        now = 1 - now;
        buffers[now][thread] = value;
        __syncthreads();
    }
    inclusive[base + thread] = buffers[now][thread];
}

extern "C" __global__ void blelloch(const unsigned* values, unsigned* exclusive)
{
    extern __shared__ unsigned tree[];
    int thread = threadIdx.x;
    int length = blockDim.x * 2;
    int base = blockIdx.x * length;
    tree[2 * thread] = values[base + 2 * thread];
    tree[2 * thread + 1] = values[base + 2 * thread + 1];
    int step = 1;
    for (int active = length / 2; active > 0; active /= 2) {
        __syncthreads();
        if (thread < active) {
            int left = step * (2 * thread + 1) - 1;
            tree[left + step] += tree[left];
        }
        step *= 2;
    }
    if (thread == 0) {
        tree[length - 1] = 0;
    }
    for (int active = 1; active < length; active *= 2) {
        step /= 2;
        __syncthreads();
        if (thread < active) {
            int left = step * (2 * thread + 1) - 1;
            unsigned value = tree[left];
            tree[left] = tree[left + step];
            tree[left + step] += value;
        }
    }
    __syncthreads();
    exclusive[base + 2 * thread] = tree[2 * thread];
    exclusive[base + 2 * thread + 1] = tree[2 * thread + 1];
}

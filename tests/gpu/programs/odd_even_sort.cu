// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_90
// Neighbours are exchanged in turns until no thread of the block exchanged anything.

extern "C" __global__ void odd_even_sort(short* keys, int count, int* rounds)
{
    __shared__ short sorted[512];
    int thread = threadIdx.x;
    short* own = keys + blockIdx.x * count;
    for (int i = thread; i < count; i += blockDim.x) {
        sorted[i] = own[i];
    }
    __syncthreads();
    int round = 0;
    int exchanged;
    do {
        bool mine = false;
        for (int parity = 0; parity < 2; parity++) {
            int i = 2 * thread + parity;
            if (i + 1 < count && sorted[i] > sorted[i + 1]) {
                short value = sorted[i];
                sorted[i] = sorted[i + 1];
                sorted[i + 1] = value;
                mine = true;
            }
            __syncthreads();
        }
        round++;
        exchanged = __syncthreads_or(mine);
    } while (exchanged);
    for (int i = thread; i < count; i += blockDim.x) {
        own[i] = sorted[i];
    }
    if (thread == 0) {
        rounds[blockIdx.x] = round;
    }
}

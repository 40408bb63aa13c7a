// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_70 sm_75 sm_90
// Whoever draws a number waits until it is called: all threads of all blocks pass one after another.

__device__ unsigned next_ticket;
__device__ volatile unsigned now_serving;

extern "C" __global__ void ticket_lock(volatile unsigned long long* hash, unsigned* tickets)
{
    unsigned ticket = atomicAdd(&next_ticket, 1u);
    while (now_serving != ticket) {
    }
    __threadfence();
    *hash = *hash * 31 + ticket;
    tickets[blockIdx.x * blockDim.x + threadIdx.x] = ticket;
    __threadfence();
    now_serving = ticket + 1;
}

// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_70 sm_75 sm_90
// Warps of a block hand values to each other: by named barriers, and by flags in memory.

// One warp fills a buffer, another empties it; barrier 1 means full, barrier 2 means empty.
extern "C" __global__ void named_barriers(const int* values, int* out, int rounds)
{
    __shared__ int buffer[32];
    int lane = threadIdx.x % 32;
    if (threadIdx.x < 32) {
        for (int round = 0; round < rounds; round++) {
            asm volatile("bar.sync 2, 64;" ::: "memory");
            buffer[lane] = values[(blockIdx.x * rounds + round) * 32 + lane];
            asm volatile("bar.arrive 1, 64;" ::: "memory");
        }
        asm volatile("bar.sync 2, 64;" ::: "memory");
    } else {
        for (int round = 0; round < rounds; round++) {
            asm volatile("bar.arrive 2, 64;" ::: "memory");
            asm volatile("bar.sync 1, 64;" ::: "memory");
            out[(blockIdx.x * rounds + round) * 32 + lane] = 2 * buffer[31 - lane] + round;
        }
        asm volatile("bar.arrive 2, 64;" ::: "memory");
    }
}

// A ring of four slots between the first and the second block.
extern "C" __global__ void flags_between_blocks(volatile int* slots, volatile int* filled, volatile int* emptied, int* out,
                                                int count)
{
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0) {
            for (int i = 0; i < count; i++) {
                while (i - *emptied >= 4) {
                }
                slots[i % 4] = i * i;
                __threadfence();
                *filled = i + 1;
            }
        }
    } else if (threadIdx.x == 0) {
        for (int i = 0; i < count; i++) {
            while (*filled <= i) {
            }
            __threadfence();
            out[i] = slots[i % 4] + 1;
            __threadfence();
            *emptied = i + 1;
        }
    }
}

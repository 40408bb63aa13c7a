// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_90
// Clocks and special registers: what a thread can read of the SM it runs on.

extern "C" __global__ void clocks(long long* elapsed, unsigned* registers, float* work)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    long long begin = clock64();
    unsigned short_begin = clock();
    float value = i;
    for (int step = 0; step < 20; step++) {
        value = value * 0.5f + 1.0f;
    }
    work[i] = value;
    unsigned short_end = clock();
    elapsed[2 * i] = clock64() - begin;
    elapsed[2 * i + 1] = short_end - short_begin;
    unsigned lane;
    unsigned warp;
    unsigned lower;
    unsigned upper_or_equal;
    unsigned processor;
    unsigned processors;
    unsigned long long time;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    asm volatile("mov.u32 %0, %%warpid;" : "=r"(warp));
    asm volatile("mov.u32 %0, %%lanemask_lt;" : "=r"(lower));
    asm volatile("mov.u32 %0, %%lanemask_ge;" : "=r"(upper_or_equal));
    asm volatile("mov.u32 %0, %%smid;" : "=r"(processor));
    asm volatile("mov.u32 %0, %%nsmid;" : "=r"(processors));
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    registers[6 * i] = lane;
    registers[6 * i + 1] = lower;
    registers[6 * i + 2] = upper_or_equal;
    registers[6 * i + 3] = processor < processors;
    registers[6 * i + 4] = warp < 64;
    registers[6 * i + 5] = time != 1;
}

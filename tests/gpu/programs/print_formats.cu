// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_90
// What printf can print; one thread at a time, so that the order is known.

#ifndef __CUDACC_RTC__
#include <cstdio>
#endif

extern "C" __global__ void print_formats(int number, double real, const void* pointer)
{
    if (threadIdx.x == 0 && blockIdx.x == 0) {
        printf("plain text, 100%%\n");
        printf("%d %i %5d|%-5d|%05d %+d\n", number, -number, number, number, number, number);
        printf("%u %x %X %#x %o\n", 3000000000u, 48879u, 48879u, 255u, 8u);
        printf("%lld %llu %llx\n", -1234567890123ll, 12345678901234567890ull, 0xfeedfacecafeull);
        printf("%f %.3f %10.2f|%-10.1f|%e %g\n", real, real, real, real, real, real);
        printf("%c%c%c %s|%8s|%-8s|%.2s\n", 'a', 'b', 'c', "word", "right", "left", "cut");
        printf("%ld %hd|%*d|%p\n", 7L, (short)-3, 6, 42, pointer);
        float single = 0.5f;
        printf("%d %f %s %d %lld %f\n", 1, single, "two", 3, 4ll, 5.0);
    }
}

extern "C" __global__ void print_from_all(int base)
{
    printf("thread %d of block %d\n", base + (int)threadIdx.x, (int)blockIdx.x);
}

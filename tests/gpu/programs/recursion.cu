// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_90 sm_75-debug
// Functions that call themselves, to a depth that differs between the lanes.

__device__ __noinline__ int fibonacci(int n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__device__ __noinline__ unsigned ackermann(unsigned m, unsigned n)
{
    if (m == 0) {
        return n + 1;
    }
    if (n == 0) {
        return ackermann(m - 1, 1);
    }
    return ackermann(m - 1, ackermann(m, n - 1));
}

__device__ bool odd(unsigned n);

__device__ __noinline__ bool even(unsigned n)
{
    return n == 0 ? true : odd(n - 1);
}

__device__ __noinline__ bool odd(unsigned n)
{
    return n == 0 ? false : even(n - 1);
}

extern "C" __global__ void recursion(int* fibonaccis, unsigned* ackermanns, int* parities)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    fibonaccis[i] = fibonacci(i % 11);
    ackermanns[i] = ackermann(i % 3, i % 4);
    parities[i] = even(i % 13) ? 1 : 0;
}

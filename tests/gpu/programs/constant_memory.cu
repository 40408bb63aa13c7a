// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_90
// Constants: a table with values, one that the host fills, and a polynomial with coefficients by thread.

__constant__ int powers[8] = {1, 3, 9, 27, 81, 243, 729, 2187};
__constant__ float coefficients[4][4];
__constant__ char greeting[] = "many scales";

extern "C" __global__ void constant_memory(const float* x, float* polynomials, int* sums, char* letters, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) {
        return;
    }
    const float* row = coefficients[i % 4];
    polynomials[i] = fmaf(fmaf(fmaf(row[3], x[i], row[2]), x[i], row[1]), x[i], row[0]);
    int sum = 0;
    for (int j = 0; j <= i % 8; j++) {
        sum += powers[j];
    }
    sums[i] = sum;
    letters[i] = greeting[i % (sizeof(greeting) - 1)];
}

// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_90
// Small matrices factorised in shared memory, one per block: LU with pivots, Cholesky, and the determinant.

constexpr int n = 24;

extern "C" __global__ void lu_factorise(double* matrices, int* pivots)
{
    __shared__ double a[n][n + 1];
    __shared__ int pivot;
    double* own = matrices + blockIdx.x * n * n;
    int column = threadIdx.x;
    for (int row = 0; row < n; row++) {
        if (column < n) {
            a[row][column] = own[row * n + column];
        }
    }
    __syncthreads();
    for (int step = 0; step < n; step++) {
        if (column == 0) {
            pivot = step;
            for (int row = step + 1; row < n; row++) {
                if (fabs(a[row][step]) > fabs(a[pivot][step])) {
                    pivot = row;
                }
            }
            pivots[blockIdx.x * n + step] = pivot;
        }
        __syncthreads();
        if (column < n && pivot != step) {
            double value = a[step][column];
            a[step][column] = a[pivot][column];
            a[pivot][column] = value;
        }
        __syncthreads();
        if (column > step && column < n) {
            a[column][step] /= a[step][step];
        }
        __syncthreads();
        if (column > step && column < n) {
            for (int row = step + 1; row < n; row++) {
                a[row][column] -= a[row][step] * a[step][column];
            }
        }
        __syncthreads();
    }
    for (int row = 0; row < n; row++) {
        if (column < n) {
            own[row * n + column] = a[row][column];
        }
    }
}

extern "C" __global__ void cholesky(float* matrices)
{
    __shared__ float a[n][n];
    float* own = matrices + blockIdx.x * n * n;
    int x = threadIdx.x;
    int y = threadIdx.y;
    a[y][x] = own[y * n + x];
    __syncthreads();
    for (int step = 0; step < n; step++) {
        if (x == step && y == step) {
            a[step][step] = sqrtf(a[step][step]);
        }
        __syncthreads();
        if (x == step && y > step) {
            a[y][step] /= a[step][step];
        }
        __syncthreads();
        if (x > step && y >= x) {
            a[y][x] -= a[y][step] * a[x][step];
        }
        __syncthreads();
    }
    own[y * n + x] = x <= y ? a[y][x] : 0.0f;
}

// Each thread eliminates a matrix of 5 by 5 of its own, in local memory.
extern "C" __global__ void determinants(const float* matrices, float* results, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) {
        return;
    }
    float a[5][5];
    for (int j = 0; j < 25; j++) {
        a[j / 5][j % 5] = matrices[i * 25 + j];
    }
    float result = 1;
    for (int step = 0; step < 5; step++) {
        int best = step;
        for (int row = step + 1; row < 5; row++) {
            if (fabsf(a[row][step]) > fabsf(a[best][step])) {
                best = row;
            }
        }
        if (a[best][step] == 0) {
            result = 0;
            break;
        }
        if (best != step) {
            result = -result;
            for (int column = 0; column < 5; column++) {
                float value = a[step][column];
                a[step][column] = a[best][column];
                a[best][column] = value;
            }
        }
        result *= a[step][step];
        for (int row = step + 1; row < 5; row++) {
            float factor = a[row][step] / a[step][step];
            for (int column = step; column < 5; column++) {
                a[row][column] -= factor * a[step][column];
            }
        }
    }
    results[i] = result;
}

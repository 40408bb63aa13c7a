// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_80 sm_100
// Solves lower triangular systems, and diagonally dominant ones by Jacobi's iterations.

// One warp per right-hand side; rows are substituted one after another.
extern "C" __global__ void triangular_solve(const double* lower, double* right, int n)
{
    extern __shared__ double x[];
    int lane = threadIdx.x;
    double* own = right + blockIdx.x * n;
    for (int row = 0; row < n; row++) {
        double sum = 0;
        for (int column = lane; column < row; column += 32) {
            sum += lower[row * n + column] * x[column];
        }
        for (int offset = 16; offset > 0; offset /= 2) {
            sum += __shfl_down_sync(0xffffffffu, sum, offset);
        }
        if (lane == 0) {
            x[row] = (own[row] - sum) / lower[row * n + row];
        }
        __syncwarp();
    }
    for (int row = lane; row < n; row += 32) {
        own[row] = x[row];
    }
}

extern "C" __global__ void jacobi_step(const float* matrix, const float* right, const float* x, float* next,
                                       float* largest_change, int n)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float change = 0;
    if (row < n) {
        float sum = right[row];
        for (int column = 0; column < n; column++) {
            if (column != row) {
                sum -= matrix[row * n + column] * x[column];
            }
        }
        next[row] = sum / matrix[row * n + row];
        change = fabsf(next[row] - x[row]);
    }
    for (int offset = 16; offset > 0; offset /= 2) {
        change = fmaxf(change, __shfl_xor_sync(0xffffffffu, change, offset));
    }
    if (threadIdx.x % 32 == 0) {
        atomicMax(reinterpret_cast<int*>(largest_change), __float_as_int(change));
    }
}

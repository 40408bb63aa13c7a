// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_90
// Sparse matrix times vector: compressed rows with a thread or a warp per row, and padded rows (ELL) by columns.

extern "C" __global__ void spmv_scalar(const int* starts, const int* columns, const double* values, const double* x,
                                       double* y, int rows)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        double sum = 0;
        for (int i = starts[row]; i < starts[row + 1]; i++) {
            sum += values[i] * x[columns[i]];
        }
        y[row] = sum;
    }
}

extern "C" __global__ void spmv_vector(const int* starts, const int* columns, const double* values, const double* x,
                                       double* y, int rows)
{
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    int lane = threadIdx.x % 32;
    if (row >= rows) {
        return;
    }
    double sum = 0;
    for (int i = starts[row] + lane; i < starts[row + 1]; i += 32) {
        sum += values[i] * x[columns[i]];
    }
    for (int offset = 16; offset > 0; offset /= 2) {
        sum += __shfl_down_sync(0xffffffffu, sum, offset);
    }
    if (lane == 0) {
        y[row] = sum;
    }
}

extern "C" __global__ void spmv_ell(const int* columns, const float* values, const float* x, float* y, int rows, int width)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) {
        return;
    }
    float sum = 0;
    for (int i = 0; i < width; i++) {
        int column = columns[i * rows + row];
        if (column < 0) {
            break;
        }
        sum += values[i * rows + row] * x[column];
    }
    y[row] = sum;
}

// SPDX-License-Identifier: Apache-2.0
// LU decomposition without pivoting in blocks of 16 x 16: the block on the diagonal by one small CTA, the blocks of its
// row and column by one CTA each pair, and the rest by one CTA each block.

#define SIDE 16

extern "C" __global__ void lu_diagonal(float* matrix, int dimension, int offset)
{
    __shared__ float block[SIDE][SIDE];
    float* corner = matrix + offset * dimension + offset;
    int me = threadIdx.x;
    for (int row = 0; row < SIDE; row++) {
        block[row][me] = corner[row * dimension + me];
    }
    __syncthreads();
    for (int step = 0; step < SIDE - 1; step++) {
        if (me > step) {
            for (int k = 0; k < step; k++) {
                block[me][step] -= block[me][k] * block[k][step];
            }
            block[me][step] /= block[step][step];
        }
        __syncthreads();
        if (me > step) {
            for (int k = 0; k < step + 1; k++) {
                block[step + 1][me] -= block[step + 1][k] * block[k][me];
            }
        }
        __syncthreads();
    }
    for (int row = 1; row < SIDE; row++) {
        corner[row * dimension + me] = block[row][me];
    }
}

extern "C" __global__ void lu_perimeter(float* matrix, int dimension, int offset)
{
    __shared__ float diagonal[SIDE][SIDE];
    __shared__ float above[SIDE][SIDE];
    __shared__ float beside[SIDE][SIDE];
    float* corner = matrix + offset * dimension + offset;
    int far = (blockIdx.x + 1) * SIDE;
    int me = threadIdx.x % SIDE;
    bool works_on_row = threadIdx.x < SIDE;
    if (works_on_row) {
        for (int row = 0; row < SIDE / 2; row++) {
            diagonal[row][me] = corner[row * dimension + me];
        }
        for (int row = 0; row < SIDE; row++) {
            above[row][me] = corner[row * dimension + far + me];
        }
    } else {
        for (int row = SIDE / 2; row < SIDE; row++) {
            diagonal[row][me] = corner[row * dimension + me];
        }
        for (int row = 0; row < SIDE; row++) {
            beside[row][me] = corner[(far + row) * dimension + me];
        }
    }
    __syncthreads();
    if (works_on_row) {
#pragma unroll
        for (int row = 1; row < SIDE; row++) {
#pragma unroll
            for (int k = 0; k < row; k++) {
                above[row][me] -= diagonal[row][k] * above[k][me];
            }
        }
    } else {
#pragma unroll
        for (int column = 0; column < SIDE; column++) {
#pragma unroll
            for (int k = 0; k < column; k++) {
                beside[me][column] -= beside[me][k] * diagonal[k][column];
            }
            beside[me][column] /= diagonal[column][column];
        }
    }
    __syncthreads();
    if (works_on_row) {
        for (int row = 1; row < SIDE; row++) {
            corner[row * dimension + far + me] = above[row][me];
        }
    } else {
        for (int row = 0; row < SIDE; row++) {
            corner[(far + row) * dimension + me] = beside[row][me];
        }
    }
}

extern "C" __global__ void lu_internal(float* matrix, int dimension, int offset)
{
    __shared__ float above[SIDE][SIDE];
    __shared__ float beside[SIDE][SIDE];
    int row = offset + (blockIdx.y + 1) * SIDE + threadIdx.y;
    int column = offset + (blockIdx.x + 1) * SIDE + threadIdx.x;
    above[threadIdx.y][threadIdx.x] = matrix[(offset + threadIdx.y) * dimension + column];
    beside[threadIdx.y][threadIdx.x] = matrix[row * dimension + offset + threadIdx.x];
    __syncthreads();
    float sum = 0.0f;
    for (int k = 0; k < SIDE; k++) {
        sum += beside[threadIdx.y][k] * above[k][threadIdx.x];
    }
    matrix[row * dimension + column] -= sum;
}

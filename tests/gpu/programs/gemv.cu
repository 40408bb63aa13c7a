// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_100
// Matrix times vector, one warp per row, read by vectors of four.

extern "C" __global__ void gemv(const float* __restrict__ matrix, const float* __restrict__ vector,
                                float* __restrict__ result, int rows, int columns)
{
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    int lane = threadIdx.x % 32;
    if (warp >= rows) {
        return;
    }
    const float4* row = reinterpret_cast<const float4*>(matrix + warp * columns);
    const float4* other = reinterpret_cast<const float4*>(vector);
    float sum = 0;
    for (int i = lane; i < columns / 4; i += 32) {
        float4 a = __ldg(&row[i]);
        float4 b = __ldg(&other[i]);
        sum += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
    }
    for (int offset = 16; offset > 0; offset /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    }
    if (lane == 0) {
        result[warp] = sum;
    }
}

// The transposed matrix: one thread per column.
extern "C" __global__ void gemv_transposed(const double* matrix, const double* vector, double* result, int rows, int columns)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column < columns) {
        double sum = 0;
        for (int row = 0; row < rows; row++) {
            sum += matrix[row * columns + column] * vector[row];
        }
        result[column] = sum;
    }
}

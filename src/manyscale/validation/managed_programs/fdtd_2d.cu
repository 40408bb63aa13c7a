// SPDX-License-Identifier: Apache-2.0
// Electric and magnetic fields in two dimensions, by finite differences in time: three sweeps for each step.
// `ex` has a column more than `hz`, `ey` a row more.

extern "C" __global__ void sweep_ey(float* ey, const float* hz, const float* source, int step, int rows,
                                    int columns)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns) {
        return;
    }
    const int here = row * columns + column;
    ey[here] = row == 0 ? source[step] : ey[here] - 0.5f * (hz[here] - hz[here - columns]);
}

extern "C" __global__ void sweep_ex(float* ex, const float* hz, int rows, int columns)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns || column == 0) {
        return;
    }
    const int here = row * columns + column;
    ex[here + row] -= 0.5f * (hz[here] - hz[here - 1]);
}

extern "C" __global__ void sweep_hz(const float* ex, const float* ey, float* hz, int rows, int columns)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns) {
        return;
    }
    const int here = row * columns + column;
    hz[here] -= 0.7f * (ex[here + row + 1] - ex[here + row] + ey[here + columns] - ey[here]);
}

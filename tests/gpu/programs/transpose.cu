// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_100 sm_75-lineinfo
// A tile of 32 by 32 passes through shared memory, padded so that columns fall into different banks.

constexpr int tile_size = 32;
constexpr int rows = 8;

extern "C" __global__ void transpose(const float* in, float* out, int width, int height)
{
    __shared__ float tile[tile_size][tile_size + 1];
    int x = blockIdx.x * tile_size + threadIdx.x;
    int y = blockIdx.y * tile_size + threadIdx.y;
    for (int row = 0; row < tile_size; row += rows) {
        if (x < width && y + row < height) {
            tile[threadIdx.y + row][threadIdx.x] = in[(y + row) * width + x];
        }
    }
    __syncthreads();
    x = blockIdx.y * tile_size + threadIdx.x;
    y = blockIdx.x * tile_size + threadIdx.y;
    for (int row = 0; row < tile_size; row += rows) {
        if (x < height && y + row < width) {
            out[(y + row) * height + x] = tile[threadIdx.x][threadIdx.y + row];
        }
    }
}

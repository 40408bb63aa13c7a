// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_100
// One generation of Conway's game on a torus, one cell per thread with a tile in shared memory.

extern "C" __global__ void life(const unsigned char* now, unsigned char* next, int width, int height)
{
    __shared__ unsigned char tile[10][18];
    int x = blockIdx.x * 16 + threadIdx.x;
    int y = blockIdx.y * 8 + threadIdx.y;
    for (int row = threadIdx.y; row < 10; row += 8) {
        for (int column = threadIdx.x; column < 18; column += 16) {
            int from_x = (blockIdx.x * 16 + column + width - 1) % width;
            int from_y = (blockIdx.y * 8 + row + height - 1) % height;
            tile[row][column] = now[from_y * width + from_x];
        }
    }
    __syncthreads();
    if (x >= width || y >= height) {
        return;
    }
    int neighbours = 0;
    for (int row = 0; row < 3; row++) {
        for (int column = 0; column < 3; column++) {
            if (row != 1 || column != 1) {
                neighbours += tile[threadIdx.y + row][threadIdx.x + column];
            }
        }
    }
    bool alive = tile[threadIdx.y + 1][threadIdx.x + 1];
    next[y * width + x] = neighbours == 3 || (alive && neighbours == 2);
}

// SPDX-License-Identifier: Apache-2.0
// Temperatures of a chip, by the power of its parts: a block computes some steps in shared memory before it writes.
// A tile of 16 x 16 cells shrinks by a cell on each side with every step, so tiles overlap.

constexpr int kTile = 16;

extern "C" __global__ void heat(const float* power, const float* before, float* after, int side, int steps,
                                float per_power, float per_neighbour, float per_ambient, float ambient)
{
    __shared__ float temperature[kTile][kTile];
    __shared__ float heating[kTile][kTile];
    const int x = threadIdx.x;
    const int y = threadIdx.y;
    const int inner = kTile - 2 * steps;
    const int column = inner * static_cast<int>(blockIdx.x) - steps + x;
    const int row = inner * static_cast<int>(blockIdx.y) - steps + y;
    const bool inside = column >= 0 && column < side && row >= 0 && row < side;
    const int here = row * side + column;
    if (inside) {
        temperature[y][x] = before[here];
        heating[y][x] = power[here];
    }
    __syncthreads();
    // Beyond the edge of the chip a cell is its own neighbour.
    const int left = column > 0 ? x - 1 : x;
    const int right = column < side - 1 ? x + 1 : x;
    const int up = row > 0 ? y - 1 : y;
    const int down = row < side - 1 ? y + 1 : y;
    for (int step = 1; step <= steps; ++step) {
        const bool valid =
            inside && x >= step && x < kTile - step && y >= step && y < kTile - step;
        float next = 0.0f;
        if (valid) {
            const float mine = temperature[y][x];
            next = mine + per_power * heating[y][x] +
                   per_neighbour * (temperature[up][x] + temperature[down][x] + temperature[y][left] +
                                    temperature[y][right] - 4.0f * mine) +
                   per_ambient * (ambient - mine);
        }
        __syncthreads();
        if (valid) {
            temperature[y][x] = next;
        }
        __syncthreads();
    }
    if (inside && x >= steps && x < kTile - steps && y >= steps && y < kTile - steps) {
        after[here] = temperature[y][x];
    }
}

// SPDX-License-Identifier: Apache-2.0
// The cheapest ways down a wall, stepping straight or to a neighbouring column: a block computes some rows in shared
// memory, of 256 columns that shrink by one on each side with every row.

constexpr int kColumns = 256;

extern "C" __global__ void descend(const int* wall, const int* before, int* after, int columns, int first_row, int rows)
{
    __shared__ int cost[kColumns];
    const int x = threadIdx.x;
    const int column = (kColumns - 2 * rows) * static_cast<int>(blockIdx.x) - rows + x;
    const bool inside = column >= 0 && column < columns;
    if (inside) {
        cost[x] = before[column];
    }
    __syncthreads();
    for (int row = 1; row <= rows; ++row) {
        const bool valid = inside && x >= row && x < kColumns - row;
        int next = 0;
        if (valid) {
            const int left = column > 0 ? cost[x - 1] : cost[x];
            const int right = column < columns - 1 ? cost[x + 1] : cost[x];
            next = min(min(left, right), cost[x]) + wall[(first_row + row - 1) * columns + column];
        }
        __syncthreads();
        if (valid) {
            cost[x] = next;
        }
        __syncthreads();
    }
    if (inside && x >= rows && x < kColumns - rows) {
        after[column] = cost[x];
    }
}

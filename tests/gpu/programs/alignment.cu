// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_90
// Tables of sequence alignment, filled along diagonals by one block.

// Best local alignment (Smith and Waterman), three diagonals in shared memory.
extern "C" __global__ void smith_waterman(const char* a, int a_length, const char* b, int b_length, int* best)
{
    __shared__ int diagonals[3][129];
    int row = threadIdx.x;
    for (int i = 0; i < 3; i++) {
        diagonals[i][row] = 0;
    }
    if (row == 0) {
        diagonals[0][128] = diagonals[1][128] = diagonals[2][128] = 0;
    }
    __syncthreads();
    const char* own = b + blockIdx.x * b_length;
    int largest = 0;
    for (int step = 0; step < a_length + b_length - 1; step++) {
        int* now = diagonals[step % 3];
        const int* before = diagonals[(step + 2) % 3];
        const int* before_that = diagonals[(step + 1) % 3];
        int column = step - row;
        int score = 0;
        if (row < a_length && column >= 0 && column < b_length) {
            int match = a[row] == own[column] ? 3 : -2;
            int corner = column > 0 ? before_that[row] : 0;
            int left = column > 0 ? before[row + 1] : 0;
            score = max(0, max(corner + match, max(before[row], left) - 2));
            largest = max(largest, score);
        }
        __syncthreads();
        now[row + 1] = score;
        __syncthreads();
    }
    atomicMax(&best[blockIdx.x], largest);
}

// Longest common subsequence of two texts, a thread per column, the rows handed on one step later.
extern "C" __global__ void longest_common(const char* a, int a_length, const char* b, int b_length, int* table)
{
    int column = threadIdx.x + 1;
    int width = b_length + 1;
    for (int step = 0; step < a_length + b_length; step++) {
        int row = step - threadIdx.x + 1;
        if (column <= b_length && row >= 1 && row <= a_length) {
            if (a[row - 1] == b[column - 1]) {
                table[row * width + column] = table[(row - 1) * width + column - 1] + 1;
            } else {
                table[row * width + column] = max(table[(row - 1) * width + column], table[row * width + column - 1]);
            }
        }
        __syncthreads();
    }
}

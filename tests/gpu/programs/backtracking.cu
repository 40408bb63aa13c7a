// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_100
// Searches that try and take back: queens on a board, and the open cells of a Latin square.

// Two queens are set for each thread; it counts the ways to set the others.
extern "C" __global__ void queens(int size, int* solutions)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= size * size) {
        return;
    }
    unsigned all = (1u << size) - 1;
    unsigned columns[12];
    unsigned left[12];
    unsigned right[12];
    unsigned open[12];
    unsigned first = 1u << i / size;
    unsigned second = 1u << i % size;
    unsigned taken = first | first << 1 | first >> 1;
    if (second & taken) {
        return;
    }
    int row = 2;
    columns[row] = first | second;
    left[row] = (first << 2 | second << 1) & all;
    right[row] = first >> 2 | second >> 1;
    open[row] = all & ~(columns[row] | left[row] | right[row]);
    int found = 0;
    while (row >= 2) {
        unsigned choice = open[row] & -open[row];
        if (choice == 0) {
            row--;
            continue;
        }
        open[row] ^= choice;
        if (row == size - 1) {
            found++;
            continue;
        }
        columns[row + 1] = columns[row] | choice;
        left[row + 1] = (left[row] | choice) << 1 & all;
        right[row + 1] = (right[row] | choice) >> 1;
        row++;
        open[row] = all & ~(columns[row] | left[row] | right[row]);
    }
    atomicAdd(solutions, found);
}

__device__ bool allowed(const char* cells, int at, char number)
{
    int row = at / 4;
    int column = at % 4;
    for (int i = 0; i < 4; i++) {
        if (cells[row * 4 + i] == number || cells[i * 4 + column] == number) {
            return false;
        }
        if (cells[(row / 2 * 2 + i / 2) * 4 + column / 2 * 2 + i % 2] == number) {
            return false;
        }
    }
    return true;
}

__device__ __noinline__ bool fill(char* cells, int at)
{
    while (at < 16 && cells[at]) {
        at++;
    }
    if (at == 16) {
        return true;
    }
    for (char number = 1; number <= 4; number++) {
        if (allowed(cells, at, number)) {
            cells[at] = number;
            if (fill(cells, at + 1)) {
                return true;
            }
            cells[at] = 0;
        }
    }
    return false;
}

// Squares of four by four with four boxes, each solved by one thread that calls itself.
extern "C" __global__ void small_sudoku(char* squares, int* solved, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        char cells[16];
        for (int j = 0; j < 16; j++) {
            cells[j] = squares[i * 16 + j];
        }
        solved[i] = fill(cells, 0);
        for (int j = 0; j < 16; j++) {
            squares[i * 16 + j] = cells[j];
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
// Scores of the best alignments of two sequences: tiles of 16 x 16 along an antidiagonal are computed at once, each by
// 16 threads, a column for each. Row 0 and column 0 of `scores` are the gaps before the sequences.

constexpr int kTile = 16;

// `diagonal` counts tiles from the upper left; the tiles of a launch begin with the one in column `first`.
extern "C" __global__ void align(const int* similarity, int* scores, int side, int gap, int diagonal, int first)
{
    __shared__ int score[kTile + 1][kTile + 1];
    __shared__ int similar[kTile][kTile];
    const int thread = threadIdx.x;
    const int tile_column = first + blockIdx.x;
    const int tile_row = diagonal - tile_column;
    const int corner = tile_row * kTile * side + tile_column * kTile;
    for (int row = 0; row < kTile; ++row) {
        similar[row][thread] = similarity[corner + (row + 1) * side + thread + 1];
    }
    score[thread + 1][0] = scores[corner + (thread + 1) * side];
    score[0][thread + 1] = scores[corner + thread + 1];
    if (thread == 0) {
        score[0][0] = scores[corner];
    }
    __syncthreads();
    for (int step = 0; step < 2 * kTile - 1; ++step) {
        const int row = step - thread;
        if (row >= 0 && row < kTile) {
            const int both = score[row][thread] + similar[row][thread];
            const int one = max(score[row][thread + 1], score[row + 1][thread]) - gap;
            score[row + 1][thread + 1] = max(both, one);
        }
        __syncthreads();
    }
    for (int row = 0; row < kTile; ++row) {
        scores[corner + (row + 1) * side + thread + 1] = score[row + 1][thread + 1];
    }
}

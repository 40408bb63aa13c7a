// SPDX-License-Identifier: Apache-2.0
// One training step of a network whose hidden layer has 16 units: a block takes 16 inputs and their weights.
// Row r of `weights` belongs to input r; row 0 and column 0 belong to the thresholds.

constexpr int kUnits = 16;
constexpr int kRow = kUnits + 1;
constexpr float kRate = 0.3f;
constexpr float kMomentum = 0.3f;

// The sums of 16 products of inputs and weights, for each hidden unit and block. As in the benchmark, the weights are
// overwritten by what remains of the products in shared memory.
extern "C" __global__ void forward(const float* inputs, float* weights, float* sums)
{
    __shared__ float products[kUnits][kUnits];
    const int unit = threadIdx.x;
    const int lane = threadIdx.y;
    const int input = blockIdx.y * kUnits + lane + 1;
    const int index = input * kRow + unit + 1;
    products[lane][unit] = weights[index] * inputs[input];
    __syncthreads();
    for (int distance = 1; distance < kUnits; distance *= 2) {
        if (lane % (2 * distance) == 0) {
            products[lane][unit] += products[lane + distance][unit];
        }
        __syncthreads();
    }
    weights[index] = products[lane][unit];
    if (lane == 0) {
        sums[blockIdx.y * kUnits + unit] = products[0][unit];
    }
}

// Moves every weight by what the error of its unit asks for, and by a part of its last move.
extern "C" __global__ void adjust(const float* errors, const float* inputs, float* weights, float* moves)
{
    const int unit = threadIdx.x + 1;
    const int input = blockIdx.y * kUnits + threadIdx.y + 1;
    const int index = input * kRow + unit;
    const float move = kRate * errors[unit] * inputs[input] + kMomentum * moves[index];
    weights[index] += move;
    moves[index] = move;
    if (blockIdx.y == 0 && threadIdx.y == 0) {  // the thresholds, whose input is 1
        const float threshold = kRate * errors[unit] + kMomentum * moves[unit];
        weights[unit] += threshold;
        moves[unit] = threshold;
    }
}

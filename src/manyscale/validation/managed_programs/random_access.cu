// SPDX-License-Identifier: Apache-2.0
// Every hundredth element chooses a place of a table at random, and writes to the same place of the output.

extern "C" __global__ void scatter(const float* input, float* output, const float* table, int count)
{
    const int place = blockIdx.x * blockDim.x + threadIdx.x;
    if (place >= count || place % 100 != 0) {
        return;
    }
    const float value = input[place];
    const int chosen = static_cast<int>((value - floorf(value)) * static_cast<float>(count));
    output[chosen] = table[chosen] * value;
}

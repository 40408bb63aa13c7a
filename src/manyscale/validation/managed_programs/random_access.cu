// SPDX-License-Identifier: Apache-2.0
// Every hundredth element chooses an entry of a table at random, and writes to the same entry of the output.

extern "C" __global__ void scatter(const float* input, float* output, const float* table, int count)
{
    const int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= count || index % 100 != 0) {
        return;
    }
    const float value = input[index];
    const int chosen = static_cast<int>((value - floorf(value)) * static_cast<float>(count));
    output[chosen] = table[chosen] * value;
}

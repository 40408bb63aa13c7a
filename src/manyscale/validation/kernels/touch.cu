// SPDX-License-Identifier: Apache-2.0
// One thread changes bytes far apart, each after the one before.

extern "C" __global__ void touch(char* memory, const int* offsets, int count)
{
    char carried = 0;
    for (int i = 0; i < count; ++i) {
        carried += memory[offsets[i] + (carried & 0x80)];
        memory[offsets[i]] = carried & 0x7f;
    }
}

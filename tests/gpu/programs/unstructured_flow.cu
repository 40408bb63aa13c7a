// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_90
// Jumps into and out of loops: control flow that no nesting of loops and conditions describes.

extern "C" __global__ void state_machine(const int* inputs, int* outputs, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) {
        return;
    }
    int x = inputs[i];
    int steps = 0;
    if (x & 1) {
        goto odd;
    }
    if (x > 40) {
        goto large;
    }
even:
    steps++;
    x /= 2;
    if (x <= 1) {
        goto end;
    }
    if (x & 1) {
        goto odd;
    }
    goto even;
odd:
    steps += 10;
    x = 3 * x + 1;
    if (x > 200) {
        goto large;
    }
    goto even;
large:
    steps += 100;
    x -= 37;
    if (x > 100) {
        goto large;
    }
    if (x & 1) {
        goto odd;
    }
    goto even;
end:
    outputs[i] = steps * 8 + x;
}

// Two loops entered in the middle of each other.
extern "C" __global__ void crossing_loops(const int* inputs, int* outputs, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) {
        return;
    }
    int x = inputs[i];
    int sum = 0;
    int budget = 40;
    if (x % 3 == 0) {
        goto second;
    }
first:
    sum += x;
    if (--budget < 0) {
        goto end;
    }
    x = (x * 5 + 3) % 64;
    if (x < 20) {
        goto second;
    }
third:
    sum ^= x;
    x = (x + 7) % 64;
    if (x % 4 == 0) {
        goto first;
    }
    if (--budget < 0) {
        goto end;
    }
    goto second;
second:
    sum = sum * 3 + 1;
    x = (x * 3 + 1) % 64;
    if (x % 2) {
        goto third;
    }
    goto first;
end:
    outputs[i] = sum;
}

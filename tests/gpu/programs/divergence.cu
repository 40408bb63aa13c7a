// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_100
// Lanes that leave early, loops within loops with lengths of their own, breaks and continues.

__device__ __noinline__ int search(const int* values, int count, int wanted)
{
    for (int i = 0; i < count; i++) {
        if (values[i] == wanted) {
            return i;
        }
        if (values[i] < 0) {
            return -2;
        }
    }
    return -1;
}

extern "C" __global__ void early_exits(const int* values, int length, int* out, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) {
        return;
    }
    if (i % 7 == 3) {
        out[i] = -100;
        return;
    }
    int index = search(values, length, i);
    if (index < 0) {
        out[i] = index;
        return;
    }
    for (int j = 0; j < index; j++) {
        if ((j * i) % 17 == 16) {
            out[i] = -j - 1000;
            return;
        }
    }
    out[i] = index;
}

extern "C" __global__ void nested_loops(const int* limits, int* out, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) {
        return;
    }
    int sum = 0;
    for (int a = 0; a < limits[i]; a++) {
        int b = a;
        while (true) {
            b = (b * 7 + i) % 31;
            if (b == 5) {
                break;
            }
            if (b % 2) {
                sum += b;
                if (sum > 5000) {
                    goto done;
                }
                continue;
            }
            sum++;
            if (b > a + 3) {
                break;
            }
            b++;
            if (sum % 13 == 0) {
                break;
            }
        }
        sum += __popc(a ^ i);
        do {
            sum += 2;
        } while (sum % 5 > i % 5);
    }
done:
    out[i] = sum;
}

// The lanes that took the two sides meet again before the shuffle.
extern "C" __global__ void meet_again(const int* values, int* out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int value = values[i];
    if (value & 1) {
        for (int j = 0; j < (value & 15); j++) {
            value = value * 3 + j;
        }
    } else {
        value = -value;
    }
    __syncwarp();
    out[i] = __shfl_xor_sync(0xffffffffu, value, 1) + value;
}

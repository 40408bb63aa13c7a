// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_90
// The best value of each weight up to a limit: one row of the table per item, two rows in shared memory.

extern "C" __global__ void knapsack(const int* weights, const int* values, int items, int limit, int* best)
{
    extern __shared__ int rows[];
    int* now = rows;
    int* next = rows + limit + 1;
    weights += blockIdx.x * items;
    values += blockIdx.x * items;
    for (int weight = threadIdx.x; weight <= limit; weight += blockDim.x) {
        now[weight] = 0;
    }
    __syncthreads();
    for (int item = 0; item < items; item++) {
        int own_weight = weights[item];
        int own_value = values[item];
        for (int weight = threadIdx.x; weight <= limit; weight += blockDim.x) {
            int value = now[weight];
            if (weight >= own_weight) {
                value = max(value, now[weight - own_weight] + own_value);
            }
            next[weight] = value;
        }
        __syncthreads();
        int* other = now;
        now = next;
        next = other;
    }
    for (int weight = threadIdx.x; weight <= limit; weight += blockDim.x) {
        best[blockIdx.x * (limit + 1) + weight] = now[weight];
    }
}

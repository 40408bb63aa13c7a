// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_90
// Memory taken from the heap of the device: a linked list per thread, and a block shared by all threads of a block.

struct Link {
    int value;
    Link* next;
};

extern "C" __global__ void linked_lists(const int* lengths, long long* sums, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) {
        return;
    }
    Link* head = nullptr;
    for (int j = 0; j < lengths[i]; j++) {
        Link* link = (Link*)malloc(sizeof(Link));
        link->value = i * j + 1;
        link->next = head;
        head = link;
    }
    long long sum = 0;
    long long weight = 1;
    while (head) {
        sum += weight * head->value;
        weight++;
        Link* next = head->next;
        free(head);
        head = next;
    }
    sums[i] = sum;
}

extern "C" __global__ void shared_allocation(int* out)
{
    __shared__ int* memory;
    if (threadIdx.x == 0) {
        memory = (int*)malloc(blockDim.x * sizeof(int));
    }
    __syncthreads();
    memory[threadIdx.x] = threadIdx.x * 3 + blockIdx.x;
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = memory[blockDim.x - 1 - threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {
        free(memory);
    }
}

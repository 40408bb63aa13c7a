// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_80 sm_90
// Each thread sorts a list of its own: once by recursion, once with a stack of its own in local memory.

__device__ int partition(int* list, int low, int high)
{
    int pivot = list[(low + high) / 2];
    while (true) {
        while (list[low] < pivot) {
            low++;
        }
        while (list[high] > pivot) {
            high--;
        }
        if (low >= high) {
            return high;
        }
        int value = list[low];
        list[low++] = list[high];
        list[high--] = value;
    }
}

__device__ __noinline__ void sort_recursive(int* list, int low, int high)
{
    if (low < high) {
        int middle = partition(list, low, high);
        sort_recursive(list, low, middle);
        sort_recursive(list, middle + 1, high);
    }
}

extern "C" __global__ void quicksort_recursive(int* lists, int length, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        sort_recursive(lists + i * length, 0, length - 1);
    }
}

extern "C" __global__ void quicksort_stack(int* lists, int length, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) {
        return;
    }
    int* list = lists + i * length;
    int2 stack[32];
    int depth = 0;
    stack[depth++] = make_int2(0, length - 1);
    while (depth > 0) {
        int2 range = stack[--depth];
        while (range.x < range.y) {
            int middle = partition(list, range.x, range.y);
            if (middle - range.x < range.y - middle) {
                stack[depth++] = make_int2(middle + 1, range.y);
                range.y = middle;
            } else {
                stack[depth++] = make_int2(range.x, middle);
                range.x = middle + 1;
            }
        }
    }
}

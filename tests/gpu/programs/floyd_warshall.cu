// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_90
// All shortest paths of a small graph in one block: shared memory, one round per node on the way.

extern "C" __global__ void floyd_warshall(int* distances, int n)
{
    extern __shared__ int table[];
    int* own = distances + blockIdx.x * n * n;
    int cells = n * n;
    for (int cell = threadIdx.x; cell < cells; cell += blockDim.x) {
        table[cell] = own[cell];
    }
    __syncthreads();
    for (int via = 0; via < n; via++) {
        for (int cell = threadIdx.x; cell < cells; cell += blockDim.x) {
            int from = cell / n;
            int to = cell % n;
            int length = table[from * n + via] + table[via * n + to];
            if (length < table[cell]) {
                table[cell] = length;
            }
        }
        __syncthreads();
    }
    for (int cell = threadIdx.x; cell < cells; cell += blockDim.x) {
        own[cell] = table[cell];
    }
}

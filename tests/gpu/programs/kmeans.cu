// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_80 sm_90
// Each point goes to the nearest of a few centres in four dimensions, and adds itself to that cluster.

extern "C" __global__ void kmeans_assign(const float* points, const float* centres, int* nearest, float* sums, int* sizes,
                                         int count, int clusters)
{
    extern __shared__ float own_centres[];
    for (int i = threadIdx.x; i < clusters * 4; i += blockDim.x) {
        own_centres[i] = centres[i];
    }
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) {
        return;
    }
    float point[4];
    for (int axis = 0; axis < 4; axis++) {
        point[axis] = points[axis * count + i];
    }
    int best = 0;
    float best_distance = 3.0e38f;
    for (int cluster = 0; cluster < clusters; cluster++) {
        float distance = 0;
        for (int axis = 0; axis < 4; axis++) {
            float difference = point[axis] - own_centres[cluster * 4 + axis];
            distance += difference * difference;
        }
        if (distance < best_distance) {
            best_distance = distance;
            best = cluster;
        }
    }
    nearest[i] = best;
    for (int axis = 0; axis < 4; axis++) {
        atomicAdd(&sums[best * 4 + axis], point[axis]);
    }
    atomicAdd(&sizes[best], 1);
}

// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_80 sm_90
// Gravity between all pairs of bodies; each block stages the others in tiles of its own size.

extern "C" __global__ void nbody_forces(const float4* bodies, float3* accelerations, int count, float softening)
{
    extern __shared__ float4 tile[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 own = i < count ? bodies[i] : make_float4(0, 0, 0, 0);
    float3 sum = make_float3(0, 0, 0);
    for (int base = 0; base < count; base += blockDim.x) {
        int other = base + threadIdx.x;
        tile[threadIdx.x] = other < count ? bodies[other] : make_float4(0, 0, 0, 0);
        __syncthreads();
#pragma unroll 4
        for (int j = 0; j < blockDim.x; j++) {
            float4 body = tile[j];
            float x = body.x - own.x;
            float y = body.y - own.y;
            float z = body.z - own.z;
            float squared = x * x + y * y + z * z + softening;
            float inverse = rsqrtf(squared);
            float factor = body.w * inverse * inverse * inverse;
            sum.x += x * factor;
            sum.y += y * factor;
            sum.z += z * factor;
        }
        __syncthreads();
    }
    if (i < count) {
        accelerations[i] = sum;
    }
}

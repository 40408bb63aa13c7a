// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_90
// Reads through texture objects: by index, by point, and interpolated, in one, two and three dimensions.

extern "C" __global__ void fetch_1d(cudaTextureObject_t texture, float* out, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        out[i] = tex1Dfetch<float>(texture, count - 1 - i);
    }
}

extern "C" __global__ void fetch_int4(cudaTextureObject_t texture, int4* out, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        out[i] = tex1Dfetch<int4>(texture, i);
    }
}

extern "C" __global__ void sample_1d(cudaTextureObject_t texture, const float* x, float* out, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        out[i] = tex1D<float>(texture, x[i]);
    }
}

extern "C" __global__ void sample_2d(cudaTextureObject_t texture, const float* x, const float* y, float* out, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        out[i] = tex2D<float>(texture, x[i], y[i]);
    }
}

extern "C" __global__ void sample_colours(cudaTextureObject_t texture, const float* x, const float* y, float4* out, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        out[i] = tex2D<float4>(texture, x[i], y[i]);
    }
}

extern "C" __global__ void sample_3d(cudaTextureObject_t texture, const float* x, const float* y, const float* z, float* out,
                                     int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        out[i] = tex3D<float>(texture, x[i], y[i], z[i]);
    }
}

// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_80 sm_90
// Neighbours in one, two and three dimensions; the border keeps its values.

constexpr int radius = 3;

extern "C" __global__ void stencil_1d(const float* in, float* out, int count)
{
    __shared__ float tile[128 + 2 * radius];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int local = threadIdx.x + radius;
    tile[local] = i < count ? in[i] : 0.0f;
    if (threadIdx.x < radius) {
        tile[threadIdx.x] = i >= radius ? in[i - radius] : 0.0f;
        int right = i + blockDim.x;
        tile[local + blockDim.x] = right < count ? in[right] : 0.0f;
    }
    __syncthreads();
    if (i < count) {
        float sum = 0;
        for (int offset = -radius; offset <= radius; offset++) {
            sum += tile[local + offset];
        }
        out[i] = sum / (2 * radius + 1);
    }
}

extern "C" __global__ void stencil_2d(const double* in, double* out, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) {
        return;
    }
    int at = y * width + x;
    if (x == 0 || y == 0 || x == width - 1 || y == height - 1) {
        out[at] = in[at];
        return;
    }
    out[at] = 0.5 * in[at] + 0.125 * (in[at - 1] + in[at + 1] + in[at - width] + in[at + width]);
}

extern "C" __global__ void stencil_3d(const int* in, int* out, int width, int height, int depth)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x >= width || y >= height || z >= depth) {
        return;
    }
    int plane = width * height;
    int at = z * plane + y * width + x;
    int result = in[at];
    if (x > 0 && y > 0 && z > 0 && x + 1 < width && y + 1 < height && z + 1 < depth) {
        result = 6 * in[at] - in[at - 1] - in[at + 1] - in[at - width] - in[at + width] - in[at - plane] - in[at + plane];
    }
    out[at] = result;
}

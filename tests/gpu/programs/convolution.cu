// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_100
// A filter in constant memory over an image: all at once, and separated into rows with an unrolled loop.

constexpr int radius = 2;
constexpr int taps = 2 * radius + 1;

__constant__ float filter[taps * taps];

extern "C" __global__ void convolution(const float* image, float* out, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) {
        return;
    }
    float sum = 0;
    for (int row = -radius; row <= radius; row++) {
        for (int column = -radius; column <= radius; column++) {
            int from_x = min(max(x + column, 0), width - 1);
            int from_y = min(max(y + row, 0), height - 1);
            sum += filter[(row + radius) * taps + column + radius] * image[from_y * width + from_x];
        }
    }
    out[y * width + x] = sum;
}

extern "C" __global__ void convolution_rows(const float* image, float* out, int width)
{
    __shared__ float line[128 + 2 * radius];
    const float* row = image + blockIdx.y * width;
    int x = blockIdx.x * 128 + threadIdx.x;
    for (int i = threadIdx.x; i < 128 + 2 * radius; i += blockDim.x) {
        int from = (int)(blockIdx.x * 128) + i - radius;
        line[i] = from >= 0 && from < width ? row[from] : 0.0f;
    }
    __syncthreads();
    if (x < width) {
        float sum = 0;
#pragma unroll
        for (int i = 0; i < taps; i++) {
            sum += filter[i] * line[threadIdx.x + i];
        }
        out[blockIdx.y * width + x] = sum;
    }
}

// SPDX-License-Identifier: Apache-2.0
// Removes speckle from an image by diffusion that edges hold up: tiles of 16 x 16.

constexpr int kTile = 16;

// Differences to the four neighbours, and how much may flow.
extern "C" __global__ void coefficients(const float* image, float* north, float* south, float* west, float* east,
                                        float* flow, int rows, int columns, float variation)
{
    __shared__ float tile[kTile][kTile];
    const int x = threadIdx.x;
    const int y = threadIdx.y;
    const int column = blockIdx.x * kTile + x;
    const int row = blockIdx.y * kTile + y;
    const int here = row * columns + column;
    const float mine = image[here];
    tile[y][x] = mine;
    __syncthreads();
    // Beyond the edge of the image a point is its own neighbour; neighbours in other tiles come from memory.
    const float up = row == 0 ? mine : y == 0 ? image[here - columns] : tile[y - 1][x];
    const float down = row == rows - 1 ? mine : y == kTile - 1 ? image[here + columns] : tile[y + 1][x];
    const float left = column == 0 ? mine : x == 0 ? image[here - 1] : tile[y][x - 1];
    const float right = column == columns - 1 ? mine : x == kTile - 1 ? image[here + 1] : tile[y][x + 1];
    const float n = up - mine;
    const float s = down - mine;
    const float w = left - mine;
    const float e = right - mine;
    const float gradient = (n * n + s * s + w * w + e * e) / (mine * mine);
    const float laplacian = (n + s + w + e) / mine;
    const float scale = 1.0f + 0.25f * laplacian;
    const float local = (0.5f * gradient - laplacian * laplacian / 16.0f) / (scale * scale);
    const float coefficient = 1.0f / (1.0f + (local - variation) / (variation * (1.0f + variation)));
    north[here] = n;
    south[here] = s;
    west[here] = w;
    east[here] = e;
    flow[here] = fminf(fmaxf(coefficient, 0.0f), 1.0f);
}

// The image after one step.
extern "C" __global__ void diffuse(float* image, const float* north, const float* south, const float* west,
                                   const float* east, const float* flow, int rows, int columns, float rate)
{
    __shared__ float tile[kTile][kTile];
    const int x = threadIdx.x;
    const int y = threadIdx.y;
    const int column = blockIdx.x * kTile + x;
    const int row = blockIdx.y * kTile + y;
    const int here = row * columns + column;
    const float mine = flow[here];
    tile[y][x] = mine;
    __syncthreads();
    const float below = row == rows - 1 ? mine : y == kTile - 1 ? flow[here + columns] : tile[y + 1][x];
    const float right = column == columns - 1 ? mine : x == kTile - 1 ? flow[here + 1] : tile[y][x + 1];
    const float divergence =
        mine * north[here] + below * south[here] + mine * west[here] + right * east[here];
    image[here] += 0.25f * rate * divergence;
}

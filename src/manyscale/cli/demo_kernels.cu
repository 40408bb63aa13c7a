// SPDX-License-Identifier: Apache-2.0
// The kernels of `manyscale demo`; tools/demo_kernels.py stores their PTX beside this file.

constexpr int TILE = 32, ROWS = 8;

// out = in^T: the lanes of a warp write n floats apart.
extern "C" __global__ void transpose(const float* in, float* out, int n) {
  const int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
  for (int i = 0; i < TILE; i += ROWS) out[x * n + y + i] = in[(y + i) * n + x];
}

// The same through a tile in shared memory: the lanes read a column of the tile, which is in one bank.
extern "C" __global__ void transpose_tile(const float* in, float* out, int n) {
  __shared__ float tile[TILE][TILE];
  int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
  for (int i = 0; i < TILE; i += ROWS) tile[threadIdx.y + i][threadIdx.x] = in[(y + i) * n + x];
  __syncthreads();
  x = blockIdx.y * TILE + threadIdx.x;
  y = blockIdx.x * TILE + threadIdx.y;
  for (int i = 0; i < TILE; i += ROWS) out[(y + i) * n + x] = tile[threadIdx.x][threadIdx.y + i];
}

// The same with a word after each row of the tile, so that a column is in all banks.
extern "C" __global__ void transpose_padded(const float* in, float* out, int n) {
  __shared__ float tile[TILE][TILE + 1];
  int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
  for (int i = 0; i < TILE; i += ROWS) tile[threadIdx.y + i][threadIdx.x] = in[(y + i) * n + x];
  __syncthreads();
  x = blockIdx.y * TILE + threadIdx.x;
  y = blockIdx.x * TILE + threadIdx.y;
  for (int i = 0; i < TILE; i += ROWS) out[(y + i) * n + x] = tile[threadIdx.x][threadIdx.y + i];
}

// c = a b for square matrices, in tiles of 16 x 16.
extern "C" __global__ void multiply(const float* a, const float* b, float* c, int n) {
  constexpr int EDGE = 16;
  __shared__ float left[EDGE][EDGE], right[EDGE][EDGE];
  const int x = blockIdx.x * EDGE + threadIdx.x, y = blockIdx.y * EDGE + threadIdx.y;
  float sum = 0;
  for (int k = 0; k < n; k += EDGE) {
    left[threadIdx.y][threadIdx.x] = a[y * n + k + threadIdx.x];
    right[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + x];
    __syncthreads();
    for (int i = 0; i < EDGE; ++i) sum += left[threadIdx.y][i] * right[i][threadIdx.x];
    __syncthreads();
  }
  c[y * n + x] = sum;
}

// A step of gradient descent.
extern "C" __global__ void descend(float* weights, const float* gradients, float rate) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  weights[i] -= rate * gradients[i];
}

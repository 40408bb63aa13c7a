// SPDX-License-Identifier: Apache-2.0
// The kernels of a training step of a network of fully connected layers: values are rows of images, weights are
// [outputs][inputs]. Matrix products go through tiles of 16 x 16 in shared memory. What the layers cut off is zero, and
// products skip tiles in which all errors are zero, so times depend on the data.

constexpr int tile = 16;

// to[image][output] = max(0, sum over inputs of weights[output][input] * from[image][input]); the last layer keeps
// what is negative.
extern "C" __global__ void forward(const float* weights, const float* from, float* to, int inputs, int outputs,
                                   int last) {
  __shared__ float left[tile][tile + 1], right[tile][tile + 1];
  const int x = threadIdx.x, y = threadIdx.y;
  const int output = blockIdx.x * tile + x, image = blockIdx.y * tile + y;
  float sum = 0.0f;
  for (int first = 0; first < inputs; first += tile) {
    left[y][x] = from[image * inputs + first + x];
    right[y][x] = weights[(blockIdx.x * tile + y) * inputs + first + x];
    __syncthreads();
    for (int step = 0; step < tile; ++step) sum += left[y][step] * right[x][step];
    __syncthreads();
  }
  to[image * outputs + output] = last ? sum : fmaxf(sum, 0.0f);
}

// errors[image][output] = (values - wanted) / images
extern "C" __global__ void loss(const float* values, const float* wanted, float* errors, float scale) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  errors[index] = (values[index] - wanted[index]) * scale;
}

// before[image][input] = sum over outputs of errors[image][output] * weights[output][input], where the input was not
// cut off.
extern "C" __global__ void backward_values(const float* weights, const float* errors, const float* from, float* before,
                                           int inputs, int outputs) {
  __shared__ float left[tile][tile + 1], right[tile][tile + 1];
  const int x = threadIdx.x, y = threadIdx.y;
  const int input = blockIdx.x * tile + x, image = blockIdx.y * tile + y;
  float sum = 0.0f;
  for (int first = 0; first < outputs; first += tile) {
    const float error = errors[image * outputs + first + x];
    left[y][x] = error;
    right[y][x] = weights[(first + y) * inputs + input];
    if (__syncthreads_or(error != 0.0f))
      for (int step = 0; step < tile; ++step) sum += left[y][step] * right[step][x];
    __syncthreads();
  }
  before[image * inputs + input] = from[image * inputs + input] > 0.0f ? sum : 0.0f;
}

// gradients[output][input] = sum over images of errors[image][output] * from[image][input]
extern "C" __global__ void backward_weights(const float* errors, const float* from, float* gradients, int images,
                                            int inputs, int outputs) {
  __shared__ float left[tile][tile + 1], right[tile][tile + 1];
  const int x = threadIdx.x, y = threadIdx.y;
  const int input = blockIdx.x * tile + x, output = blockIdx.y * tile + y;
  float sum = 0.0f;
  for (int first = 0; first < images; first += tile) {
    const float error = errors[(first + y) * outputs + blockIdx.y * tile + x];
    left[y][x] = error;
    right[y][x] = from[(first + y) * inputs + input];
    if (__syncthreads_or(error != 0.0f))
      for (int step = 0; step < tile; ++step) sum += left[step][y] * right[step][x];
    __syncthreads();
  }
  gradients[output * inputs + input] = sum;
}

extern "C" __global__ void update(float* weights, const float* gradients, float rate) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  weights[index] -= rate * gradients[index];
}

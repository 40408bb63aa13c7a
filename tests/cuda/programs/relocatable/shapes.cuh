// SPDX-License-Identifier: Apache-2.0
// Device code and a device variable that another file defines.
#pragma once

struct Shape {
  float width;
  float height;
};

extern __device__ float density;
extern __constant__ float factors[4];
__device__ float weight(const Shape& shape);
__global__ void double_density();
void launch_double_density();

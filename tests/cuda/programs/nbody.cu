// SPDX-License-Identifier: Apache-2.0
// Bodies that attract each other, in tiles of shared memory; momentum is conserved and the host agrees.
#include "check.hpp"

constexpr int kBlock = 64;
constexpr float kSoftening = 0.01f;

__global__ void accelerate(const float4* bodies, float3* velocities, int n, float dt) {
  __shared__ float4 tile[kBlock];
  const int i = blockIdx.x * kBlock + threadIdx.x;
  const float4 me = bodies[i];
  float3 a = make_float3(0, 0, 0);
  for (int first = 0; first < n; first += kBlock) {
    tile[threadIdx.x] = bodies[first + threadIdx.x];
    __syncthreads();
    for (int k = 0; k < kBlock; ++k) {
      const float4 other = tile[k];
      const float dx = other.x - me.x, dy = other.y - me.y, dz = other.z - me.z;
      const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + kSoftening);
      const float s = other.w * inverse * inverse * inverse;
      a.x += dx * s, a.y += dy * s, a.z += dz * s;
    }
    __syncthreads();
  }
  velocities[i].x += a.x * dt, velocities[i].y += a.y * dt, velocities[i].z += a.z * dt;
}

__global__ void move(float4* bodies, const float3* velocities, float dt) {
  const int i = blockIdx.x * kBlock + threadIdx.x;
  bodies[i].x += velocities[i].x * dt, bodies[i].y += velocities[i].y * dt,
      bodies[i].z += velocities[i].z * dt;
}

int main() {
  const int n = 3 * kBlock;
  const float dt = 0.01f;
  Random random;
  std::vector<float4> bodies(n);
  std::vector<float3> velocities(n, float3{0, 0, 0});
  for (float4& body : bodies) body = {random.unit(), random.unit(), random.unit(), 1 + random.unit()};
  float4* db = to_device(bodies);
  float3* dv = to_device(velocities);
  for (int step = 0; step < 2; ++step) {
    accelerate<<<n / kBlock, kBlock>>>(db, dv, n, dt);
    move<<<n / kBlock, kBlock>>>(db, dv, dt);
    for (int i = 0; i < n; ++i) {
      double ax = 0, ay = 0, az = 0;
      for (int k = 0; k < n; ++k) {
        const double dx = bodies[k].x - bodies[i].x, dy = bodies[k].y - bodies[i].y;
        const double dz = bodies[k].z - bodies[i].z;
        const double s = bodies[k].w / std::pow(dx * dx + dy * dy + dz * dz + kSoftening, 1.5);
        ax += dx * s, ay += dy * s, az += dz * s;
      }
      velocities[i].x += float(ax) * dt, velocities[i].y += float(ay) * dt, velocities[i].z += float(az) * dt;
    }
    for (int i = 0; i < n; ++i) {
      bodies[i].x += velocities[i].x * dt;
      bodies[i].y += velocities[i].y * dt;
      bodies[i].z += velocities[i].z * dt;
    }
  }
  const std::vector<float4> got = from_device(db, n);
  const std::vector<float3> speeds = from_device(dv, n);
  double momentum = 0, size = 0;
  for (int i = 0; i < n; ++i) {
    expect_near(got[i].x, bodies[i].x, 1e-4);
    expect_near(speeds[i].z, velocities[i].z, 1e-3);
    momentum += bodies[i].w * speeds[i].y;
    size += std::fabs(bodies[i].w * speeds[i].y);
  }
  expect(std::fabs(momentum) < 1e-4 * size);
  return verdict();
}

// SPDX-License-Identifier: Apache-2.0
// What the programs share: calls that must succeed, conditions that must hold, and the verdict at the end.
#pragma once

#include <cuda_runtime.h>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

// Each program counts what did not hold, and ends with 1 if anything did not.
inline int failures = 0;

// A sum over the bits of all values that a program takes from a device or compares. It does not depend on the
// order, which threads of the host may change. The program prints it at its end, and must print the same
// whether its kernels run as PTX or as SASS, with time or without.
inline std::atomic<unsigned long long> digest{0};

inline void note_values(const void* values, size_t bytes) {
  unsigned long long hash = 14695981039346656037ull;  // FNV-1a
  for (size_t i = 0; i < bytes; ++i)
    hash = (hash ^ static_cast<const unsigned char*>(values)[i]) * 1099511628211ull;
  digest += hash;
}

// Ends the program if a call of the runtime failed.
inline void must(cudaError_t error, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (error == cudaSuccess) return;
  std::printf("%s:%d: %s: %s\n", file, line, cudaGetErrorName(error), cudaGetErrorString(error));
  std::exit(1);
}

// Notes a condition that does not hold.
inline void expect(bool holds, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (holds) return;
  if (++failures <= 10) std::printf("%s:%d: does not hold\n", file, line);
}

// Notes a call that did not return what it must.
inline void expect_error(cudaError_t got, cudaError_t wanted, const char* file = __builtin_FILE(),
                         int line = __builtin_LINE()) {
  if (got == wanted) return;
  ++failures;
  std::printf("%s:%d: %s instead of %s\n", file, line, cudaGetErrorName(got), cudaGetErrorName(wanted));
}

// Notes a number that is further from the wanted one than `tolerance`, relative to the wanted one if that is
// above 1.
inline void expect_near(double got, double wanted, double tolerance, const char* file = __builtin_FILE(),
                        int line = __builtin_LINE()) {
  note_values(&got, sizeof(got));
  if (std::fabs(got - wanted) <= tolerance * std::fmax(1.0, std::fabs(wanted))) return;
  if (++failures <= 10) std::printf("%s:%d: %.9g instead of %.9g\n", file, line, got, wanted);
}

// Notes the first difference of two arrays.
template <typename T>
void expect_same(const std::vector<T>& got, const std::vector<T>& wanted, const char* file = __builtin_FILE(),
                 int line = __builtin_LINE()) {
  note_values(got.data(), got.size() * sizeof(T));
  expect(got.size() == wanted.size(), file, line);
  for (size_t i = 0; i < got.size() && i < wanted.size(); ++i) {
    if (got[i] == wanted[i]) continue;
    ++failures;
    std::printf("%s:%d: [%zu] is %.9g instead of %.9g\n", file, line, i, double(got[i]), double(wanted[i]));
    return;
  }
}

// What `main` returns.
inline int verdict() {
  std::printf("values %016llx\n", digest.load());
  if (failures)
    std::printf("%d checks failed\n", failures);
  else
    std::puts("ok");
  return failures ? 1 : 0;
}

// A copy of an array in device memory.
template <typename T>
T* to_device(const std::vector<T>& values) {
  T* device = nullptr;
  must(cudaMalloc(&device, values.size() * sizeof(T)));
  must(cudaMemcpy(device, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return device;
}

// Device memory filled with zeros.
template <typename T>
T* device_zeros(size_t count) {
  T* device = nullptr;
  must(cudaMalloc(&device, count * sizeof(T)));
  must(cudaMemset(device, 0, count * sizeof(T)));
  return device;
}

// A copy of an array in host memory.
template <typename T>
std::vector<T> from_device(const T* device, size_t count) {
  std::vector<T> values(count);
  must(cudaMemcpy(values.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost));
  note_values(values.data(), count * sizeof(T));
  return values;
}

// The same of an array whose order is that of the kernel's threads in time.
template <typename T>
std::vector<T> sorted_from_device(const T* device, size_t count) {
  std::vector<T> values(count);
  must(cudaMemcpy(values.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost));
  std::sort(values.begin(), values.end());
  note_values(values.data(), count * sizeof(T));
  return values;
}

// The same numbers in every run (a linear congruential generator).
class Random {
 public:
  unsigned next() {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return unsigned(state_ >> 32);
  }
  unsigned below(unsigned limit) { return next() % limit; }
  float unit() { return float(next() >> 8) / float(1 << 24); }

 private:
  unsigned long long state_ = 42;
};

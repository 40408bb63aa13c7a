// SPDX-License-Identifier: Apache-2.0
// What nodes of a graph are made of, as CUDA's runtime takes it.
#pragma once
#include "cuda.hpp"

struct KernelNode {
  const void* function;
  Dim3 grid, block;
  unsigned shared;
  void** arguments;
  void** extra;
};

struct FillNode {
  void* target;
  std::size_t pitch;
  unsigned value, element;
  std::size_t width, rows;
};

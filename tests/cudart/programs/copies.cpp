// SPDX-License-Identifier: Apache-2.0
// Copies in all shapes and directions, against plain loops on the host.
#include <numeric>

#include "cuda.hpp"

namespace {

std::vector<int> numbers(std::size_t count, int first) {
  std::vector<int> made(count);
  std::iota(made.begin(), made.end(), first);
  return made;
}

void flat() {
  const auto given = numbers(1000, 5);
  int *a = nullptr, *b = nullptr, *pinned = nullptr;
  MUST(cudaMalloc(&a, 4000));
  MUST(cudaMalloc(&b, 4000));
  MUST(cudaHostAlloc(&pinned, 4000, 0));
  MUST(cudaMemcpy(a, given.data(), 4000, any_direction));
  MUST(cudaMemcpy(b, a, 4000, on_device));
  MUST(cudaMemcpy(pinned, b, 4000, to_host));
  EXPECT(std::memcmp(pinned, given.data(), 4000) == 0);
  MUST(cudaMemcpyPeer(a, 0, b + 500, 0, 2000));
  EXPECT(fetch(a, 1)[0] == 505);
  MUST(cudaMemcpyAsync(a, pinned, 4000, to_device, nullptr));
  EXPECT(fetch(a, 1000) == given);
  std::vector<int> other(1000);
  MUST(cudaMemcpy(other.data(), given.data(), 4000, any_direction));
  EXPECT(other == given);
  GIVES(1, cudaMemcpy(other.data(), given.data(), 4000, to_device));
  GIVES(1, cudaMemcpy(a, b, 4000, to_device));
  GIVES(1, cudaMemcpy(a, given.data(), 4004, to_device));
  GIVES(1, cudaMemcpy(nullptr, a, 4, to_host));
  GIVES(21, cudaMemcpy(a, b, 4, 9));
  MUST(cudaMemcpy(nullptr, nullptr, 0, to_host));
  EXPECT(cudaGetLastError() == 21 && cudaGetLastError() == 0);
  MUST(cudaFree(a));
  MUST(cudaFree(b));
  MUST(cudaFreeHost(pinned));
}

void rows() {
  constexpr std::size_t width = 37, height = 11;
  const auto given = numbers(width * height, 0);
  int* device = nullptr;
  std::size_t pitch = 0;
  MUST(cudaMallocPitch(&device, &pitch, width * 4, height));
  EXPECT(pitch >= width * 4 && pitch % 32 == 0);
  MUST(cudaMemset2D(device, pitch, 0xff, width * 4, height));
  MUST(cudaMemcpy2D(device, pitch, given.data(), width * 4, 20 * 4, height, to_device));
  std::vector<int> back(width * height);
  MUST(cudaMemcpy2D(back.data(), width * 4, device, pitch, width * 4, height, to_host));
  for (std::size_t y = 0; y < height; ++y)
    for (std::size_t x = 0; x < width; ++x)
      EXPECT(back[y * width + x] == (x < 20 ? given[y * width + x] : -1));
  GIVES(12, cudaMemcpy2D(back.data(), 8, device, pitch, 16, height, to_host));
  cudaGetLastError();
  MUST(cudaFree(device));
}

void volumes() {
  const Extent extent{12 * 4, 5, 3};
  const auto given = numbers(12 * 5 * 3, 100);
  Pitched device{};
  MUST(cudaMalloc3D(&device, extent));
  MUST(cudaMemset3D(device, 0, extent));
  Copy3D copy{};
  copy.source = {const_cast<int*>(given.data()), 12 * 4, 12, 5};
  copy.target = device;
  copy.extent = extent;
  copy.kind = to_device;
  MUST(cudaMemcpy3D(&copy));
  // A part of it: 4 x 3 x 2 from (2, 1, 1).
  std::vector<int> part(4 * 3 * 2);
  Copy3D back{};
  back.source = device;
  back.source_position = {2 * 4, 1, 1};
  back.target = {part.data(), 4 * 4, 4, 3};
  back.extent = {4 * 4, 3, 2};
  back.kind = to_host;
  MUST(cudaMemcpy3D(&back));
  for (std::size_t z = 0; z < 2; ++z)
    for (std::size_t y = 0; y < 3; ++y)
      for (std::size_t x = 0; x < 4; ++x)
        EXPECT(part[(z * 3 + y) * 4 + x] == given[((z + 1) * 5 + y + 1) * 12 + x + 2]);
  MUST(cudaFree(device.pointer));
}

void arrays() {
  const Format format{32, 0, 0, 0, 0};
  constexpr std::size_t width = 10, height = 6;
  const auto given = numbers(width * height, 1);
  void* array = nullptr;
  MUST(cudaMallocArray(&array, &format, width, height, 0));
  MUST(cudaMemcpy2DToArray(array, 0, 0, given.data(), width * 4, width * 4, height, to_device));
  std::vector<int> back(4 * 2);
  MUST(cudaMemcpy2DFromArray(back.data(), 16, array, 3 * 4, 2, 16, 2, to_host));
  for (std::size_t y = 0; y < 2; ++y)
    for (std::size_t x = 0; x < 4; ++x) EXPECT(back[y * 4 + x] == given[(y + 2) * width + x + 3]);
  // Bytes that begin in the middle of a row and go on in the next ones.
  const auto run = numbers(25, 1000);
  MUST(cudaMemcpyToArray(array, 4 * 4, 1, run.data(), run.size() * 4, to_device));
  std::vector<int> all(width * height);
  MUST(cudaMemcpy2DFromArray(all.data(), width * 4, array, 0, 0, width * 4, height, to_host));
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT(all[i] == (i >= 14 && i < 39 ? run[i - 14] : given[i]));
  GIVES(1, cudaMemcpy2DToArray(array, 4, 0, given.data(), width * 4, width * 4, 1, to_device));
  cudaGetLastError();
  void* volume = nullptr;
  MUST(cudaMalloc3DArray(&volume, &format, {4, 3, 2}, 0));
  Copy3D copy{};
  copy.source = {const_cast<int*>(given.data()), 16, 4, 3};
  copy.target_array = volume;
  copy.extent = {4, 3, 2};
  copy.kind = to_device;
  MUST(cudaMemcpy3D(&copy));
  std::vector<int> slice(4 * 3);
  Copy3D back3{};
  back3.source_array = volume;
  back3.source_position = {0, 0, 1};
  back3.target = {slice.data(), 16, 4, 3};
  back3.extent = {4, 3, 1};
  back3.kind = to_host;
  MUST(cudaMemcpy3D(&back3));
  EXPECT(std::equal(slice.begin(), slice.end(), given.begin() + 12));
  MUST(cudaFreeArray(volume));
  MUST(cudaFreeArray(array));
  GIVES(400, cudaFreeArray(array));
  cudaGetLastError();
}

void symbols() {
  std::size_t bytes = 0;
  MUST(cudaGetSymbolSize(&bytes, &table_shadow));
  EXPECT(bytes == 64);
  const auto given = numbers(16, 50);
  MUST(cudaMemcpyToSymbol(&table_shadow, given.data(), 64, 0, to_device));
  std::vector<int> back(4);
  MUST(cudaMemcpyFromSymbol(back.data(), &table_shadow, 16, 32, to_host));
  EXPECT(back[0] == 58 && back[3] == 61);
  GIVES(1, cudaMemcpyToSymbol(&table_shadow, given.data(), 64, 4, to_device));
  GIVES(13, cudaMemcpyToSymbol(&back, given.data(), 4, 0, to_device));
  cudaGetLastError();
  const int offset = 40;
  MUST(cudaMemcpyToSymbol(&offset_shadow, &offset, 4, 0, to_device));
  int* values = nullptr;
  MUST(cudaMalloc(&values, 32 * 4));
  void* arguments[] = {&values};
  MUST(cudaLaunchKernel(&fill_stub, {1, 1, 1}, {32, 1, 1}, arguments, 0, nullptr));
  EXPECT(fetch(values, 32) == numbers(32, 40));
  void* address = nullptr;
  MUST(cudaGetSymbolAddress(&address, &offset_shadow));
  EXPECT(fetch(address, 1)[0] == 40);
  MUST(cudaFree(values));
}

}  // namespace

int main() {
  register_program();
  flat();
  rows();
  volumes();
  arrays();
  symbols();
  std::puts("ok");
  return 0;
}

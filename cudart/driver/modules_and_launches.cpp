// SPDX-License-Identifier: Apache-2.0
// Modules, libraries, functions and launches. A module is a library of the runtime (cudaLibrary_t), a
// function a kernel of it.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "../abi.hpp"
#include "contexts.hpp"

using manyscale::cuda_driver::invalid_value;
using manyscale::cuda_driver::not_found;
using manyscale::cuda_driver::not_supported;
using manyscale::cuda_driver::on_device;
using manyscale::cuda_driver::Result;
using manyscale::cuda_driver::runtime;
using manyscale::cuda_driver::success;
using manyscale::cudart::Dim3;
using manyscale::cudart::FunctionAttributes;
using manyscale::cudart::LaunchAttribute;
using manyscale::cudart::LaunchConfiguration;
using manyscale::cudart::Stream;

namespace {

using Address = std::uint64_t;  // CUdeviceptr

// Options of the compiler of PTX and of libraries, which change nothing here.
struct Options {
  const int* names = nullptr;
  void** values = nullptr;
  unsigned count = 0;
};

Result load(void** module, const void* image) {
  if (module == nullptr || image == nullptr) return invalid_value;
  const Options none;
  return runtime("cudaLibraryLoadData", module, image, none.names, none.values, none.count, none.names,
                 none.values, none.count);
}

Result load_file(void** module, const char* path) {
  if (module == nullptr || path == nullptr) return invalid_value;
  const Options none;
  return runtime("cudaLibraryLoadFromFile", module, path, none.names, none.values, none.count, none.names,
                 none.values, none.count);
}

struct FunctionAttributesOfAllVersions {
  FunctionAttributes known;
  char later[256];
};

// By the numbers of CUfunction_attribute.
Result attribute_of(int* value, int number, const void* function) {
  if (value == nullptr) return invalid_value;
  FunctionAttributesOfAllVersions all{};
  const Result error = runtime("cudaFuncGetAttributes", &all, function);
  if (error != success) return error;
  const FunctionAttributes& known = all.known;
  const int values[] = {known.threads,
                        static_cast<int>(known.shared),
                        static_cast<int>(known.constant),
                        static_cast<int>(known.local),
                        known.registers,
                        known.ptx_version,
                        known.binary_version,
                        known.cache_mode,
                        known.dynamic_shared,
                        known.carveout};
  constexpr int clusters = 15;  // the last attribute; those about clusters of blocks are 0
  if (number < 0 || number > clusters) return invalid_value;
  *value = number < static_cast<int>(std::size(values)) ? values[number] : 0;
  return success;
}

// CUlaunchConfig
struct DriverLaunch {
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z;
  unsigned shared;
  Stream* stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};

Result launch_configured(const DriverLaunch* given, void* function, void** arguments, void** extra,
                         const char* with_attributes) {
  if (given == nullptr) return invalid_value;
  const LaunchConfiguration launch{{given->grid_x, given->grid_y, given->grid_z},
                                   {given->block_x, given->block_y, given->block_z},
                                   given->shared,
                                   given->stream,
                                   given->attributes,
                                   given->attribute_count};
  if (extra == nullptr)
    return runtime(with_attributes, &launch, static_cast<const void*>(function), arguments);
  if (given->attribute_count != 0) return not_supported;
  return runtime("__cudaLaunchFunction", function, launch.grid, launch.block, arguments, extra, launch.shared,
                 launch.stream);
}

using SharedOfBlock = std::size_t (*)(int threads);

// The block with which most threads of an SM are used, of those that are whole warps; the largest of them.
Result best_block(int* blocks, int* threads, void* function, SharedOfBlock shared_of, std::size_t shared,
                  int limit) {
  if (blocks == nullptr || threads == nullptr) return invalid_value;
  constexpr int warp = 32, of_sms = 16;
  int most = 0, device = 0, sms = 0, best = 0;
  if (const Result error = attribute_of(&most, 0, function); error != success) return error;
  if (const Result error = runtime("cudaGetDevice", &device); error != success) return error;
  if (const Result error = runtime("cudaDeviceGetAttribute", &sms, of_sms, device); error != success)
    return error;
  if (limit > 0) most = std::min(most, limit);
  for (int size = most; size > 0; size = (size - 1) / warp * warp) {
    int resident = 0;
    const std::size_t bytes = shared_of == nullptr ? shared : shared_of(size);
    const Result error = runtime("cudaOccupancyMaxActiveBlocksPerMultiprocessor", &resident,
                                 static_cast<const void*>(function), size, bytes);
    if (error != success) return error;
    if (resident * size <= best) continue;
    best = resident * size;
    *threads = size;
    *blocks = resident * sms;
  }
  return best == 0 ? invalid_value : success;
}

}  // namespace

extern "C" {

// --- Modules and launches ---

int cuModuleLoadData(void** module, const void* image) {
  return load(module, image);
}

int cuModuleLoadDataEx(void** module, const void* image, unsigned, int*, void**) {
  return load(module, image);
}

int cuModuleLoadFatBinary(void** module, const void* image) {
  return load(module, image);
}

int cuModuleLoad(void** module, const char* path) {
  return load_file(module, path);
}

int cuModuleUnload(void* module) {
  return runtime("cudaLibraryUnload", module);
}

int cuModuleGetFunction(void** function, void* module, const char* name) {
  const Result error = runtime("cudaLibraryGetKernel", function, module, name);
  return error == success || error == invalid_value ? error : not_found;
}

int cuModuleGetGlobal_v2(Address* address, std::size_t* bytes, void* module, const char* name) {
  void* found = nullptr;
  const Result error = runtime("cudaLibraryGetGlobal", &found, bytes, module, name);
  if (error == success && address != nullptr) *address = reinterpret_cast<Address>(found);
  return error == success || error == invalid_value ? error : not_found;
}

int cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared, void* stream, void** arguments,
                   void** extra) {
  return runtime("__cudaLaunchFunction", function, Dim3{grid_x, grid_y, grid_z},
                 Dim3{block_x, block_y, block_z}, arguments, extra, static_cast<std::size_t>(shared), stream);
}

int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void* function, int threads,
                                                std::size_t shared) {
  return runtime("cudaOccupancyMaxActiveBlocksPerMultiprocessor", blocks, static_cast<const void*>(function),
                 threads, shared);
}

int cuLaunchKernel_ptsz(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared, Stream* stream, void** arguments,
                        void** extra) {
  const DriverLaunch launch{grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, nullptr, 0};
  return extra != nullptr
             ? not_supported
             : launch_configured(&launch, function, arguments, nullptr, "cudaLaunchKernelExC_ptsz");
}

int cuLaunchKernelEx(const DriverLaunch* launch, void* function, void** arguments, void** extra) {
  return launch_configured(launch, function, arguments, extra, "cudaLaunchKernelExC");
}

int cuLaunchKernelEx_ptsz(const DriverLaunch* launch, void* function, void** arguments, void** extra) {
  return extra != nullptr
             ? not_supported
             : launch_configured(launch, function, arguments, nullptr, "cudaLaunchKernelExC_ptsz");
}

int cuLaunchCooperativeKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                              unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                              void* stream, void** arguments) {
  return runtime("cudaLaunchCooperativeKernel", static_cast<const void*>(function),
                 Dim3{grid_x, grid_y, grid_z}, Dim3{block_x, block_y, block_z}, arguments,
                 static_cast<std::size_t>(shared), stream);
}

int cuLaunchCooperativeKernel_ptsz(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                   void* stream, void** arguments) {
  return runtime("cudaLaunchCooperativeKernel_ptsz", static_cast<const void*>(function),
                 Dim3{grid_x, grid_y, grid_z}, Dim3{block_x, block_y, block_z}, arguments,
                 static_cast<std::size_t>(shared), stream);
}

// --- Libraries and kernels ---

int cuLibraryLoadData(void** library, const void* code, const int*, void**, unsigned, const int*, void**,
                      unsigned) {
  return load(library, code);
}

int cuLibraryLoadFromFile(void** library, const char* path, const int*, void**, unsigned, const int*, void**,
                          unsigned) {
  return load_file(library, path);
}

int cuLibraryGetKernelCount(unsigned* count, void* library) {
  return runtime("cudaLibraryGetKernelCount", count, library);
}

int cuLibraryEnumerateKernels(void** kernels, unsigned room, void* library) {
  return runtime("cudaLibraryEnumerateKernels", kernels, room, library);
}

int cuModuleGetFunctionCount(unsigned* count, void* module) {
  return runtime("cudaLibraryGetKernelCount", count, module);
}

int cuModuleEnumerateFunctions(void** functions, unsigned room, void* module) {
  return runtime("cudaLibraryEnumerateKernels", functions, room, module);
}

int cuKernelGetLibrary(void** library, void* kernel) {
  return runtime("__cudaFindLibrary", library, static_cast<const void*>(kernel));
}

int cuFuncGetModule(void** module, void* function) {
  return runtime("__cudaFindLibrary", module, static_cast<const void*>(function));
}

int cuLibraryGetModule(void** module, void* library) {
  if (module == nullptr || library == nullptr) return invalid_value;
  *module = library;
  return success;
}

int cuKernelGetFunction(void** function, void* kernel) {
  if (function == nullptr || kernel == nullptr) return invalid_value;
  *function = kernel;
  return success;
}

int cuKernelGetAttribute(int* value, int attribute, void* kernel, int device) {
  return on_device(device, [&] { return attribute_of(value, attribute, kernel); });
}

int cuKernelSetAttribute(int attribute, int value, void* kernel, int device) {
  return runtime("cudaKernelSetAttributeForDevice", kernel, attribute, value, device);
}

int cuFuncGetAttribute(int* value, int attribute, void* function) {
  return attribute_of(value, attribute, function);
}

int cuFuncIsLoaded(int* state, void* function) {
  constexpr int loaded = 1;
  int threads = 0;
  if (state == nullptr) return invalid_value;
  const Result error = attribute_of(&threads, 0, function);
  if (error == success) *state = loaded;
  return error;
}

int cuFuncLoad(void* function) {
  int threads = 0;
  return attribute_of(&threads, 0, function);
}

// --- Occupancy ---

int cuOccupancyMaxPotentialBlockSize(int* blocks, int* threads, void* function, SharedOfBlock shared_of,
                                     std::size_t shared, int limit) {
  return best_block(blocks, threads, function, shared_of, shared, limit);
}

int cuOccupancyMaxPotentialBlockSizeWithFlags(int* blocks, int* threads, void* function,
                                              SharedOfBlock shared_of, std::size_t shared, int limit,
                                              unsigned) {
  return best_block(blocks, threads, function, shared_of, shared, limit);
}

}  // extern "C"

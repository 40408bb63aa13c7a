// SPDX-License-Identifier: Apache-2.0
#include "launch.hpp"

#include <cstring>
#include <limits>
#include <vector>

#include "process.hpp"
#include "registry.hpp"

namespace manyscale::cudart {

namespace {

// Buffers in `extra` are named by these pointers, each followed by its value.
void* const kEndOfExtra = nullptr;
void* const kBufferPointer = reinterpret_cast<void*>(1);
void* const kBufferSize = reinterpret_cast<void*>(2);

void pack_extra(void** extra, std::vector<std::byte>& parameters) {
  const void* buffer = nullptr;
  std::size_t bytes = 0;
  for (; *extra != kEndOfExtra; extra += 2) {
    if (extra[0] == kBufferPointer) buffer = extra[1];
    if (extra[0] == kBufferSize) bytes = *static_cast<const std::size_t*>(extra[1]);
  }
  if (buffer != nullptr) std::memcpy(parameters.data(), buffer, std::min(bytes, parameters.size()));
}

}  // namespace

Error make_launch(const void* function, Dim3 grid, Dim3 block, void** arguments, void** extra,
                  std::size_t shared, std::uint32_t flags, LaunchOperation& made) {
  made.function = find_function(function);
  if (made.function == nullptr) return Error::invalid_device_function;
  const FunctionLayout* layout = nullptr;
  if (const Error error = lay_out(*made.function, layout); error != Error::success) {
    // The server takes a launch of what it cannot execute for a failure that stays.
    if (error != Error::not_supported) return error;
    wire::Launch::Request refused{};
    refused.function = made.function->number;
    return call<wire::Launch>(refused);
  }
  if (shared > std::numeric_limits<std::uint32_t>::max()) return Error::invalid_value;
  made.grid = grid;
  made.block = block;
  made.shared = shared;
  made.flags = flags;
  made.parameters.assign(layout->parameter_bytes, std::byte{0});
  if (layout->parameters.empty()) return Error::success;
  if (arguments != nullptr) {
    for (std::size_t i = 0; i < layout->parameters.size(); ++i) {
      const auto& [offset, bytes] = layout->parameters[i];
      if (arguments[i] == nullptr) return Error::invalid_value;
      std::memcpy(made.parameters.data() + offset, arguments[i], bytes);
    }
  } else if (extra != nullptr) {
    pack_extra(extra, made.parameters);
  } else {
    return Error::invalid_value;
  }
  return Error::success;
}

namespace {

Error launch(const void* function, Dim3 grid, Dim3 block, void** arguments, std::size_t shared,
             Stream* handle, DefaultStream when_null, std::uint32_t flags = 0, void** extra = nullptr) {
  return with_stream(handle, when_null, [&](Stream& stream) {
    LaunchOperation made;
    const Error error = make_launch(function, grid, block, arguments, extra, shared, flags, made);
    return error == Error::success ? enqueue(stream, std::move(made), Wait::no) : error;
  });
}

// The numbers of cudaLaunchAttributeID that change what a launch does.
constexpr unsigned kCooperative = 2;
constexpr unsigned kClusterDimension = 4;

Error launch_configured(const LaunchConfiguration* configuration, const void* function, void** arguments,
                        DefaultStream when_null) {
  if (configuration == nullptr) return Error::invalid_value;
  std::uint32_t flags = 0;
  for (unsigned i = 0; i < configuration->attribute_count; ++i) {
    const LaunchAttribute& attribute = configuration->attributes[i];
    if (attribute.id == kCooperative && attribute.value.cooperative != 0) flags |= wire::kCooperative;
    if (attribute.id == kClusterDimension) {
      const auto& [x, y, z] = attribute.value.cluster;
      if (x * y * z > 1) {
        report_once(
            "launching clusters of thread blocks is not supported; launch without "
            "cudaLaunchAttributeClusterDimension");
        return Error::not_supported;
      }
    }
  }
  return launch(function, configuration->grid, configuration->block, arguments, configuration->shared,
                configuration->stream, when_null, flags);
}

// What stands between <<< and >>>, until the stub of the kernel takes it.
struct CallConfiguration {
  Dim3 grid, block;
  std::size_t shared = 0;
  Stream* stream = nullptr;
  std::vector<std::byte> arguments;  // of the launches of old: at their offsets
};

std::vector<CallConfiguration>& configurations() {
  thread_local auto* mine = new std::vector<CallConfiguration>;
  return *mine;
}

}  // namespace

}  // namespace manyscale::cudart

using namespace manyscale::cudart;

extern "C" {

unsigned __cudaPushCallConfiguration(Dim3 grid, Dim3 block, std::size_t shared, Stream* stream) {
  configurations().push_back({grid, block, shared, stream, {}});
  return 0;
}

Error __cudaPopCallConfiguration(Dim3* grid, Dim3* block, std::size_t* shared, void* stream) {
  auto& pushed = configurations();
  if (pushed.empty()) return finish(Error::missing_configuration);
  const CallConfiguration& last = pushed.back();
  *grid = last.grid;
  *block = last.block;
  *shared = last.shared;
  *static_cast<Stream**>(stream) = last.stream;
  pushed.pop_back();
  return Error::success;
}

Error cudaLaunchKernel(const void* function, Dim3 grid, Dim3 block, void** arguments, std::size_t shared,
                       Stream* stream) {
  return finish(launch(function, grid, block, arguments, shared, stream, DefaultStream::legacy));
}

Error cudaLaunchKernel_ptsz(const void* function, Dim3 grid, Dim3 block, void** arguments, std::size_t shared,
                            Stream* stream) {
  return finish(launch(function, grid, block, arguments, shared, stream, DefaultStream::per_thread));
}

Error __cudaLaunchKernel(Function* kernel, Dim3 grid, Dim3 block, void** arguments, std::size_t shared,
                         Stream* stream) {
  return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}

Error __cudaLaunchKernel_ptsz(Function* kernel, Dim3 grid, Dim3 block, void** arguments, std::size_t shared,
                              Stream* stream) {
  return cudaLaunchKernel_ptsz(kernel, grid, block, arguments, shared, stream);
}

// Of our driver: parameters may come in one piece, as cuLaunchKernel takes them.
Error __cudaLaunchFunction(Function* kernel, Dim3 grid, Dim3 block, void** arguments, void** extra,
                           std::size_t shared, Stream* stream) {
  return finish(launch(kernel, grid, block, arguments, shared, stream, DefaultStream::legacy, 0, extra));
}

Error cudaLaunchCooperativeKernel(const void* function, Dim3 grid, Dim3 block, void** arguments,
                                  std::size_t shared, Stream* stream) {
  return finish(
      launch(function, grid, block, arguments, shared, stream, DefaultStream::legacy, wire::kCooperative));
}

Error cudaLaunchCooperativeKernel_ptsz(const void* function, Dim3 grid, Dim3 block, void** arguments,
                                       std::size_t shared, Stream* stream) {
  return finish(launch(function, grid, block, arguments, shared, stream, DefaultStream::per_thread,
                       wire::kCooperative));
}

Error cudaLaunchKernelExC(const LaunchConfiguration* configuration, const void* function, void** arguments) {
  return finish(launch_configured(configuration, function, arguments, DefaultStream::legacy));
}

Error cudaLaunchKernelExC_ptsz(const LaunchConfiguration* configuration, const void* function,
                               void** arguments) {
  return finish(launch_configured(configuration, function, arguments, DefaultStream::per_thread));
}

// The launches of before CUDA 9: arguments are set one by one.

Error cudaConfigureCall(Dim3 grid, Dim3 block, std::size_t shared, Stream* stream) {
  __cudaPushCallConfiguration(grid, block, shared, stream);
  return finish(Error::success);
}

Error cudaSetupArgument(const void* argument, std::size_t bytes, std::size_t offset) {
  auto& pushed = configurations();
  if (pushed.empty()) return finish(Error::missing_configuration);
  constexpr std::size_t largest = 1 << 16;
  if (argument == nullptr || bytes > largest || offset > largest) return finish(Error::invalid_value);
  auto& arguments = pushed.back().arguments;
  arguments.resize(std::max(arguments.size(), offset + bytes));
  std::memcpy(arguments.data() + offset, argument, bytes);
  return finish(Error::success);
}

Error cudaLaunch(const void* function) {
  auto& pushed = configurations();
  if (pushed.empty()) return finish(Error::missing_configuration);
  CallConfiguration last = std::move(pushed.back());
  pushed.pop_back();
  return finish(with_stream(last.stream, DefaultStream::legacy, [&](Stream& stream) {
    std::size_t bytes = last.arguments.size();
    void* extra[] = {reinterpret_cast<void*>(1), last.arguments.data(), reinterpret_cast<void*>(2), &bytes,
                     nullptr};
    LaunchOperation made;
    const Error error = make_launch(function, last.grid, last.block, nullptr, bytes != 0 ? extra : nullptr,
                                    last.shared, 0, made);
    return error == Error::success ? enqueue(stream, std::move(made), Wait::no) : error;
  }));
}

}  // extern "C"

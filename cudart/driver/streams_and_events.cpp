// SPDX-License-Identifier: Apache-2.0
// Streams and events, and captures, whose functions the runtime has in different forms.
#include <cstddef>

#include "runtime_calls.hpp"

using namespace manyscale::cuda_driver;

namespace {

// The runtime has edges with data since CUDA 13; they have none here.
Result tell_capture(void* stream, int* status, unsigned long long* number, void** graph, const void* nodes,
                    const void** edges, std::size_t* count, bool per_thread) {
  if (edges != nullptr) *edges = nullptr;
  if (runtime_version() >= 13000)
    return runtime(per_thread ? "cudaStreamGetCaptureInfo_ptsz" : "cudaStreamGetCaptureInfo", stream, status,
                   number, graph, nodes, static_cast<const void**>(nullptr), count);
  return runtime(per_thread ? "cudaStreamGetCaptureInfo_v2_ptsz" : "cudaStreamGetCaptureInfo_v2", stream,
                 status, number, graph, nodes, count);
}

Result change_capture(void* stream, void* nodes, std::size_t count, unsigned flags, bool per_thread) {
  const char* name =
      per_thread ? "cudaStreamUpdateCaptureDependencies_ptsz" : "cudaStreamUpdateCaptureDependencies";
  if (runtime_version() >= 13000)
    return runtime(name, stream, nodes, static_cast<const void*>(nullptr), count, flags);
  return runtime(name, stream, nodes, count, flags);
}

}  // namespace

extern "C" {

int cuStreamCreate(void** stream, unsigned flags) {
  return runtime("cudaStreamCreateWithFlags", stream, flags);
}

int cuStreamDestroy_v2(void* stream) {
  return runtime("cudaStreamDestroy", stream);
}

int cuStreamSynchronize(void* stream) {
  return runtime("cudaStreamSynchronize", stream);
}

int cuStreamQuery(void* stream) {
  return runtime("cudaStreamQuery", stream);
}

int cuStreamWaitEvent(void* stream, void* event, unsigned flags) {
  return runtime("cudaStreamWaitEvent", stream, event, flags);
}

int cuEventCreate(void** event, unsigned flags) {
  return runtime("cudaEventCreateWithFlags", event, flags);
}

int cuEventRecord(void* event, void* stream) {
  return runtime("cudaEventRecord", event, stream);
}

int cuEventSynchronize(void* event) {
  return runtime("cudaEventSynchronize", event);
}

int cuEventQuery(void* event) {
  return runtime("cudaEventQuery", event);
}

int cuEventElapsedTime(float* milliseconds, void* begin, void* end) {
  return runtime("cudaEventElapsedTime", milliseconds, begin, end);
}

int cuEventDestroy_v2(void* event) {
  return runtime("cudaEventDestroy", event);
}

// --- Captures ---

int cuStreamBeginCapture(void* stream) {
  constexpr int global = 0;
  return runtime("cudaStreamBeginCapture", stream, global);
}

int cuStreamBeginCapture_ptsz(void* stream) {
  constexpr int global = 0;
  return runtime("cudaStreamBeginCapture_ptsz", stream, global);
}

int cuStreamGetCaptureInfo(void* stream, int* status, unsigned long long* number) {
  return tell_capture(stream, status, number, nullptr, nullptr, nullptr, nullptr, false);
}

int cuStreamGetCaptureInfo_ptsz(void* stream, int* status, unsigned long long* number) {
  return tell_capture(stream, status, number, nullptr, nullptr, nullptr, nullptr, true);
}

int cuStreamGetCaptureInfo_v2(void* stream, int* status, unsigned long long* number, void** graph,
                              const void* nodes, std::size_t* count) {
  return tell_capture(stream, status, number, graph, nodes, nullptr, count, false);
}

int cuStreamGetCaptureInfo_v2_ptsz(void* stream, int* status, unsigned long long* number, void** graph,
                                   const void* nodes, std::size_t* count) {
  return tell_capture(stream, status, number, graph, nodes, nullptr, count, true);
}

int cuStreamGetCaptureInfo_v3(void* stream, int* status, unsigned long long* number, void** graph,
                              const void* nodes, const void** edges, std::size_t* count) {
  return tell_capture(stream, status, number, graph, nodes, edges, count, false);
}

int cuStreamGetCaptureInfo_v3_ptsz(void* stream, int* status, unsigned long long* number, void** graph,
                                   const void* nodes, const void** edges, std::size_t* count) {
  return tell_capture(stream, status, number, graph, nodes, edges, count, true);
}

int cuStreamUpdateCaptureDependencies(void* stream, void* nodes, std::size_t count, unsigned flags) {
  return change_capture(stream, nodes, count, flags, false);
}

int cuStreamUpdateCaptureDependencies_ptsz(void* stream, void* nodes, std::size_t count, unsigned flags) {
  return change_capture(stream, nodes, count, flags, true);
}

int cuStreamUpdateCaptureDependencies_v2(void* stream, void* nodes, const void*, std::size_t count,
                                         unsigned flags) {
  return change_capture(stream, nodes, count, flags, false);
}

int cuStreamUpdateCaptureDependencies_v2_ptsz(void* stream, void* nodes, const void*, std::size_t count,
                                              unsigned flags) {
  return change_capture(stream, nodes, count, flags, true);
}

}  // extern "C"

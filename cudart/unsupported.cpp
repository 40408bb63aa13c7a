// SPDX-License-Identifier: Apache-2.0
// Functions of the runtime that are not supported: each reports that once, with an alternative, and returns
// cudaErrorNotSupported.
#include <string>

#include "process.hpp"

namespace manyscale::cudart {

namespace {

Error refuse(const char* name, const char* what) {
  const std::string text = std::string(name) + " is not supported: the simulated GPUs do not know " + what;
  report_once(text);
  if (connect_thread() == Error::success) call<wire::Note>({}, nullptr, std::as_bytes(std::span(text)));
  return finish(Error::not_supported);
}

}  // namespace

}  // namespace manyscale::cudart

using namespace manyscale::cudart;

// A function of any arguments: who calls takes them away again. All are in a section of their own, by which
// `manyscale check` tells them from the others.
#define UNSUPPORTED(name)                        \
  [[gnu::section("unsupported")]] Error name() { \
    return refuse(#name, ADVICE);                \
  }

extern "C" {

void __cudaRegisterUnifiedTable(void*) {}
// By this function the driver knows a runtime of ours, and that its own errors are none of the runtime's.
Error* __cudaManyscale() {
  return &last_error_of_thread();
}
void* __cudaGetProcAddress() {
  return nullptr;
}

#define ADVICE "sharing memory with graphics libraries; copy the data to the host and draw from there"
UNSUPPORTED(cudaEGLStreamConsumerAcquireFrame)
UNSUPPORTED(cudaEGLStreamConsumerConnect)
UNSUPPORTED(cudaEGLStreamConsumerConnectWithFlags)
UNSUPPORTED(cudaEGLStreamConsumerDisconnect)
UNSUPPORTED(cudaEGLStreamConsumerReleaseFrame)
UNSUPPORTED(cudaEGLStreamProducerConnect)
UNSUPPORTED(cudaEGLStreamProducerDisconnect)
UNSUPPORTED(cudaEGLStreamProducerPresentFrame)
UNSUPPORTED(cudaEGLStreamProducerReturnFrame)
UNSUPPORTED(cudaEventCreateFromEGLSync)
UNSUPPORTED(cudaGLGetDevices)
UNSUPPORTED(cudaGLMapBufferObject)
UNSUPPORTED(cudaGLMapBufferObjectAsync)
UNSUPPORTED(cudaGLRegisterBufferObject)
UNSUPPORTED(cudaGLSetBufferObjectMapFlags)
UNSUPPORTED(cudaGLSetGLDevice)
UNSUPPORTED(cudaGLUnmapBufferObject)
UNSUPPORTED(cudaGLUnmapBufferObjectAsync)
UNSUPPORTED(cudaGLUnregisterBufferObject)
UNSUPPORTED(cudaGraphicsEGLRegisterImage)
UNSUPPORTED(cudaGraphicsGLRegisterBuffer)
UNSUPPORTED(cudaGraphicsGLRegisterImage)
UNSUPPORTED(cudaGraphicsMapResources)
UNSUPPORTED(cudaGraphicsResourceGetMappedEglFrame)
UNSUPPORTED(cudaGraphicsResourceGetMappedMipmappedArray)
UNSUPPORTED(cudaGraphicsResourceGetMappedPointer)
UNSUPPORTED(cudaGraphicsResourceSetMapFlags)
UNSUPPORTED(cudaGraphicsSubResourceGetMappedArray)
UNSUPPORTED(cudaGraphicsUnmapResources)
UNSUPPORTED(cudaGraphicsUnregisterResource)
UNSUPPORTED(cudaGraphicsVDPAURegisterOutputSurface)
UNSUPPORTED(cudaGraphicsVDPAURegisterVideoSurface)
UNSUPPORTED(cudaVDPAUGetDevice)
UNSUPPORTED(cudaVDPAUSetVDPAUDevice)
#undef ADVICE

#define ADVICE "memory and semaphores of other systems; use memory and events of CUDA"
UNSUPPORTED(cudaDestroyExternalMemory)
UNSUPPORTED(cudaDestroyExternalSemaphore)
UNSUPPORTED(cudaDeviceGetNvSciSyncAttributes)
UNSUPPORTED(cudaExternalMemoryGetMappedBuffer)
UNSUPPORTED(cudaExternalMemoryGetMappedMipmappedArray)
UNSUPPORTED(cudaGraphAddExternalSemaphoresSignalNode)
UNSUPPORTED(cudaGraphAddExternalSemaphoresWaitNode)
UNSUPPORTED(cudaGraphExecExternalSemaphoresSignalNodeSetParams)
UNSUPPORTED(cudaGraphExecExternalSemaphoresWaitNodeSetParams)
UNSUPPORTED(cudaGraphExternalSemaphoresSignalNodeGetParams)
UNSUPPORTED(cudaGraphExternalSemaphoresSignalNodeSetParams)
UNSUPPORTED(cudaGraphExternalSemaphoresWaitNodeGetParams)
UNSUPPORTED(cudaGraphExternalSemaphoresWaitNodeSetParams)
UNSUPPORTED(cudaImportExternalMemory)
UNSUPPORTED(cudaImportExternalSemaphore)
UNSUPPORTED(cudaSignalExternalSemaphoresAsync)
UNSUPPORTED(cudaSignalExternalSemaphoresAsync_ptsz)
UNSUPPORTED(cudaSignalExternalSemaphoresAsync_v2)
UNSUPPORTED(cudaSignalExternalSemaphoresAsync_v2_ptsz)
UNSUPPORTED(cudaWaitExternalSemaphoresAsync)
UNSUPPORTED(cudaWaitExternalSemaphoresAsync_ptsz)
UNSUPPORTED(cudaWaitExternalSemaphoresAsync_v2)
UNSUPPORTED(cudaWaitExternalSemaphoresAsync_v2_ptsz)
#undef ADVICE

#define ADVICE "clusters of thread blocks; launch without them"
UNSUPPORTED(cudaOccupancyMaxActiveClusters)
UNSUPPORTED(cudaOccupancyMaxPotentialClusterSize)
#undef ADVICE

#define ADVICE "sparse arrays and arrays of several planes; use plain arrays"
UNSUPPORTED(cudaArrayGetMemoryRequirements)
UNSUPPORTED(cudaArrayGetPlane)
UNSUPPORTED(cudaArrayGetSparseProperties)
UNSUPPORTED(cudaMipmappedArrayGetMemoryRequirements)
UNSUPPORTED(cudaMipmappedArrayGetSparseProperties)
#undef ADVICE

#define ADVICE "conditional nodes of graphs; decide on the host and launch another graph"
UNSUPPORTED(cudaGraphConditionalHandleCreate)
#undef ADVICE

#define ADVICE "events of other processes; synchronise the processes with those of the system"
UNSUPPORTED(cudaIpcGetEventHandle)
UNSUPPORTED(cudaIpcOpenEventHandle)
#undef ADVICE

#define ADVICE \
  "memory pools that are shared or of the host; use cudaMalloc and cudaIpcGetMemHandle, or cudaHostAlloc"
UNSUPPORTED(cudaMemGetDefaultMemPool)
UNSUPPORTED(cudaMemGetMemPool)
UNSUPPORTED(cudaMemPoolExportPointer)
UNSUPPORTED(cudaMemPoolExportToShareableHandle)
UNSUPPORTED(cudaMemPoolImportFromShareableHandle)
UNSUPPORTED(cudaMemPoolImportPointer)
UNSUPPORTED(cudaMemSetMemPool)
#undef ADVICE

#define ADVICE "messages of the driver; the simulator's are on standard error"
UNSUPPORTED(cudaDeviceRegisterAsyncNotification)
UNSUPPORTED(cudaDeviceUnregisterAsyncNotification)
UNSUPPORTED(cudaLogsCurrent)
UNSUPPORTED(cudaLogsDumpToFile)
UNSUPPORTED(cudaLogsDumpToMemory)
UNSUPPORTED(cudaLogsRegisterCallback)
UNSUPPORTED(cudaLogsUnregisterCallback)
#undef ADVICE

#define ADVICE "discarding memory; overwrite or free it"
UNSUPPORTED(cudaMemDiscardAndPrefetchBatchAsync)
UNSUPPORTED(cudaMemDiscardAndPrefetchBatchAsync_ptsz)
UNSUPPORTED(cudaMemDiscardBatchAsync)
UNSUPPORTED(cudaMemDiscardBatchAsync_ptsz)
#undef ADVICE

#define ADVICE "functions of libraries for the host"
UNSUPPORTED(cudaLibraryGetUnifiedFunction)
#undef ADVICE

#define ADVICE "cooperative launches on several devices; launch on each device and synchronise on the host"
UNSUPPORTED(cudaLaunchCooperativeKernelMultiDevice)
#undef ADVICE

#define ADVICE "asking for atomics between devices; use cudaDeviceGetP2PAttribute"
UNSUPPORTED(cudaDeviceGetHostAtomicCapabilities)
UNSUPPORTED(cudaDeviceGetP2PAtomicCapabilities)
#undef ADVICE

#define ADVICE "batches of copies in three dimensions; call cudaMemcpy3DAsync for each"
UNSUPPORTED(cudaMemcpy3DBatchAsync)
UNSUPPORTED(cudaMemcpy3DBatchAsync_ptsz)
#undef ADVICE

}  // extern "C"

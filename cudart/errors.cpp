// SPDX-License-Identifier: Apache-2.0
// Error codes: their names and descriptions.
#include <algorithm>
#include <iterator>

#include "process.hpp"

namespace manyscale::cudart {

namespace {

struct Row {
  int number;
  const char* name;
  const char* words;
};

// By number.
constexpr Row kErrors[] = {
    {0, "cudaSuccess", "no error"},
    {1, "cudaErrorInvalidValue", "invalid argument"},
    {2, "cudaErrorMemoryAllocation", "out of memory"},
    {3, "cudaErrorInitializationError", "the GPUs could not be initialised"},
    {4, "cudaErrorCudartUnloading", "the program is ending"},
    {5, "cudaErrorProfilerDisabled", "the profiler is off"},
    {6, "cudaErrorProfilerNotInitialized", "the profiler was not initialised"},
    {7, "cudaErrorProfilerAlreadyStarted", "the profiler runs already"},
    {8, "cudaErrorProfilerAlreadyStopped", "the profiler does not run"},
    {9, "cudaErrorInvalidConfiguration", "invalid configuration of grid, block or shared memory"},
    {12, "cudaErrorInvalidPitchValue", "invalid pitch: it is smaller than a row"},
    {13, "cudaErrorInvalidSymbol", "no such variable on the device"},
    {16, "cudaErrorInvalidHostPointer", "invalid pointer to the host's memory"},
    {17, "cudaErrorInvalidDevicePointer", "invalid pointer to a device's memory"},
    {18, "cudaErrorInvalidTexture", "invalid texture"},
    {19, "cudaErrorInvalidTextureBinding", "invalid binding of a texture"},
    {20, "cudaErrorInvalidChannelDescriptor", "invalid description of channels"},
    {21, "cudaErrorInvalidMemcpyDirection", "invalid direction of a copy"},
    {22, "cudaErrorAddressOfConstant", "the address of a constant was taken"},
    {23, "cudaErrorTextureFetchFailed", "a texture could not be read"},
    {24, "cudaErrorTextureNotBound", "the texture is not bound"},
    {25, "cudaErrorSynchronizationError", "synchronisation failed"},
    {26, "cudaErrorInvalidFilterSetting", "linear filtering of values that are not floating point"},
    {27, "cudaErrorInvalidNormSetting", "32-bit integers cannot be read as normalised floats"},
    {28, "cudaErrorMixedDeviceExecution", "device and emulated code are mixed"},
    {31, "cudaErrorNotYetImplemented", "not implemented yet"},
    {32, "cudaErrorMemoryValueTooLarge", "the memory value is too large"},
    {34, "cudaErrorStubLibrary", "the program was started with a stub of the driver"},
    {35, "cudaErrorInsufficientDriver", "the driver is older than the runtime"},
    {36, "cudaErrorCallRequiresNewerDriver", "the call needs a newer driver"},
    {37, "cudaErrorInvalidSurface", "invalid surface"},
    {43, "cudaErrorDuplicateVariableName", "two variables have one name"},
    {44, "cudaErrorDuplicateTextureName", "two textures have one name"},
    {45, "cudaErrorDuplicateSurfaceName", "two surfaces have one name"},
    {46, "cudaErrorDevicesUnavailable", "all devices are busy or unavailable"},
    {49, "cudaErrorIncompatibleDriverContext", "the context is not one of the runtime's"},
    {52, "cudaErrorMissingConfiguration", "a kernel was called without a configuration"},
    {53, "cudaErrorPriorLaunchFailure", "a launch before this one failed"},
    {65, "cudaErrorLaunchMaxDepthExceeded", "launches on the device are nested too deep"},
    {66, "cudaErrorLaunchFileScopedTex", "the kernel uses a texture of its file"},
    {67, "cudaErrorLaunchFileScopedSurf", "the kernel uses a surface of its file"},
    {68, "cudaErrorSyncDepthExceeded", "synchronisation on the device is nested too deep"},
    {69, "cudaErrorLaunchPendingCountExceeded", "too many launches of the device are pending"},
    {98, "cudaErrorInvalidDeviceFunction", "no such kernel on the device"},
    {100, "cudaErrorNoDevice", "no CUDA-capable device is there"},
    {101, "cudaErrorInvalidDevice", "there is no device of that number"},
    {102, "cudaErrorDeviceNotLicensed", "the device has no licence"},
    {103, "cudaErrorSoftwareValidityNotEstablished", "the software could not be checked"},
    {127, "cudaErrorStartupFailure", "the runtime could not start"},
    {200, "cudaErrorInvalidKernelImage", "the device code is invalid"},
    {201, "cudaErrorDeviceUninitialized", "there is no valid context"},
    {205, "cudaErrorMapBufferObjectFailed", "a buffer could not be mapped"},
    {206, "cudaErrorUnmapBufferObjectFailed", "a buffer could not be unmapped"},
    {207, "cudaErrorArrayIsMapped", "the array is mapped"},
    {208, "cudaErrorAlreadyMapped", "the resource is mapped already"},
    {209, "cudaErrorNoKernelImageForDevice", "the program has no code for this device"},
    {210, "cudaErrorAlreadyAcquired", "the resource is taken already"},
    {211, "cudaErrorNotMapped", "the resource is not mapped"},
    {212, "cudaErrorNotMappedAsArray", "the resource is not mapped as an array"},
    {213, "cudaErrorNotMappedAsPointer", "the resource is not mapped as a pointer"},
    {214, "cudaErrorECCUncorrectable", "memory error that ECC could not correct"},
    {215, "cudaErrorUnsupportedLimit", "the device does not have that limit"},
    {216, "cudaErrorDeviceAlreadyInUse", "the device is in use by another thread"},
    {217, "cudaErrorPeerAccessUnsupported", "the devices cannot access each other's memory"},
    {218, "cudaErrorInvalidPtx", "the PTX could not be compiled"},
    {219, "cudaErrorInvalidGraphicsContext", "invalid graphics context"},
    {220, "cudaErrorNvlinkUncorrectable", "error on NVLink that could not be corrected"},
    {221, "cudaErrorJitCompilerNotFound", "the compiler of PTX was not found"},
    {222, "cudaErrorUnsupportedPtxVersion", "the PTX is of a version that is not supported"},
    {223, "cudaErrorJitCompilationDisabled", "compiling PTX is switched off"},
    {224, "cudaErrorUnsupportedExecAffinity", "the device does not support that affinity"},
    {225, "cudaErrorUnsupportedDevSideSync", "the code synchronises on the device, which is not supported"},
    {226, "cudaErrorContained", "a contained error of the device"},
    {300, "cudaErrorInvalidSource", "the source of a kernel is invalid"},
    {301, "cudaErrorFileNotFound", "file not found"},
    {302, "cudaErrorSharedObjectSymbolNotFound", "a symbol of a shared library was not found"},
    {303, "cudaErrorSharedObjectInitFailed", "a shared library could not be initialised"},
    {304, "cudaErrorOperatingSystem", "a call to the operating system failed"},
    {400, "cudaErrorInvalidResourceHandle", "invalid handle: no such stream, event or other object"},
    {401, "cudaErrorIllegalState", "the object is in a state that does not allow this"},
    {402, "cudaErrorLossyQuery", "the answer would leave something out"},
    {500, "cudaErrorSymbolNotFound", "no such named symbol"},
    {600, "cudaErrorNotReady", "not finished yet"},
    {700, "cudaErrorIllegalAddress", "a kernel accessed memory that is not there"},
    {701, "cudaErrorLaunchOutOfResources", "the launch needs more registers or shared memory than there are"},
    {702, "cudaErrorLaunchTimeout", "a kernel ran too long"},
    {703, "cudaErrorLaunchIncompatibleTexturing", "the launch uses another way of textures"},
    {704, "cudaErrorPeerAccessAlreadyEnabled", "access to the peer is enabled already"},
    {705, "cudaErrorPeerAccessNotEnabled", "access to the peer is not enabled"},
    {708, "cudaErrorSetOnActiveProcess", "too late: the device is initialised"},
    {709, "cudaErrorContextIsDestroyed", "the context is gone"},
    {710, "cudaErrorAssert", "an assertion in a kernel failed"},
    {711, "cudaErrorTooManyPeers", "too many peers"},
    {712, "cudaErrorHostMemoryAlreadyRegistered", "part of the memory is registered already"},
    {713, "cudaErrorHostMemoryNotRegistered", "the memory is not registered"},
    {714, "cudaErrorHardwareStackError", "a kernel's stack is damaged"},
    {715, "cudaErrorIllegalInstruction", "a kernel met an instruction that is not one"},
    {716, "cudaErrorMisalignedAddress", "a kernel accessed an address that is not aligned"},
    {717, "cudaErrorInvalidAddressSpace", "a kernel used an address in the wrong memory space"},
    {718, "cudaErrorInvalidPc", "a kernel jumped to an address that is not code"},
    {719, "cudaErrorLaunchFailure", "a kernel failed"},
    {720, "cudaErrorCooperativeLaunchTooLarge", "the blocks of a cooperative launch do not all fit at once"},
    {721, "cudaErrorTensorMemoryLeak", "a kernel ended with tensor memory allocated"},
    {800, "cudaErrorNotPermitted", "not permitted"},
    {801, "cudaErrorNotSupported", "not supported"},
    {802, "cudaErrorSystemNotReady", "the system is not ready"},
    {803, "cudaErrorSystemDriverMismatch", "the driver does not fit the system"},
    {804, "cudaErrorCompatNotSupportedOnDevice", "forward compatibility is not supported on the device"},
    {805, "cudaErrorMpsConnectionFailed", "the process server could not be reached"},
    {806, "cudaErrorMpsRpcFailure", "a call to the process server failed"},
    {807, "cudaErrorMpsServerNotReady", "the process server is not ready"},
    {808, "cudaErrorMpsMaxClientsReached", "too many clients of the process server"},
    {809, "cudaErrorMpsMaxConnectionsReached", "too many connections to the process server"},
    {810, "cudaErrorMpsClientTerminated", "the process server ended this client"},
    {811, "cudaErrorCdpNotSupported", "launching kernels from kernels is not supported"},
    {812, "cudaErrorCdpVersionMismatch", "the versions of launches from kernels differ"},
    {900, "cudaErrorStreamCaptureUnsupported", "the operation cannot be captured"},
    {901, "cudaErrorStreamCaptureInvalidated", "the capture was invalidated by an error before"},
    {902, "cudaErrorStreamCaptureMerge", "two captures would become one"},
    {903, "cudaErrorStreamCaptureUnmatched", "the capture did not begin in this stream"},
    {904, "cudaErrorStreamCaptureUnjoined", "a captured stream was not joined before the end of the capture"},
    {905, "cudaErrorStreamCaptureIsolation", "a captured stream would depend on work that is not captured"},
    {906, "cudaErrorStreamCaptureImplicit", "the legacy default stream would take part in the capture"},
    {907, "cudaErrorCapturedEvent", "the event was recorded in a captured stream"},
    {908, "cudaErrorStreamCaptureWrongThread", "the capture was begun by another thread"},
    {909, "cudaErrorTimeout", "time is up"},
    {910, "cudaErrorGraphExecUpdateFailure", "the graph differs too much to update what was instantiated"},
    {911, "cudaErrorExternalDevice", "a device outside of CUDA failed"},
    {912, "cudaErrorInvalidClusterSize", "invalid size of a cluster"},
    {913, "cudaErrorFunctionNotLoaded", "the function is not loaded"},
    {914, "cudaErrorInvalidResourceType", "invalid type of resource"},
    {915, "cudaErrorInvalidResourceConfiguration", "invalid configuration of resources"},
    {999, "cudaErrorUnknown", "unknown error"},
    {10000, "cudaErrorApiFailureBase", "failure of the interface"},
};
static_assert(std::ranges::is_sorted(kErrors, {}, &Row::number));

const Row* find(Error error) {
  const auto* found = std::ranges::lower_bound(kErrors, static_cast<int>(error), {}, &Row::number);
  return found != std::end(kErrors) && found->number == static_cast<int>(error) ? found : nullptr;
}

}  // namespace

}  // namespace manyscale::cudart

using namespace manyscale::cudart;

extern "C" {

const char* cudaGetErrorName(Error error) {
  const Row* row = find(error);
  return row != nullptr ? row->name : "unrecognized error code";
}

const char* cudaGetErrorString(Error error) {
  const Row* row = find(error);
  return row != nullptr ? row->words : "unrecognized error code";
}

Error cudaGetLastError() {
  return last_error(true);
}

Error cudaPeekAtLastError() {
  return last_error(false);
}

}  // extern "C"

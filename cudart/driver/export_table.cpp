// SPDX-License-Identifier: Apache-2.0
// Tables of functions that NVIDIA's own libraries ask their driver for, without a public description.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "contexts.hpp"
#include "runtime_calls.hpp"

using namespace manyscale::cuda_driver;

extern "C" {
int cuCtxGetCurrent(Context** context);
int cuCtxGetId(Context* context, unsigned long long* number);
int cuModuleEnumerateFunctions(void** functions, unsigned room, void* module);
int cuModuleGetFunctionCount(unsigned* count, void* module);
int cuStreamGetId(void* stream, unsigned long long* number);
}

namespace {

std::string text_of(const void* name) {
  std::array<unsigned char, 16> bytes{};
  std::memcpy(bytes.data(), name, bytes.size());
  std::string text;
  char digits[3];
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::snprintf(digits, sizeof digits, "%02x", bytes[i]);
    text += digits;
    if (i == 3 || i == 5 || i == 7 || i == 9) text += '-';
  }
  return text;
}

using Entry = void (*)();

template <class Function>
Entry entry(Function* function) {
  return reinterpret_cast<Entry>(function);
}

enum class Kind { tls, context, module };
constexpr const char* kNames[] = {"tools' storage of threads", "contexts", "modules"};

template <Kind kind, int number>
int unknown_entry() {
  report_once("a library calls function " + std::to_string(number) + " of the driver's table of " +
              kNames[static_cast<int>(kind)] +
              ", whose meaning is not known; it returns CUDA_ERROR_NOT_SUPPORTED");
  return not_supported;
}

// A table begins with its size in bytes.
template <Kind kind>
struct Functions {
  static constexpr std::size_t kCount = 96;
  std::size_t bytes = sizeof(Functions);
  Entry entries[kCount];

  Functions() { fill(std::make_index_sequence<kCount>{}); }
  template <std::size_t... index>
  void fill(std::index_sequence<index...>) {
    ((entries[index] = entry(unknown_entry<kind, static_cast<int>(index) + 1>)), ...);
  }
  template <class Function>
  Functions& set(int number, Function* function) {
    entries[number - 1] = entry(function);
    return *this;
  }
};

// cuFFT finds the kernels of a module without knowing their names.
using Visit = void (*)(void* data, void* function, void* module);

unsigned visit_functions(Context*, void* module, Visit visit, void* data) {
  unsigned count = 0;
  if (cuModuleGetFunctionCount(&count, module) != success || count == 0) return 0;
  std::vector<void*> functions(count);
  if (cuModuleEnumerateFunctions(functions.data(), count, module) != success) return 0;
  for (void* function : functions) visit(data, function, module);
  return count;
}

// cuBLAS keeps workspaces by the numbers of streams, which it asks for in two steps: what stands for the
// handle of a stream, and the number of that.
int find_stream(Context*, void* stream, void** found, int per_thread) {
  constexpr std::uintptr_t legacy = 1, of_thread = 2;
  if (found == nullptr) return invalid_value;
  *found = stream != nullptr ? stream : reinterpret_cast<void*>(per_thread != 0 ? of_thread : legacy);
  return success;
}

int number_of_stream(Context*, void* stream, unsigned long long* number) {
  return cuStreamGetId(stream, number);
}

// cuBLASLt and others find with the first two which context a thread has, as a number by which they keep what
// they loaded into it.
const Functions<Kind::tls> current = Functions<Kind::tls>().set(2, cuCtxGetCurrent);
const Functions<Kind::context> contexts =
    Functions<Kind::context>().set(4, cuCtxGetId).set(39, number_of_stream).set(51, find_stream);
const Functions<Kind::module> modules = Functions<Kind::module>().set(7, visit_functions);

struct Table {
  const char* name;
  const void* contents;
};
const Table tables[] = {
    {"42d85a81-23f6-cb47-8298-f6e78a3aecdc", &current},
    {"6e163fbe-b958-444d-835c-e182aff1991e", &modules},
    {"21318c60-9714-3248-8ca6-41ff7324c8f2", &contexts},
};

// A CUDA runtime of NVIDIA asks for tables before anything else, and demands that the driver prove itself to
// be NVIDIA's, which this one cannot and does not try to: such a runtime is replaced when the program is
// loaded (`interposer`).
int look_up(const void** table, const void* name, const void* caller) {
  if (table == nullptr || name == nullptr) return invalid_value;
  *table = nullptr;
  const std::string wanted = text_of(name);
  for (const Table& known : tables) {
    if (wanted != known.name) continue;
    *table = known.contents;
    return success;
  }
  Dl_info from{};
  const bool known = dladdr(caller, &from) != 0 && from.dli_fname != nullptr;
  const std::string library = known ? from.dli_fname : "the program";
  if (library.find("/libnvrtc") == std::string::npos)  // which only compiles, and can do without
    report_once(
        library + " asks for table " + wanted +
        " of NVIDIA's driver, which the simulated driver does not have; if a CUDA runtime is linked into "
        "it that was not replaced, `manyscale check " +
        library + "` tells why");
  return not_supported;
}

}  // namespace

extern "C" {

[[gnu::section("unsupported")]] int cuGetExportTable(const void** table, const void* name) {
  return look_up(table, name, __builtin_return_address(0));
}

// For our runtime (cudaGetExportTable), in the name of its caller.
int __cuManyscaleGetExportTable(const void** table, const void* name, const void* caller) {
  return look_up(table, name, caller);
}

}  // extern "C"

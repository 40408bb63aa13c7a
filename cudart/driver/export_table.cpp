// SPDX-License-Identifier: Apache-2.0
// Tables of functions that NVIDIA's own libraries ask their driver for, without a public description.
#include <array>
#include <cstdio>
#include <cstring>

#include "contexts.hpp"
#include "runtime_calls.hpp"

using namespace manyscale::cuda_driver;

extern "C" {
int cuCtxGetCurrent(Context** context);
int cuCtxGetId(Context* context, unsigned long long* number);
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

int unknown_entry() {
  report_once(
      "a library calls a function of a driver's table whose meaning is not known; it returns "
      "CUDA_ERROR_NOT_SUPPORTED");
  return not_supported;
}

using Entry = void (*)();

template <class Function>
Entry entry(Function* function) {
  return reinterpret_cast<Entry>(function);
}

// A table begins with its size in bytes. cuBLASLt and others find with the first two which context a thread
// has, as a number by which they keep what they loaded into it.
struct ContextTable {
  std::size_t bytes = sizeof(ContextTable);
  Entry first = entry(unknown_entry);
  Entry get_current = entry(cuCtxGetCurrent);
  Entry third = entry(unknown_entry);
};

struct ContextNumberTable {
  std::size_t bytes = sizeof(ContextNumberTable);
  Entry others[3] = {entry(unknown_entry), entry(unknown_entry), entry(unknown_entry)};
  Entry get_number = entry(cuCtxGetId);
};

const ContextTable contexts;
const ContextNumberTable context_numbers;

struct Table {
  const char* name;
  const void* contents;
};
const Table tables[] = {
    {"42d85a81-23f6-cb47-8298-f6e78a3aecdc", &contexts},
    {"21318c60-9714-3248-8ca6-41ff7324c8f2", &context_numbers},
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

// SPDX-License-Identifier: Apache-2.0
// Tables of functions that NVIDIA's own libraries ask their driver for, without a public description.
#include "runtime_calls.hpp"

using namespace manyscale::cuda_driver;

// A CUDA runtime of NVIDIA asks for them before anything else. It also demands that the driver prove itself
// to be NVIDIA's, which this one cannot and does not try to: such a runtime is replaced when the program is
// loaded (`interposer`).
extern "C" [[gnu::section("unsupported")]] int cuGetExportTable(const void** table, const void* name) {
  if (table == nullptr || name == nullptr) return invalid_value;
  *table = nullptr;
  Dl_info caller{};
  const bool known = dladdr(__builtin_return_address(0), &caller) != 0 && caller.dli_fname != nullptr;
  report_once(std::string(known ? caller.dli_fname : "the program") +
              " has a CUDA runtime or library of NVIDIA, which works with NVIDIA's driver only and was not "
              "replaced; start the "
              "program with: manyscale cuda -- PROGRAM; if it was, `manyscale check` tells why");
  return not_supported;
}

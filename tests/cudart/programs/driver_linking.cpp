// SPDX-License-Identifier: Apache-2.0
// Linking at run time: a kernel calls a function of another image. The kernels of a module without their
// names, by public functions and by those that NVIDIA's libraries use.
#include <string>

#include "driver.hpp"

FUNCTION(cuInit)
FUNCTION(cuCtxGetCurrent)
FUNCTION(cuFuncGetModule)
FUNCTION(cuGetExportTable)
FUNCTION(cuLaunchKernel)
FUNCTION(cuLinkAddData_v2)
FUNCTION(cuLinkAddFile_v2)
FUNCTION(cuLinkComplete)
FUNCTION(cuLinkCreate_v2)
FUNCTION(cuLinkDestroy)
FUNCTION(cuMemAlloc_v2)
FUNCTION(cuMemcpyDtoH_v2)
FUNCTION(cuModuleEnumerateFunctions)
FUNCTION(cuModuleGetFunction)
FUNCTION(cuModuleGetFunctionCount)
FUNCTION(cuModuleLoadData)
FUNCTION(cuStreamCreate)
FUNCTION(cuStreamGetId)

namespace {

enum : int { invalid_value = 1, file_not_found = 301, invalid_handle = 400, not_supported = 801 };
enum : int { cubin = 0, ptx = 1, object = 3, nvvm = 5 };

const std::string kHead = ".version 7.0\n.target sm_70\n.address_size 64\n";
const std::string kKernel = kHead + R"(
.extern .func (.param .b32 result) twice(.param .b32 x);
.visible .entry store(.param .u64 to) {
  .reg .b32 %r<3>; .reg .b64 %rd<2>;
  mov.u32 %r1, 21;
  { .param .b32 x; .param .b32 result; st.param.b32 [x], %r1; call.uni (result), twice, (x);
    ld.param.b32 %r2, [result]; }
  ld.param.u64 %rd1, [to]; st.global.u32 [%rd1], %r2; ret;
})";
const std::string kFunction = kHead + R"(
.visible .func (.param .b32 result) twice(.param .b32 x) {
  .reg .b32 %r<3>; ld.param.b32 %r1, [x]; add.u32 %r2, %r1, %r1; st.param.b32 [result], %r2; ret;
})";

void add(void* state, const std::string& text) {
  MUST(cuLinkAddData_v2(state, ptx, text.c_str(), Size{text.size() + 1}, "part", 0u, nullptr, nullptr));
}

void* const* table_of(const char* name) {
  void* const* table = nullptr;
  unsigned char bytes[16];
  for (int i = 0; i < 16; ++i) {
    unsigned value = 0;
    std::sscanf(name + 2 * i, "%2x", &value);
    bytes[i] = static_cast<unsigned char>(value);
  }
  MUST(cuGetExportTable(&table, bytes));
  EXPECT(reinterpret_cast<Size>(table[0]) > 51 * sizeof(void*));
  return table;
}

void check_functions(void* module, void* kernel) {
  unsigned count = 0;
  void *only = nullptr, *found = nullptr;
  MUST(cuModuleGetFunctionCount(&count, module));
  EXPECT(count == 1);
  MUST(cuModuleEnumerateFunctions(&only, 1u, module));
  MUST(cuFuncGetModule(&found, kernel));
  EXPECT(only == kernel && found == module);
  using Visit = unsigned (*)(void*, void*, void (*)(void*, void*, void*), void*);
  const auto visit = reinterpret_cast<Visit>(table_of("6e163fbeb958444d835ce182aff1991e")[7]);
  only = nullptr;
  EXPECT(visit(
             nullptr, module, [](void* to, void* function, void*) { *static_cast<void**>(to) = function; },
             &only) == 1);
  EXPECT(only == kernel);
}

// Each stream has a number of its own, by which cuBLAS keeps workspaces.
void check_numbers_of_streams() {
  using Find = int (*)(void*, void*, void**, int);
  using Number = int (*)(void*, void*, unsigned long long*);
  void* const* contexts = table_of("21318c60971432488ca641ff7324c8f2");
  void *context = nullptr, *stream = nullptr, *found = nullptr;
  unsigned long long of_default = 0, of_other = 0, wanted = 0;
  MUST(cuCtxGetCurrent(&context));
  MUST(cuStreamCreate(&stream, 0));
  MUST(reinterpret_cast<Find>(contexts[51])(context, nullptr, &found, 0));
  MUST(reinterpret_cast<Number>(contexts[39])(context, found, &of_default));
  MUST(reinterpret_cast<Find>(contexts[51])(context, stream, &found, 0));
  MUST(reinterpret_cast<Number>(contexts[39])(context, found, &of_other));
  MUST(cuStreamGetId(stream, &wanted));
  EXPECT(of_other == wanted && of_other != of_default);
}

unsigned stored_by(const void* image) {
  void *module = nullptr, *kernel = nullptr;
  MUST(cuModuleLoadData(&module, image));
  MUST(cuModuleGetFunction(&kernel, module, "store"));
  check_functions(module, kernel);
  Address to = 0;
  MUST(cuMemAlloc_v2(&to, Size{4}));
  void* arguments[] = {&to};
  MUST(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
  unsigned value = 0;
  MUST(cuMemcpyDtoH_v2(&value, to, sizeof value));
  return value;
}

}  // namespace

int main() {
  MUST(cuInit(0));
  char log[64] = "untouched";
  int names[] = {5, 6};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  void *state = nullptr, *image = nullptr;
  Size bytes = 0;
  MUST(cuLinkCreate_v2(2u, names, values, &state));
  EXPECT(log[0] == '\0');
  GIVES(invalid_value, cuLinkComplete(state, &image, &bytes));
  add(state, kKernel);
  add(state, kFunction);
  GIVES(file_not_found, cuLinkAddFile_v2(state, cubin, "/no/such/file", 0u, nullptr, nullptr));
  GIVES(not_supported, cuLinkAddData_v2(state, nvvm, log, Size{1}, "part", 0u, nullptr, nullptr));
  MUST(cuLinkComplete(state, &image, &bytes));
  EXPECT(bytes > kFunction.size());
  EXPECT(stored_by(image) == 42);
  check_numbers_of_streams();
  MUST(cuLinkDestroy(state));
  GIVES(invalid_handle, cuLinkDestroy(state));

  MUST(cuLinkCreate_v2(2u, names, values, &state));
  MUST(cuLinkAddData_v2(state, object, log, sizeof log, "object", 0u, nullptr, nullptr));
  GIVES(not_supported, cuLinkComplete(state, &image, &bytes));
  MUST(cuLinkDestroy(state));
  std::puts("ok");
}

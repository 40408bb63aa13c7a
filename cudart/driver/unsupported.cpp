// SPDX-License-Identifier: Apache-2.0
// Functions of the driver that are not supported: each reports that once and returns
// CUDA_ERROR_NOT_SUPPORTED, so that a program which is linked with them, or looks them up by name, fails only
// when it calls one.
#include <unistd.h>

#include <cstring>
#include <mutex>
#include <set>
#include <string>

#include "runtime_calls.hpp"

namespace manyscale::cuda_driver {

void report_once(const std::string& text) {
  // Never destroyed: a program may call us while it ends.
  static auto& mutex = *new std::mutex;
  static auto& reported = *new std::set<std::string>;
  {
    const std::lock_guard lock(mutex);
    if (!reported.insert(text).second) return;
  }
  const std::string line = "manyscale: " + text + "\n";
  [[maybe_unused]] const ssize_t wrote = write(STDERR_FILENO, line.data(), line.size());
}

static int refuse(const char* name, const void* caller) {
  Dl_info from{};
  const bool known = dladdr(caller, &from) != 0 && from.dli_fname != nullptr;
  report_once(std::string(name) + " is not supported: the simulated driver does not have it; it returns " +
              "CUDA_ERROR_NOT_SUPPORTED to " + (known ? from.dli_fname : "the program"));
  return not_supported;
}

}  // namespace manyscale::cuda_driver

using manyscale::cuda_driver::refuse;

// A function of any arguments, which its caller removes from the stack. Functions that are defined elsewhere
// override these weak ones. `manyscale check` recognises them by their section.
#define FUNCTION(symbol, name, since, thread)                          \
  extern "C" [[gnu::weak, gnu::section("unsupported")]] int symbol() { \
    return refuse(#symbol, __builtin_return_address(0));               \
  }
#include "functions.inc"
#undef FUNCTION

namespace manyscale::cuda_driver {

namespace {

struct Entry {
  const char* name;
  int since;
  bool thread;
  int (*function)();
};

#define FUNCTION(symbol, name, since, thread) {#name, since, thread != 0, symbol},
const Entry entries[] = {
#include "functions.inc"
};
#undef FUNCTION

}  // namespace

Lookup find_function(const char* name, int version, bool thread) {
  const Entry* best = nullptr;
  bool known = false;
  for (const Entry& entry : entries) {
    if (std::strcmp(entry.name, name) != 0 || (entry.thread && !thread)) continue;
    known = true;
    if (entry.since > version) continue;
    if (best == nullptr || entry.thread > best->thread ||
        (entry.thread == best->thread && entry.since > best->since))
      best = &entry;
  }
  if (!known && *name != '\0')  // NVIDIA's runtime asks for no function at all, to see what comes
    report_once(std::string(name) + " is not supported: the simulated driver does not know this function");
  return {best == nullptr ? nullptr : reinterpret_cast<void*>(best->function), known};
}

}  // namespace manyscale::cuda_driver

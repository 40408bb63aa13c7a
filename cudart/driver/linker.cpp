// SPDX-License-Identifier: Apache-2.0
// Linking at run time: images are collected, and the server links them.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "runtime_calls.hpp"

using namespace manyscale::cuda_driver;

namespace {

// CUlinkState
struct Linker {
  std::vector<std::vector<std::byte>> images;
  std::vector<int> kinds;
  std::vector<std::byte> linked;  // what cuLinkComplete gave
  char* error_log = nullptr;
  std::size_t error_log_bytes = 0;
};

struct Linkers {
  std::mutex mutex;
  std::set<Linker*> known;
};

Linkers& linkers() {
  static auto& only = *new Linkers;
  return only;
}

bool is_known(Linker* linker) {
  const std::lock_guard lock(linkers().mutex);
  return linkers().known.contains(linker);
}

// Of the options, only the logs matter here: there is nothing to tell in them but errors.
void note_logs(Linker& linker, unsigned count, const int* names, void** values) {
  enum : int { information = 3, information_bytes = 4, error = 5, error_bytes = 6 };
  for (unsigned i = 0; i < count && names != nullptr && values != nullptr; ++i) {
    if ((names[i] == information || names[i] == error) && values[i] != nullptr)
      *static_cast<char*>(values[i]) = '\0';
    if (names[i] == error) linker.error_log = static_cast<char*>(values[i]);
    if (names[i] == error_bytes) linker.error_log_bytes = reinterpret_cast<std::size_t>(values[i]);
    if (names[i] == information_bytes || names[i] == error_bytes) values[i] = nullptr;
  }
}

Result add(Linker* linker, int kind, const void* data, std::size_t bytes) {
  constexpr int last_kind = 4;  // of a library; what comes after is for link-time optimisation
  if (!is_known(linker)) return invalid_handle;
  if (data == nullptr || bytes == 0 || kind < 0) return invalid_value;
  if (kind > last_kind) {
    report_once("cuLinkAddData: link-time optimisation is not supported");
    return not_supported;
  }
  const auto* first = static_cast<const std::byte*>(data);
  linker->images.emplace_back(first, first + bytes);
  linker->kinds.push_back(kind);
  return success;
}

Result add_file(Linker* linker, int kind, const char* path) {
  constexpr Result file_not_found{301};
  if (path == nullptr) return invalid_value;
  std::FILE* file = std::fopen(path, "rb");
  if (file == nullptr) return file_not_found;
  std::vector<char> bytes;
  char part[1 << 16];
  for (std::size_t got = 0; (got = std::fread(part, 1, sizeof part, file)) != 0;)
    bytes.insert(bytes.end(), part, part + got);
  std::fclose(file);
  // The part of the device runtime that programs are linked with only in case.
  if (std::strstr(path, "libcudadevrt") != nullptr) return is_known(linker) ? success : invalid_handle;
  return add(linker, kind, bytes.data(), bytes.size());
}

}  // namespace

extern "C" {

int cuLinkCreate_v2(unsigned count, int* names, void** values, Linker** state) {
  if (state == nullptr) return invalid_value;
  auto made = std::make_unique<Linker>();
  note_logs(*made, count, names, values);
  const std::lock_guard lock(linkers().mutex);
  linkers().known.insert(made.get());
  *state = made.release();
  return success;
}

int cuLinkCreate(unsigned count, int* names, void** values, Linker** state) {
  return cuLinkCreate_v2(count, names, values, state);
}

int cuLinkAddData_v2(Linker* state, int kind, void* data, std::size_t bytes, const char*, unsigned, int*,
                     void**) {
  return add(state, kind, data, bytes);
}

int cuLinkAddData(Linker* state, int kind, void* data, std::size_t bytes, const char*, unsigned, int*,
                  void**) {
  return add(state, kind, data, bytes);
}

int cuLinkAddFile_v2(Linker* state, int kind, const char* path, unsigned, int*, void**) {
  return add_file(state, kind, path);
}

int cuLinkAddFile(Linker* state, int kind, const char* path, unsigned, int*, void**) {
  return add_file(state, kind, path);
}

int cuLinkComplete(Linker* state, void** image, std::size_t* bytes) {
  if (!is_known(state)) return invalid_handle;
  if (image == nullptr || state->images.empty()) return invalid_value;
  const std::vector<std::vector<std::byte>>* images = &state->images;
  const std::vector<int>* kinds = &state->kinds;
  const Result error = runtime("__cudaLinkImages", &state->linked, images, kinds);
  if (error != success) {
    if (state->error_log != nullptr && state->error_log_bytes > 1)
      std::snprintf(state->error_log, state->error_log_bytes, "error %d: see the messages of the simulator",
                    static_cast<int>(error));
    return error;
  }
  *image = state->linked.data();
  if (bytes != nullptr) *bytes = state->linked.size();
  return success;
}

int cuLinkDestroy(Linker* state) {
  {
    const std::lock_guard lock(linkers().mutex);
    if (linkers().known.erase(state) == 0) return invalid_handle;
  }
  delete state;
  return success;
}

}  // extern "C"

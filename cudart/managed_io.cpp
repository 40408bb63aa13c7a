// SPDX-License-Identifier: Apache-2.0
// Reading and writing files straight from managed memory. The operating system does not send faults
// of its own accesses to our handler, but returns EFAULT. So these functions replace those of the C library:
// they migrate the pages to the host and call the original.
#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdio>

#include "managed.hpp"

namespace manyscale::cudart {

namespace {

// The function of that name which would have been called without us.
template <class Signature>
Signature* next(const char* name) {
  return reinterpret_cast<Signature*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

}  // namespace manyscale::cudart

using namespace manyscale::cudart;

extern "C" {

ssize_t read(int file, void* to, std::size_t bytes) {
  static auto* const real = next<decltype(read)>("read");
  touch_managed(to, bytes, true);
  return real(file, to, bytes);
}

ssize_t pread(int file, void* to, std::size_t bytes, off_t offset) {
  static auto* const real = next<decltype(pread)>("pread");
  touch_managed(to, bytes, true);
  return real(file, to, bytes, offset);
}

ssize_t pread64(int file, void* to, std::size_t bytes, off64_t offset) {
  static auto* const real = next<decltype(pread64)>("pread64");
  touch_managed(to, bytes, true);
  return real(file, to, bytes, offset);
}

ssize_t write(int file, const void* from, std::size_t bytes) {
  static auto* const real = next<decltype(write)>("write");
  touch_managed(from, bytes, false);
  return real(file, from, bytes);
}

ssize_t pwrite(int file, const void* from, std::size_t bytes, off_t offset) {
  static auto* const real = next<decltype(pwrite)>("pwrite");
  touch_managed(from, bytes, false);
  return real(file, from, bytes, offset);
}

ssize_t pwrite64(int file, const void* from, std::size_t bytes, off64_t offset) {
  static auto* const real = next<decltype(pwrite64)>("pwrite64");
  touch_managed(from, bytes, false);
  return real(file, from, bytes, offset);
}

std::size_t fread(void* to, std::size_t size, std::size_t count, std::FILE* file) {
  static auto* const real = next<decltype(fread)>("fread");
  touch_managed(to, size * count, true);
  return real(to, size, count, file);
}

std::size_t fwrite(const void* from, std::size_t size, std::size_t count, std::FILE* file) {
  static auto* const real = next<decltype(fwrite)>("fwrite");
  touch_managed(from, size * count, false);
  return real(from, size, count, file);
}

}  // extern "C"

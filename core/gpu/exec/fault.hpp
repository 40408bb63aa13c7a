// SPDX-License-Identifier: Apache-2.0
// What goes wrong inside a kernel.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>

namespace manyscale::gpu {

class Warp;
struct Op;

// Raised by a handler: what happened to which lane; whoever runs the warp adds where.
struct Fault : std::runtime_error {
  Fault(const std::string& what, unsigned lane) : std::runtime_error(what), lane(lane) {}
  unsigned lane;
};

// No warp of a CTA can go on.
struct Deadlock : std::exception {};

// The same with kernel, CTA, thread, instruction and source line, for people.
struct KernelFault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The kernel did not end within what it was allowed, or somebody asked to stop.
struct Stopped : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace manyscale::gpu

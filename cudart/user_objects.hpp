// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "abi.hpp"

namespace manyscale::cudart {

// Something of the program that graphs keep alive (cudaUserObject_t).
struct UserObject {
  void* pointer = nullptr;
  HostFunction destroy = nullptr;
  unsigned references = 1;
};

// Gives up references; without any left, the program's function is called.
void release_object(UserObject* object, unsigned count);

}  // namespace manyscale::cudart

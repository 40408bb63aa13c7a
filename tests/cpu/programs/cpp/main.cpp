// SPDX-License-Identifier: Apache-2.0
// Programs in C++: what the language and its library add.
#include "programs.hpp"

static const Entry entries[] = {
    {"containers", run_containers}, {"exceptions", run_exceptions}, {"streams", run_streams},
    {"threads", run_threads},       {"objects", run_objects},       {nullptr, nullptr},
};

int main(int argc, char** argv) {
  return run_suite(entries, argc, argv);
}

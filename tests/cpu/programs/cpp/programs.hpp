// SPDX-License-Identifier: Apache-2.0
// The programs of the C++ suite.
#pragma once
#include "../c/suite.h"

int run_containers(int argc, char** argv);
int run_exceptions(int argc, char** argv);
int run_streams(int argc, char** argv);
int run_threads(int argc, char** argv);
int run_objects(int argc, char** argv);

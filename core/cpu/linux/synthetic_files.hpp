// SPDX-License-Identifier: Apache-2.0
// Files that a program sees though no folder of the host has them: the few of
// /proc, /sys and /dev that C libraries and OpenMP runtimes read.
#pragma once
#include <memory>
#include <string>

#include "cpu/linux/kernel.hpp"
#include "cpu/linux/open_file.hpp"

namespace manyscale::cpu {

// The file of that name, or nullptr. The path has no `.` or `..`.
std::unique_ptr<OpenFile> open_synthetic(Kernel& kernel, Process& process, const std::string& path);
// Whether a path belongs to the simulated system and is never looked for in the
// host's folder.
bool is_synthetic_path(const std::string& path);

}  // namespace manyscale::cpu

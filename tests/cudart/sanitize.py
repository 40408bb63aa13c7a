# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of these tests with the CUDA runtime and themselves instrumented, and ends with 1 if one fails.

    python tests/cudart/sanitize.py address,undefined
    python tests/cudart/sanitize.py thread

Leaves out what stands before functions of the C library (managed_io.cpp), where the sanitizers stand themselves, and
programs that make faults on purpose. The thread sanitizer does not support memory at the addresses of the heap: under
it run programs that do not touch memory of the heap themselves, and their mappings are made past it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from cudart_support import COMPILER, PROGRAMS, run

SOURCES = Path(__file__).resolve().parents[2] / "cudart"
LEFT_OUT = {"managed_io.cpp", "abi_11.cpp", "abi_11_12.cpp", "abi_12.cpp"}
RUNS: list[tuple[str, dict[str, Any]]] = [
    ("launches", {}),
    ("copies", {}),
    ("memory", {"functional": False}),
    ("graphs", {"functional": False}),
    ("graph_branches", {"functional": False}),
    ("texture_references", {"functional": False}),
    ("threads", {"functional": False}),
    ("host_functions", {"functional": False}),
    ("fork", {}),
    ("peers", {"gpus": 3}),
]
FOR_THREADS = {"launches", "graphs", "graph_branches", "threads", "host_functions"}
OPTIONS = {
    # Whole pages are registered, with what lies around the program's memory.
    "ASAN_OPTIONS": "detect_leaks=0:replace_intrin=0",
    "TSAN_OPTIONS": "halt_on_error=1",
}
DIRECT_MAPPING = """#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
inline void* direct_mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset) {
  if (flags & MAP_FIXED_NOREPLACE) flags ^= MAP_FIXED_NOREPLACE | MAP_FIXED;  // the sanitizer keeps this free of others
  return reinterpret_cast<void*>(syscall(SYS_mmap, at, bytes, protection, flags, file, offset));
}
#define mmap direct_mmap
"""


def build_library(folder: Path, flags: list[str]) -> Path:
    """The runtime of CUDA 13, instrumented."""
    sources = [path for path in sorted(SOURCES.glob("*.cpp")) if path.name not in LEFT_OUT]
    objects = [folder / f"{path.stem}.o" for path in sources]

    def compile_one(source: Path, target: Path) -> None:
        command = [str(COMPILER), "-std=c++20", "-O1", "-g", "-fPIC", *flags, "-c", str(source)]
        subprocess.run([*command, "-o", str(target)], check=True)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(compile_one, sources, objects))
    library = folder / "libcudart.so.13"
    link = [str(COMPILER), "-shared", *flags, *map(str, objects), "-o", str(library)]
    subprocess.run([*link, "-Wl,-soname,libcudart.so.13", "-pthread", "-ldl"], check=True)
    return library


def main(sanitizers: str) -> int:
    """1 if a program failed."""
    flags = [f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]
    os.environ |= OPTIONS
    failed = False
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if sanitizers == "thread":
            (folder / "direct_mapping.hpp").write_text(DIRECT_MAPPING)
            flags += ["-include", str(folder / "direct_mapping.hpp")]
        library = build_library(folder, flags)
        os.environ["MANYSCALE_CUDART"] = name
        for program, options in RUNS:
            if sanitizers == "thread" and program not in FOR_THREADS:
                continue
            target, source = folder / program, PROGRAMS / f"{program}.cpp"
            command = [str(COMPILER), "-std=c++20", "-O1", "-g", *flags, str(source), "-o", str(target)]
            subprocess.run([*command, str(library), "-pthread"], check=True)
            done = run(target, **options)
            good = done == (0, "ok\n")
            failed = failed or not good
            print(f"{program}: {'ok' if good else done}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "address,undefined"))

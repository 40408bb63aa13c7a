# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of these tests with the CUDA runtime and themselves instrumented, and ends with 1 if one fails.

    python tests/cudart/sanitize.py address,undefined
    python tests/cudart/sanitize.py thread

Leaves out what stands before functions of the C library (managed_io.cpp), where the sanitizers stand themselves.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cudart_support import COMPILER, PROGRAMS, run

SOURCES = Path(__file__).resolve().parents[2] / "cudart"
LEFT_OUT = {"managed_io.cpp", "abi_11.cpp", "abi_11_12.cpp", "abi_12.cpp"}
RUNS: list[tuple[str, tuple[str, ...], dict[str, object]]] = [
    ("launches", (), {}),
    ("copies", (), {}),
    ("memory", (), {}),
    ("memory", (), {"functional": False}),
    ("graphs", (), {"functional": False}),
    ("graph_branches", (), {"functional": False}),
    ("texture_references", (), {"functional": False}),
    ("threads", (), {"functional": False}),
    ("host_functions", (), {"functional": False}),
    ("fork", (), {}),
    ("faults", (), {}),
    ("peers", (), {"gpus": 3}),
    ("properties", (), {}),
]


def build_library(folder: Path, flags: list[str]) -> Path:
    """The runtime of CUDA 13, instrumented."""
    sources = [path for path in sorted(SOURCES.glob("*.cpp")) if path.name not in LEFT_OUT]
    objects = [folder / f"{path.stem}.o" for path in sources]

    def compile_one(pair: tuple[Path, Path]) -> None:
        source, target = pair
        command = [
            str(COMPILER),
            "-std=c++20",
            "-O1",
            "-g",
            "-fPIC",
            *flags,
            "-c",
            str(source),
            "-o",
            str(target),
        ]
        subprocess.run(command, check=True)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(compile_one, zip(sources, objects, strict=True)))
    library = folder / "libcudart.so.13"
    link = [str(COMPILER), "-shared", *flags, *map(str, objects), "-o", str(library)]
    subprocess.run([*link, "-Wl,-soname,libcudart.so.13", "-pthread", "-ldl"], check=True)
    return library


def main(sanitizers: str) -> int:
    """The number of programs that failed, at most 1."""
    flags = [f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]
    failed = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        library = build_library(folder, flags)
        os.environ["MANYSCALE_CUDART"] = name
        for program, arguments, options in RUNS:
            target = folder / program
            if not target.exists():
                source = str(PROGRAMS / f"{program}.cpp")
                command = [
                    str(COMPILER),
                    "-std=c++20",
                    "-O1",
                    "-g",
                    *flags,
                    source,
                    "-o",
                    str(target),
                    str(library),
                ]
                subprocess.run([*command, "-pthread"], check=True)
            done = run(target, *arguments, **options)  # type: ignore[arg-type]
            good = done == (0, "ok\n")
            failed += [] if good else [program]
            print(f"{program} {' '.join(arguments)} {options or ''}: {'ok' if good else done}", flush=True)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "address,undefined"))

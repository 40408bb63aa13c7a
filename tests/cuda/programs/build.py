# SPDX-License-Identifier: Apache-2.0
"""Builds the CUDA programs of this folder with nvcc, and the fat binaries kept of them in `../fixtures`.

    python tests/cuda/programs/build.py FOLDER [NAME …]     executables into FOLDER
    python tests/cuda/programs/build.py --fixtures          the fat binaries, after a change of a program

A program is a `.cu` file, or a folder of them whose device code is linked. Its first lines may say `// nvcc: options`,
`// devices: how many GPUs it needs` and `// exits: its status if all is well`.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
FIXTURES = HERE.parent / "fixtures"
OPTIONS = ("-std=c++17", "-O2", "-arch=compute_75", "-cudart", "shared")

# One program in each way that a fat binary can be packed.
PACKED = {
    "vector_add-lz4": ("vector_add", ("--compress-mode=speed",)),
    "vector_add-plain": ("vector_add", ("--compress-mode=none",)),
    "vector_add-cubins": ("vector_add", ("-gencode=arch=compute_80,code=[sm_80,compute_80]",)),
}

NOT_KEPT = ("thrust_algorithms",)  # most of its kernels are the toolkit's

_DIRECTIVE = re.compile(r"// (nvcc|devices|exits): (.*)")


@dataclass(frozen=True)
class Program:
    """One program: its files, how it is compiled and how it is run."""

    name: str
    sources: tuple[Path, ...]
    options: tuple[str, ...] = ()
    devices: int = 1
    exits: int = 0

    @classmethod
    def at(cls, path: Path) -> Program:
        sources = tuple(sorted(path.glob("*.cu"))) if path.is_dir() else (path,)
        said: dict[str, str] = {}
        for source in sources:
            for line in source.read_text().splitlines()[:4]:
                if found := _DIRECTIVE.match(line):
                    said[found[1]] = found[2]
        options = tuple(said.get("nvcc", "").split()) + (("-rdc=true",) if path.is_dir() else ())
        return cls(path.stem, sources, options, int(said.get("devices", "1")), int(said.get("exits", "0")))

    def build(self, folder: Path) -> Path:
        """The executable; one built before from the same text is kept."""
        text = b"".join(path.read_bytes() for path in sorted(HERE.rglob("*")) if self._depends_on(path))
        digest = hashlib.sha256(text + repr((OPTIONS, self.options)).encode()).hexdigest()[:12]
        executable = folder / f"{self.name}-{digest}"
        if not executable.exists():
            folder.mkdir(parents=True, exist_ok=True)
            made = folder / f"{executable.name}.{os.getpid()}"
            compile_cuda([*OPTIONS, *self.options, "-o", str(made), *map(str, self.sources)])
            made.replace(executable)
        return executable

    def fat_binary(self, source: Path, target: Path, options: Sequence[str] = ()) -> None:
        """The fat binary of one of the files."""
        mine = [option for option in (*OPTIONS, *self.options) if option not in ("-cudart", "shared")]
        if any(option.startswith("-gencode") for option in options):
            mine.remove("-arch=compute_75")
        compile_cuda([*mine, *options, "-fatbin", "-o", str(target), str(source)])

    def _depends_on(self, path: Path) -> bool:
        return path in self.sources or path.suffix in (".hpp", ".cuh")


def programs() -> list[Program]:
    """All programs, by name."""
    folders = [path for path in HERE.iterdir() if path.is_dir() and any(path.glob("*.cu"))]
    return sorted(
        (Program.at(path) for path in [*HERE.glob("*.cu"), *folders]), key=lambda program: program.name
    )


def compile_cuda(arguments: Sequence[str]) -> None:
    """Runs nvcc; what it says against the program is the exception."""
    done = subprocess.run(
        [shutil.which("nvcc") or "nvcc", *arguments], capture_output=True, text=True, check=False, cwd=HERE
    )
    if done.returncode:
        raise RuntimeError(f"nvcc {' '.join(arguments)}\n{done.stdout}{done.stderr}")


def build_fixtures() -> None:
    """Every program's fat binaries."""
    by_name = {program.name: program for program in programs()}
    for program in by_name.values():
        if program.name in NOT_KEPT:
            continue
        for source in program.sources:
            name = program.name if len(program.sources) == 1 else f"{program.name}-{source.stem}"
            program.fat_binary(source, FIXTURES / f"{name}.fatbin")
    for name, (program_name, options) in PACKED.items():
        program = by_name[program_name]
        program.fat_binary(program.sources[0], FIXTURES / f"{name}.fatbin", options)


def main(arguments: Sequence[str]) -> None:
    if arguments == ["--fixtures"]:
        build_fixtures()
        return
    if not arguments:
        raise SystemExit(__doc__)
    folder, *names = arguments
    for program in programs():
        if not names or program.name in names:
            print(program.build(Path(folder).resolve()))


if __name__ == "__main__":
    main(sys.argv[1:])

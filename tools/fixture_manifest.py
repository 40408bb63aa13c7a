# SPDX-License-Identifier: Apache-2.0
"""Keeps `tests/fixtures.json`: for each stored binary its hash, the hashes of its sources, and the tools that made it.

`python tools/fixture_manifest.py` writes it after binaries were rebuilt. Hashes of C and CUDA sources leave out
comments and white space, since neither changes a program. `tests/test_fixtures.py` compares, and rebuilds where it can.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MANIFEST = ROOT / "tests/fixtures.json"
BINARY = {".xz", ".zip", ".elf", ".fatbin", ".cubin", ".gz", ".zst"}
GCC = "riscv64-linux-gnu-gcc (Debian 12.2.0-13) 12.2.0"
NVCC = "nvcc 13.0, V13.0.88"
PTXAS = "ptxas of nvidia-cuda-nvcc-cu12 (version not recorded)"


@dataclass(frozen=True)
class Fixture:
    """A stored binary: the sources it was made from, by what, and the script that makes it."""

    path: str
    sources: tuple[str, ...]
    tool: str
    script: str


def _paths(*patterns: str) -> tuple[str, ...]:
    found = {path for pattern in patterns for path in ROOT.glob(pattern) if path.is_file()}
    return tuple(sorted(str(path.relative_to(ROOT)) for path in found))


def _riscv_fixtures() -> Iterable[Fixture]:
    mpi = ("runtime/*.h", "runtime/mpi/*.c", "runtime/mpi/*.h")
    tests = "tests/cpu/programs"
    for path in _paths(f"{tests}/fixtures/*.xz"):
        name = Path(path).stem
        kind = name.partition("_")[0]
        if kind == "assembly":
            stem = "integer" if name == "assembly_static_pie" else name.removeprefix("assembly_")
            sources = _paths(f"{tests}/assembly/{stem}.S", f"{tests}/assembly/*.inc")
        else:
            sources = _paths(f"{tests}/{kind}/*", f"{tests}/c/suite.*")
        yield Fixture(path, sources, GCC, f"{tests}/build.py")
    samples = "src/manyscale/cpu/samples"
    yield Fixture(
        f"{samples}/heat.xz", _paths(f"{samples}/heat.c", "runtime/*.h"), GCC, f"{samples}/build.sh"
    )
    elastic = "examples/elastic/programs"
    yield Fixture(
        f"{samples}/elastic.xz", _paths(f"{elastic}/*.c", f"{elastic}/*.h"), GCC, f"{elastic}/build.py"
    )
    micro = "src/manyscale/validation/programs"
    yield Fixture(f"{micro}/micro.elf", _paths(f"{micro}/micro.c", "runtime/*.h"), GCC, f"{micro}/build.sh")
    for folder, stored in (
        ("tests/cpu/mpi_programs", "fixtures/programs.xz"),
        ("examples/projection/programs", "programs.xz"),
        ("src/manyscale/studies/projection/programs", "mpi_costs.xz"),
    ):
        sources = _paths(f"{folder}/*.c", f"{folder}/*.h", *mpi)
        yield Fixture(f"{folder}/{stored}", sources, GCC, f"{folder}/build.py")


def fixtures() -> list[Fixture]:
    """All stored binaries."""
    found = [*_riscv_fixtures()]
    programs = "tests/cuda/programs"
    for path in _paths("tests/cuda/fixtures/*.fatbin"):
        name, _, unit = Path(path).stem.partition("-")
        source = f"{name}/{unit}.cu" if (ROOT / programs / name).is_dir() else f"{name}.cu"
        sources = _paths(f"{programs}/{source}", f"{programs}/**/*.hpp", f"{programs}/**/*.cuh")
        found.append(Fixture(path, sources, NVCC, f"{programs}/build.py"))
    # Made from seeds by a generator; the test that runs them compares them with the generator's PTX.
    found += [
        Fixture(path, (), PTXAS, "tests/gpu/test_sass_random_programs.py")
        for path in _paths("tests/gpu/fixtures/**/random_programs.zip")
    ]
    return sorted(found, key=lambda fixture: fixture.path)


_COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.S)


def source_hash(path: Path) -> str:
    """The hash of a source without its comments and white space; of assembly, of all of it."""
    text = path.read_text(encoding="utf-8")
    if path.suffix not in (".S", ".inc"):
        text = _COMMENT.sub(lambda match: match[0] if match[0].startswith('"') else " ", text)
        text = " ".join(text.split())
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def manifest() -> dict[str, dict[str, object]]:
    """What the file should say of the tree as it is."""
    return {
        fixture.path: {
            "sha256": hashlib.sha256((ROOT / fixture.path).read_bytes()).hexdigest(),
            "tool": fixture.tool,
            "script": fixture.script,
            "sources": {source: source_hash(ROOT / source) for source in fixture.sources},
        }
        for fixture in fixtures()
    }


if __name__ == "__main__":
    MANIFEST.write_text(json.dumps(manifest(), indent=1) + "\n", encoding="utf-8")

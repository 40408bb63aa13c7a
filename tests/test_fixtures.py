# SPDX-License-Identifier: Apache-2.0
"""Stored binaries are what `tests/fixtures.json` says, come from the present sources, and can be built again."""

from __future__ import annotations

import importlib.util
import json
import lzma
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import fixture_manifest
from check_words import ROOT

MANIFEST = json.loads(fixture_manifest.MANIFEST.read_text(encoding="utf-8"))
FATBINS = sorted(path for path in MANIFEST if path.endswith(".fatbin"))
# One plain, one linked and one packed program; all of them in `make test-cuda`.
FEW = [path for path in FATBINS if Path(path).stem in ("bfs", "relocatable-shapes", "vector_add-lz4")]
PROGRAMS = sorted(path for path, entry in MANIFEST.items() if entry["tool"] == fixture_manifest.GCC)


def test_every_stored_binary_has_an_entry():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    stored = {path for path in listed.stdout.splitlines() if Path(path).suffix in fixture_manifest.BINARY}
    assert stored == MANIFEST.keys()


@pytest.mark.parametrize("path", sorted(MANIFEST))
def test_a_binary_and_its_sources_are_those_of_the_manifest(path: str):
    entry = fixture_manifest.manifest()[path]
    assert entry["sha256"] == MANIFEST[path]["sha256"], f"{path} has changed; run tools/fixture_manifest.py"
    changed = set(entry["sources"].items()) ^ set(MANIFEST[path]["sources"].items())
    assert not changed, f"sources of {path} have changed; build it again with {entry['script']}"
    assert entry["sources"] or path.endswith(".zip")
    assert (ROOT / entry["script"]).is_file()


def test_a_hash_of_a_source_leaves_out_comments_only(tmp_path: Path):
    first, second, third = (tmp_path / name for name in ("a.c", "b.c", "c.c"))
    first.write_text('int x = 1;  // one\nchar* s = "// kept";\n')
    second.write_text('/* two */ int x = 1;\n\nchar* s = "// kept";\n')
    third.write_text('int x = 1;\nchar* s = "// other";\n')
    assert fixture_manifest.source_hash(first) == fixture_manifest.source_hash(second)
    assert fixture_manifest.source_hash(first) != fixture_manifest.source_hash(third)


def script(path: str) -> ModuleType:
    """A build script as a module."""
    spec = importlib.util.spec_from_file_location("_".join(Path(path).with_suffix("").parts), ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def version(*command: str) -> str:
    if shutil.which(command[0]) is None:
        pytest.skip(f"no {command[0]}")
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("path", FATBINS if os.environ.get("MANYSCALE_ALL_CUDA") else FEW)
def test_fat_binaries_are_built_again_to_the_byte(path: str, tmp_path: Path):
    if "V13.0.88" not in version("nvcc", "--version"):
        pytest.skip(f"{path} was made by {fixture_manifest.NVCC}, another nvcc is installed")
    build = script("tests/cuda/programs/build.py")
    built = tmp_path / "built.fatbin"
    name = Path(path).stem
    by_name = {program.name: program for program in build.programs()}
    if name in build.PACKED:
        program_name, options = build.PACKED[name]
        by_name[program_name].fat_binary(by_name[program_name].sources[0], built, options)
    else:
        program_name, _, unit = name.partition("-")
        program = by_name[program_name]
        source = next(source for source in program.sources if source.stem == (unit or program_name))
        program.fat_binary(source, built)
    assert built.read_bytes() == (ROOT / path).read_bytes()


@pytest.mark.parametrize("path", PROGRAMS)
def test_riscv_programs_are_built_again_to_the_byte(path: str, tmp_path: Path):
    if version("riscv64-linux-gnu-gcc", "--version").splitlines()[0] != fixture_manifest.GCC:
        pytest.skip(f"{path} was made by {fixture_manifest.GCC}, another compiler is installed")
    built = _built(path, tmp_path)
    stored = (ROOT / path).read_bytes()
    assert built == (lzma.decompress(stored) if path.endswith(".xz") else stored)


def _built(path: str, folder: Path) -> bytes:
    """The program, compiled as its script does, into another folder."""
    how = MANIFEST[path]["script"]
    target = folder / "built"
    if how.endswith(".sh"):  # writes beside its sources: in a copy
        shutil.copytree(ROOT / "runtime", folder / "runtime")
        shutil.copytree((ROOT / how).parent, (folder / how).parent)
        subprocess.run(["sh", str(folder / how)], check=True)
        made = (folder / path).read_bytes()
        return lzma.decompress(made) if path.endswith(".xz") else made
    build = script(how)
    if how.startswith("tests/cpu/programs"):
        compiler, options, sources, libraries = build.BINARIES[Path(path).stem]
        command = [build.PREFIX + compiler, *options, *build.COMMON, *sources, *libraries, "-o", str(target)]
        subprocess.run(command, cwd=build.HERE, check=True)
    elif how.startswith("examples/elastic"):
        sources = sorted(source.name for source in build.HERE.glob("*.c"))
        command = [build.COMPILER, *build.OPTIONS, *sources, "-lm", "-o", str(target)]
        subprocess.run(command, cwd=build.HERE, check=True)
    else:
        names = {"tests": "mpi_programs", "examples": "programs", "src": "projection"}
        prefix_map = f"-ffile-prefix-map={build.HERE}={names[how.partition('/')[0]]}"
        sources = sorted(build.HERE.glob("*.c"))
        build.build(sources, target, mpi=True, options=[*build.OPTIONS, prefix_map])
    return target.read_bytes()

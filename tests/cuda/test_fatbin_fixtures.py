# SPDX-License-Identifier: Apache-2.0
"""Fat binaries that nvcc made of the programs beside this file: unpacked, linked, checked and run without nvcc."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from manyscale import InputError, gpu
from manyscale.cuda import fatbin, linking
from manyscale.cuda.loader import library_folder
from manyscale.gpu.assembler import find_assembler

pytestmark = pytest.mark.core

FIXTURES = Path(__file__).parent / "fixtures"
ALL = sorted(FIXTURES.glob("*.fatbin"))
PACKINGS = ("vector_add", "vector_add-lz4", "vector_add-plain", "vector_add-cubins")


def texts(name: str) -> list[bytes]:
    """The PTX of a fixture."""
    data = (FIXTURES / f"{name}.fatbin").read_bytes()
    return [image.ptx() for image in fatbin.images(data, name) if image.is_ptx]


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_all_of_a_program_can_be_executed(path: Path):
    """Every kernel of every program, with the other file's definitions where device code is linked."""
    linked = (
        ["relocatable-main", "relocatable-shapes"] if path.stem.startswith("relocatable") else [path.stem]
    )
    text = linking.link([text for name in linked for text in texts(name)])
    problems = [problem for kernel in gpu.check(text) for problem in kernel.problems]
    assert not problems


def test_each_packing_holds_the_same_kernel():
    """zstd, LZ4 and plain text: equal. For another GPU beside SASS: of the same name."""
    zstd, lz4, plain, other = (texts(name)[0] for name in PACKINGS)
    assert zstd == lz4 == plain
    assert b".target sm_75" in zstd
    assert b".target sm_80" in other
    for text in (zstd, other):
        assert list(gpu.parse(text).kernels) == ["_Z3addPKfS0_Pfi"]


def test_sass_is_distinguished_from_ptx():
    found = fatbin.images((FIXTURES / "vector_add-cubins.fatbin").read_bytes())
    assert sorted((image.is_ptx, image.architecture) for image in found) == [(False, 80), (True, 80)]


def test_files_of_one_program_share_functions_and_variables_but_not_what_is_static():
    linked = linking.link([*texts("relocatable-main"), *texts("relocatable-shapes")])
    kernels = gpu.parse(linked).kernels
    assert {"_Z5weighPK5ShapePfS2_i", "_Z14double_densityv"} <= set(kernels)
    alone = [problem.why for kernel in gpu.check(texts("relocatable-main")[0]) for problem in kernel.problems]
    assert any("_Z6weightRK5Shape is declared, but defined nowhere" in why for why in alone)


@pytest.mark.parametrize("name", PACKINGS)
def test_what_is_cut_off_or_changed_is_refused_in_words(name: str):
    """No prefix of a fat binary, and no changed byte of its headers, does more than raise an InputError."""
    data = (FIXTURES / f"{name}.fatbin").read_bytes()

    def unpack(broken: bytes) -> None:
        try:
            for image in fatbin.images(broken, name):
                image.unpacked()
        except InputError:
            pass

    for length in range(0, len(data), 7):
        unpack(data[:length])
    for at in range(80):
        for value in (0x00, 0x7F, 0xFF):
            unpack(data[:at] + bytes([value]) + data[at + 1 :])


CASES = {
    **dict.fromkeys(PACKINGS, "vector_add"),
    "constant_memory": "constant_memory",
    "queued_updates": "queued_updates",
    "scan": "scan",
    "histogram": "histogram",
}
FORMS = {
    "ptx-functional": ("--isa", "ptx", "--functional"),
    "sass-functional": ("--isa", "sass", "--functional"),
    "ptx-timed": ("--isa", "ptx"),
    "sass-timed": ("--isa", "sass"),
}


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The host's part, compiled by the C++ compiler against the simulator's own library."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("the host's part of a program needs g++")
    target = tmp_path_factory.mktemp("driver") / "driver"
    runtime = library_folder() / "libcudart.so.13"
    done = subprocess.run(
        [
            compiler,
            "-std=c++17",
            "-Wall",
            "-Wextra",
            "-Werror",
            FIXTURES / "driver.cpp",
            "-o",
            target,
            runtime,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture(scope="module", params=FORMS)
def outputs(
    request: pytest.FixtureRequest, driver: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    """What each case printed in a form, all run by one script on one simulated GPU."""
    if request.param.startswith("sass") and find_assembler() is None:
        pytest.skip("ptxas, which makes SASS of PTX, is not there")
    folder = tmp_path_factory.mktemp(request.param)
    script = folder / "all.sh"
    lines = [
        f"{driver} {FIXTURES / fixture}.fatbin {case} > {folder / fixture} 2>&1"
        for fixture, case in CASES.items()
    ]
    script.write_text("#!/bin/sh\n" + "\n".join(lines) + "\n")
    script.chmod(0o755)
    command = [Path(sys.executable).parent / "manyscale", "cuda", "--machine", "a100", *FORMS[request.param]]
    done = subprocess.run(
        [*command, "--", str(script)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return {fixture: (folder / fixture).read_text() for fixture in CASES}


@pytest.mark.parametrize("fixture", CASES)
def test_a_program_without_nvcc_computes_what_it_should(fixture: str, outputs: dict[str, str]):
    assert outputs[fixture] == "ok\n"

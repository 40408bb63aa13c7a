# SPDX-License-Identifier: Apache-2.0
"""Programs into which a CUDA runtime is linked, as nvcc does by default, run with the simulator's, stripped or not."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from host_programs import sums_program

from manyscale.cli.app import main
from manyscale.cuda.executable import Executable
from manyscale.cuda.loader import find_static_runtime, library_folder, static_archives
from sanitizers import SANITIZED

pytestmark = pytest.mark.core

PROGRAMS = Path(__file__).parent / "programs"
NOT_FIRST = "where programs are audited as they load, a sanitizer's library is not the first"

# A runtime that fails in every function: what a program gets from the simulator comes from nowhere else.
RUNTIME = """
#define FAILS(name) extern "C" __attribute__((visibility("hidden"), noinline)) long name(long a, long b) { \\
    return outside(#name, a, b); }
extern "C" long outside(const char*, long, long);
FAILS(__cudaRegisterFatBinary) FAILS(__cudaRegisterFatBinaryEnd) FAILS(__cudaUnregisterFatBinary)
FAILS(__cudaRegisterFunction) FAILS(__cudaPushCallConfiguration) FAILS(__cudaPopCallConfiguration)
FAILS(cudaGetDeviceCount) FAILS(cudaMalloc) FAILS(cudaFree) FAILS(cudaMemcpy) FAILS(cudaLaunchKernel)
FAILS(cudaDeviceSynchronize) FAILS(cudaGetLastError) FAILS(cudaMemset) FAILS(cudaLibraryLoadData)
FAILS(cudaLibraryGetKernel) FAILS(cudaLibraryUnload)
// Long code without an address: by this the runtime is recognised.
extern "C" __attribute__((visibility("hidden"), used)) unsigned long mixed(unsigned long a) {
  MIXED
  return a;
}
""".replace("MIXED", "\n".join(f"a = (a ^ {0x1234567 * i}) * {0x7654321 + 2 * i};" for i in range(1, 16)))
OUTSIDE = """
#include <cstdio>
#include <cstdlib>
extern "C" long outside(const char* name, long, long) { std::printf("%s\\n", name); std::exit(9); }
__attribute__((section(".nvFatBinSegment"), used)) static const int wrapper[6] = {};
"""


def compile_with(folder: Path, *arguments: str) -> None:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("programs are compiled by g++")
    subprocess.run([compiler, f"-I{folder}", *arguments], cwd=folder, check=True)


def make_archive(folder: Path, more: str = "") -> Path:
    """A runtime for linking, `libcudart_static.a`, in a folder like that of a toolkit."""
    (folder / "lib64").mkdir(parents=True)
    (folder / "runtime.cpp").write_text(RUNTIME + "".join(f"FAILS({name})" for name in more.split()))
    compile_with(folder, "-O1", "-fPIC", "-c", "runtime.cpp", "-o", "runtime.o")
    archive = folder / "lib64" / "libcudart_static.a"
    subprocess.run(["ar", "rcs", str(archive), str(folder / "runtime.o")], check=True)
    return archive


@pytest.fixture
def static_sums(tmp_path: Path) -> Path:
    """`fixtures/sums.cpp`, linked with a runtime of its own."""
    shared = sums_program(tmp_path)
    archive = make_archive(tmp_path)
    (tmp_path / "outside.cpp").write_text(OUTSIDE)
    compile_with(tmp_path, "sums.cpp", "outside.cpp", str(archive), "-o", "static_sums")
    assert shared.exists()
    return tmp_path / "static_sums"


def run(
    program: Path, *arguments: str, out: Path | None = None, options: Sequence[str] = ()
) -> tuple[int, str, dict[str, object]]:
    """The exit code, the output of the program and the headline."""
    folder = out or program.parent
    directory = folder / f"run-of-{program.name}-{len(list(folder.iterdir()))}"
    command = [sys.executable, "-m", "manyscale.cli.app", "cuda", *options, "--out", str(directory)]
    command += ["--", str(program), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    headline = {}
    if (directory / "run.json").exists():
        headline = json.loads((directory / "run.json").read_text())["headline"]
    return done.returncode, done.stdout + done.stderr * (done.returncode != 0), headline


def same_numbers(first: dict[str, object], second: dict[str, object]) -> bool:
    names = first.keys() - {"wall_seconds", "directory"}
    return bool(names) and all(first[name] == second[name] for name in names)


@pytest.mark.skipif(SANITIZED, reason=NOT_FIRST)
def test_a_runtime_that_is_linked_in_is_replaced(static_sums: Path) -> None:
    """With the same results, times and records as with the shared one."""
    shared = run(static_sums.with_name("sums"), "5")
    assert shared[:2] == (0, "94 94\n")
    linked = run(static_sums, "5")
    assert linked[:2] == shared[:2]
    assert same_numbers(linked[2], shared[2])
    outside = subprocess.run([str(static_sums), "5"], capture_output=True, text=True, check=False)
    assert (outside.returncode, outside.stdout) == (9, "__cudaRegisterFatBinary\n")


@pytest.mark.parametrize("driver", ["libcuda.so.1", "libother.so.1"])
def test_a_library_without_device_code_has_a_runtime_if_it_names_the_driver(
    driver: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = make_archive(tmp_path)
    (tmp_path / "plain.cpp").write_text(
        f"""
extern "C" unsigned long mixed(unsigned long);
extern "C" const char* name() {{ return "{driver}"; }}
extern "C" long outside(const char*, long, long) {{ return static_cast<long>(mixed(1)); }}
"""
    )
    whole = ["-Wl,--whole-archive", str(archive), "-Wl,--no-whole-archive"]
    compile_with(tmp_path, "-shared", "-fPIC", "-s", "plain.cpp", *whole, "-o", "libplain.so")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    static_archives.cache_clear()
    found = find_static_runtime(tmp_path / "libplain.so")
    static_archives.cache_clear()
    assert found == ("libcudart.so.13" if driver == "libcuda.so.1" else None)


def test_a_runtime_that_a_shell_starts_is_replaced(static_sums: Path) -> None:
    assert run(Path("/bin/sh"), "-c", f"{static_sums} 5", out=static_sums.parent)[:2] == (0, "94 94\n")


@pytest.mark.skipif(SANITIZED, reason=NOT_FIRST)
def test_a_stripped_program_needs_the_library_that_it_was_linked_with(
    static_sums: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["strip", str(static_sums)], check=True)
    static_archives.cache_clear()
    assert main(["check", str(static_sums), "--json"]) == 1
    (problem,) = json.loads(capsys.readouterr().out)["files"][0]["problems"]
    assert "its libcudart_static.a is enough" in problem["why"]
    code, output, _ = run(static_sums, "5")
    assert code == 2
    assert "which is stripped" in output
    monkeypatch.setenv("CUDA_HOME", str(static_sums.parent))
    static_archives.cache_clear()
    assert main(["check", str(static_sums), "--json"]) == 0
    assert run(static_sums, "5")[:2] == (0, "94 94\n")
    static_archives.cache_clear()


def test_a_runtime_beside_the_packages_of_a_library_is_found(
    static_sums: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["strip", str(static_sums)], check=True)
    packages = tmp_path / "lib" / "python3.12" / "site-packages"
    library, archive = (
        packages / "warp" / "warp.so",
        packages / "nvidia" / "cu13" / "lib" / "libcudart_static.a",
    )
    for path, source in ((library, static_sums), (archive, static_sums.parent / "lib64" / archive.name)):
        path.parent.mkdir(parents=True)
        shutil.copy(source, path)
    assert Executable.read(library).static_runtime == "libcudart.so.13"
    assert str(archive) in static_archives(tmp_path / "bin" / "python3").split(":")


def test_the_remedy_names_the_release_that_compiled_the_code(static_sums: Path, tmp_path: Path) -> None:
    subprocess.run(["strip", str(static_sums)], check=True)
    texts = [b"Cuda compilation tools, release %s, V13.0.1\0" % release for release in (b"12.9", b"13.4")]
    for count, remedy in (
        (2, "nvidia-cuda-runtime==13.4.*"),
        (1, "nvidia-cuda-runtime-cu12==12.9.*"),
        (0, ""),
    ):
        program = tmp_path / f"program-{count}"
        program.write_bytes(static_sums.read_bytes() + b"".join(texts[:count]))
        problem = Executable.read(program).runtime_problem
        assert problem is not None
        assert remedy in problem
        assert ("pip install" in problem) == (count > 0)


def test_another_version_of_the_runtime_is_not_taken_for_it(
    static_sums: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["strip", str(static_sums)], check=True)
    make_archive(tmp_path / "other", "cudaSetDevice")  # the code that recognises it is the same
    monkeypatch.setenv("MANYSCALE_CUDART_STATIC", str(tmp_path / "other" / "lib64" / "libcudart_static.a"))
    static_archives.cache_clear()
    assert Executable.read(static_sums).static_runtime is None
    archive = static_sums.parent / "lib64" / "libcudart_static.a"
    monkeypatch.setenv("MANYSCALE_CUDART_STATIC", str(archive))
    assert Executable.read(static_sums).static_runtime == "libcudart.so.13"


@pytest.mark.parametrize(
    ("functions", "library"),
    [
        ("cudaBindTexture cudaGetDeviceProperties", "libcudart.so.11.0"),
        ("cudaGetDeviceProperties_v2 cudaGetDeviceProperties", "libcudart.so.12"),
        ("cudaGetDeviceProperties", "libcudart.so.13"),
    ],
)
def test_the_version_of_a_runtime_shows_in_its_functions(
    tmp_path: Path, functions: str, library: str
) -> None:
    archive = make_archive(tmp_path, functions)
    (tmp_path / "outside.cpp").write_text(OUTSIDE + "int main() { return 0; }")
    compile_with(
        tmp_path,
        "outside.cpp",
        "-Wl,--whole-archive",
        str(archive),
        "-Wl,--no-whole-archive",
        "-o",
        "program",
    )
    assert Executable.read(tmp_path / "program").static_runtime == library
    find = ctypes.CDLL(str(library_folder() / "libmanyscale-interposer.so")).manyscale_find_runtime
    find.restype = ctypes.c_char_p
    assert find(os.fsencode(tmp_path / "program"), b"") == library.encode()


def test_a_runtime_in_a_library_that_is_loaded_later_is_replaced(tmp_path: Path) -> None:
    archive = make_archive(tmp_path)
    (tmp_path / "outside.cpp").write_text(
        OUTSIDE + 'extern "C" int cudaGetDeviceCount(int*);\n'
        'extern "C" int devices() { int count = -1; return cudaGetDeviceCount(&count) == 0 ? count : -1; }'
    )
    compile_with(tmp_path, "-shared", "-fPIC", "outside.cpp", str(archive), "-o", "libwork.so")
    (tmp_path / "loads.cpp").write_text(
        '#include <cstdio>\n#include <dlfcn.h>\nint main() { void* work = dlopen("./libwork.so", RTLD_NOW);\n'
        'std::printf("%d\\n", reinterpret_cast<int (*)()>(dlsym(work, "devices"))()); }'
    )
    compile_with(tmp_path, "loads.cpp", "-o", "loads", "-ldl")
    assert run(tmp_path / "loads")[:2] == (0, "1\n")


@pytest.mark.long
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on the PATH")
@pytest.mark.parametrize("name", ["vector_add", "streams_events", "managed_memory"])
def test_a_program_as_nvcc_builds_it_runs_as_with_the_shared_runtime(tmp_path: Path, name: str) -> None:
    source = str(PROGRAMS / f"{name}.cu")
    common = ["-std=c++17", "-arch=compute_75"]
    subprocess.run(["nvcc", *common, "-c", source, "-o", "object.o"], cwd=tmp_path, check=True)
    for kind in ("static", "shared"):
        subprocess.run(["nvcc", "-cudart", kind, "object.o", "-o", kind], cwd=tmp_path, check=True)
    shutil.copy(tmp_path / "static", tmp_path / "stripped")
    subprocess.run(["strip", str(tmp_path / "stripped")], check=True)
    static, shared, stripped = (
        run(tmp_path / kind, options=("--machine", "a100")) for kind in ("static", "shared", "stripped")
    )
    assert static[0] == 0, static[1]
    assert static[:2] == shared[:2] == stripped[:2]
    assert same_numbers(static[2], shared[2])
    assert same_numbers(stripped[2], shared[2])

# SPDX-License-Identifier: Apache-2.0
"""Functions of the driver that are not there, and other runtimes: found before the run, and never a hang."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from manyscale.cli.app import main
from manyscale.cuda.loader import library_folder

pytestmark = pytest.mark.core

TABLE = Path(__file__).parents[2] / "cudart" / "driver" / "functions.inc"
DRIVER = str(library_folder() / "libcuda.so.1")

# Calls a function that is there, one that is not, and functions by name.
CALLS = r"""
#include <initializer_list>
#include <cstdio>
extern "C" {
int cuInit(unsigned);
int cuGreenCtxCreate(void**, void*, int, unsigned);
int cuGetProcAddress_v2(const char*, void**, int, unsigned long, int*);
}
int main() {
  std::printf("init %d\n", cuInit(0));
  for (int i = 0; i < 3; ++i) std::printf("create %d\n", cuGreenCtxCreate(nullptr, nullptr, 0, 0));
  for (const char* name : {"cuMulticastCreate", "cuCtxCreate", "cuInventedByNobody"}) {
    for (int version : {1000, 12000, 13000}) {
      void* function = nullptr;
      int status = -1;
      const int error = cuGetProcAddress_v2(name, &function, version, 0, &status);
      std::printf("%s %d: %d %d", name, version, error, status);
      if (function != nullptr && version != 12000)
        std::printf(", returns %d", reinterpret_cast<int (*)(void*, void*, int, int)>(function)(0, 0, 0, 0));
      std::printf("\n");
    }
  }
}
"""
# A CUDA runtime as NVIDIA's, as far as it concerns us: it loads the driver at its first call, while it holds a lock.
RUNTIME = r"""
#include <dlfcn.h>
#include <pthread.h>
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int result;
static void initialize() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  result = driver == nullptr ? 35 : reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"))(0);
}
extern "C" int cudaGetDeviceCount(int* count) {
  pthread_once(&once, initialize);
  if (result == 0) *count = 1;
  return result;
}
"""
COUNTS = r"""
#include <cstdio>
extern "C" int cudaGetDeviceCount(int*);
int main() {
  int count = -1;
  const int error = cudaGetDeviceCount(&count);
  std::printf("error %d, devices %d\n", error, count);
}
"""
# Whoever has the runtime, among others through dlopen without RTLD_GLOBAL, as Python loads its modules.
LOADS = r"""
#include <cstdio>
#include <dlfcn.h>
int main(int, char** arguments) {
  void* library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return std::puts(dlerror()), 1;
  int count = -1;
  const int error = reinterpret_cast<int (*)(int*)>(dlsym(library, "cudaGetDeviceCount"))(&count);
  std::printf("error %d, devices %d\n", error, count);
}
"""


def compiled(folder: Path, name: str, source: str, *options: str) -> Path:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("programs are compiled by g++")
    (folder / f"{name}.cpp").write_text(source)
    subprocess.run(
        [compiler, str(folder / f"{name}.cpp"), "-o", str(folder / name), *options, "-ldl"], check=True
    )
    return folder / name


def cuda(*program: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "manyscale.cli.app", "cuda", "--functional", "--", *program]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=30)


def problems(program: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    code = main(["check", str(program), "--json"])
    data = json.loads(capsys.readouterr().out)
    assert code == (0 if data["supported"] else 1)
    return {row["what"]: row["why"] for row in data["files"][0]["problems"]}


def test_the_driver_has_all_functions_of_its_table() -> None:
    """A program may be linked with any of them; those that are not supported are in a section of their own."""
    if not TABLE.exists():
        pytest.skip("only in a checkout")
    names = set(re.findall(r"^FUNCTION\((\w+),", TABLE.read_text(), re.MULTILINE))
    assert len(names) > 600
    with open(DRIVER, "rb") as file:
        elf = ELFFile(file)
        symbols = {
            symbol.name: elf.get_section(symbol["st_shndx"]).name
            for symbol in elf.get_section_by_name(".dynsym").iter_symbols()
            if isinstance(symbol["st_shndx"], int)
        }
    functions = {name for name in symbols if re.match(r"cu[A-Z]", name)}
    assert functions == names
    assert symbols["cuGreenCtxCreate"] == "unsupported"
    assert symbols["cuCtxCreate_v2"] == ".text"


def test_a_function_that_is_missing_is_named_and_returns_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = compiled(tmp_path, "calls", CALLS, DRIVER)
    found = problems(program, capsys)
    assert found.keys() == {"cuGreenCtxCreate", "cuMulticastCreate"}
    assert found["cuGreenCtxCreate"] == "it is not supported, and returns CUDA_ERROR_NOT_SUPPORTED"
    assert found["cuMulticastCreate"].startswith("it is asked for by name")
    done = cuda(str(program), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "init 0",
        *["create 801"] * 3,
        "cuMulticastCreate 1000: 500 2",
        "cuMulticastCreate 12000: 500 2",
        "cuMulticastCreate 13000: 0 0, returns 801",
        "cuCtxCreate 1000: 500 2",
        "cuCtxCreate 12000: 0 0",
        "cuCtxCreate 13000: 0 0, returns 1",
        *[f"cuInventedByNobody {version}: 500 1" for version in (1000, 12000, 13000)],
    ]
    for name in ("cuGreenCtxCreate", "cuMulticastCreate", "cuInventedByNobody"):
        assert done.stderr.count(f"manyscale: {name} is not supported") == 1


# Calls each function that is named on the command line twice: by its symbol, and as cuGetProcAddress finds it.
CALLS_ALL = """
import ctypes, sys
driver = ctypes.CDLL("libcuda.so.1")
driver.cuInit(0)
for word in open(sys.argv[1]).read().split():
    symbol, name, since, thread = word.split(",")
    by_symbol = getattr(driver, symbol)()
    found, status = ctypes.c_void_p(), ctypes.c_int(-1)
    flags = ctypes.c_uint64(2 if thread == "1" else 1)
    error = driver.cuGetProcAddress_v2(name.encode(), ctypes.byref(found), int(since), flags, ctypes.byref(status))
    same = found.value == ctypes.cast(getattr(driver, symbol), ctypes.c_void_p).value
    print(symbol, by_symbol, error, status.value, same)
"""


def test_each_function_that_is_missing_says_so_once_with_its_caller(tmp_path: Path) -> None:
    """Found by its symbol and by name, it returns CUDA_ERROR_NOT_SUPPORTED."""
    if not TABLE.exists():
        pytest.skip("only in a checkout")
    rows = re.findall(r"^FUNCTION\((\w+), (\w+), (\d+), (\d)\)", TABLE.read_text(), re.MULTILINE)
    with open(DRIVER, "rb") as file:
        elf = ELFFile(file)
        missing = {
            symbol.name
            for symbol in elf.get_section_by_name(".dynsym").iter_symbols()
            if isinstance(symbol["st_shndx"], int)
            and elf.get_section(symbol["st_shndx"]).name == "unsupported"
            and symbol.name != "cuGetExportTable"  # which has some tables
        }
    rows = [row for row in rows if row[0] in missing]
    assert len(rows) > 100
    (tmp_path / "names").write_text("\n".join(",".join(row) for row in rows))
    (tmp_path / "calls.py").write_text(CALLS_ALL)
    done = cuda(sys.executable, "calls.py", "names", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    since = {symbol: int(version) for symbol, _, version, _ in rows}
    for line in done.stdout.splitlines():
        symbol, by_symbol, error, status, same = line.split()
        assert by_symbol == "801", line
        assert (error, status, same) == ("0", "0", "True") or since[symbol] == 0, line
        (told,) = re.findall(rf"manyscale: {symbol} is not supported: .* to (\S+)\n", done.stderr)
        assert Path(told).exists(), told


def test_functions_that_a_library_of_the_program_needs_are_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = 'extern "C" int cuMulticastUnbind(); int work() { return cuMulticastUnbind(); }'
    library = compiled(tmp_path, "libwork.so", source, "-shared", "-fPIC", "-Wl,-soname,libwork.so", DRIVER)
    program = compiled(
        tmp_path,
        "uses",
        "int work(); int main() { return work() == 801 ? 0 : 1; }",
        str(library),
        f"-Wl,-rpath,{tmp_path},-rpath-link,{library_folder()}",
    )
    found = problems(program, capsys)
    assert found == {
        "cuMulticastUnbind": "it is not supported, and returns CUDA_ERROR_NOT_SUPPORTED (in libwork.so)"
    }
    done = cuda(str(program), cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A folder with another runtime."""
    folder = tmp_path / "foreign"
    folder.mkdir()
    compiled(folder, "libcudart.so.12", RUNTIME, "-shared", "-fPIC", "-Wl,-soname,libcudart.so.12")
    return folder


def check_message(done: subprocess.CompletedProcess[str], foreign: Path) -> None:
    assert done.stdout == "error 801, devices -1\n"
    assert f"the program has loaded another CUDA runtime, {foreign}/libcudart.so.12" in done.stderr
    assert done.stderr.count("another CUDA runtime") == 1
    assert f"env LD_PRELOAD={library_folder()}/libcudart.so.12 PROGRAM" in done.stderr


WITHOUT_INTERPOSER = ("env", "-u", "LD_AUDIT")


def test_another_runtime_by_rpath_is_replaced(
    foreign: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where it cannot be replaced, it does not hang, and the advice in the message works."""
    options = (str(foreign / "libcudart.so.12"), "-Wl,--disable-new-dtags", f"-Wl,-rpath,{foreign}")
    program = compiled(tmp_path, "counts", COUNTS, *options)
    assert problems(program, capsys) == {}
    assert cuda(str(program), cwd=tmp_path).stdout == "error 0, devices 1\n"
    check_message(cuda(*WITHOUT_INTERPOSER, str(program), cwd=tmp_path), foreign)
    preload = f"LD_PRELOAD={library_folder() / 'libcudart.so.12'}"
    helped = cuda(*WITHOUT_INTERPOSER, preload, str(program), cwd=tmp_path)
    assert helped.stdout == "error 0, devices 1\n"


@pytest.mark.parametrize("name", ["libcudart.so.12", "libcudart-1f2e3d4c.so.12.8.90"])
def test_another_runtime_that_a_module_loads_is_replaced(foreign: Path, tmp_path: Path, name: str) -> None:
    (foreign / "libcudart.so.12").rename(foreign / name)
    program = compiled(tmp_path, "loads", LOADS)
    done = cuda(str(program), str(foreign / name), cwd=tmp_path)
    assert done.stdout == "error 0, devices 1\n", done.stderr


def test_another_runtime_that_only_a_module_sees_does_not_hang(foreign: Path, tmp_path: Path) -> None:
    program = compiled(tmp_path, "loads", LOADS)
    library = str(foreign / "libcudart.so.12")
    check_message(cuda(*WITHOUT_INTERPOSER, str(program), library, cwd=tmp_path), foreign)


def test_a_runtime_that_asks_for_private_tables_is_told(tmp_path: Path) -> None:
    source = """
#include <cstdio>
extern "C" int cuGetExportTable(const void**, const void*);
int main() {
  const void* table = &table;
  const char name[17] = "0123456789abcdef";
  for (int i = 0; i < 2; ++i) {
    const int error = cuGetExportTable(&table, name);
    std::printf("%d %d\\n", error, table == nullptr);
  }
}
"""
    program = compiled(tmp_path, "asks", source, DRIVER)
    done = cuda(str(program), cwd=tmp_path)
    assert done.stdout == "801 1\n801 1\n"
    assert done.stderr.count(f"{program} asks for table 30313233-3435-3637-3839-616263646566") == 1


def test_our_runtime_that_only_a_module_sees_is_found(tmp_path: Path) -> None:
    source = LOADS.replace("int count", 'dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL); int count')
    source = source.replace('dlsym(library, "cudaGetDeviceCount")', 'dlsym(RTLD_DEFAULT, "cuDeviceGetCount")')
    program = compiled(tmp_path, "loads", source)
    done = cuda(str(program), "libcudart.so.12", cwd=tmp_path)
    assert done.stdout == "error 0, devices 1\n", done.stderr

# SPDX-License-Identifier: Apache-2.0
"""NVML (libnvidia-ml.so.1) tells of the simulated GPUs what their machine states, before CUDA is used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from manyscale.cuda.loader import library_folder

pytestmark = pytest.mark.core

HEAD = """
import ctypes, os, sys
nvml = ctypes.CDLL("libnvidia-ml.so.1")
def ask(name, *arguments):
    return getattr(nvml, name)(*arguments)
def number(name, *arguments, kind=ctypes.c_uint):
    value = kind()
    error = ask(name, *arguments, ctypes.byref(value))
    return value.value if error == 0 else f"error {error}"
def text(name, device):
    room = ctypes.create_string_buffer(96)
    return room.value.decode() if ask(name, device, room, 96) == 0 else None
def device(index):
    return ctypes.c_void_p(number("nvmlDeviceGetHandleByIndex_v2", index, kind=ctypes.c_void_p))
"""


def told(code: str, tmp_path: Path, *options: str) -> list[str]:
    """What a Python program prints on a node with two GPUs."""
    command = [
        sys.executable,
        "-m",
        "manyscale.cli.app",
        "cuda",
        "--functional",
        "--gpus",
        "2",
        *options,
        "--",
    ]
    done = subprocess.run(
        [*command, sys.executable, "-c", HEAD + code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_devices_are_what_the_machine_states(tmp_path: Path) -> None:
    code = """
print(number("nvmlDeviceGetCount_v2"))
print(ask("nvmlInit_v2"), number("nvmlDeviceGetCount_v2"), number("nvmlDeviceGetHandleByIndex_v2", 2))
one = device(1)
major, minor = ctypes.c_int(), ctypes.c_int()
error = ask("nvmlDeviceGetCudaComputeCapability", one, ctypes.byref(major), ctypes.byref(minor))
print(error, major.value, minor.value)
print(text("nvmlDeviceGetName", one), number("nvmlDeviceGetIndex", one))
print(number("nvmlDeviceGetClockInfo", one, 1), number("nvmlDeviceGetMemoryBusWidth", one))
memory = (ctypes.c_ulonglong * 3)()
print(ask("nvmlDeviceGetMemoryInfo", one, memory), memory[0] == memory[1] + memory[2], memory[2])
uuid = text("nvmlDeviceGetUUID", one)
print(number("nvmlDeviceGetHandleByUUID", uuid.encode(), kind=ctypes.c_void_p) == one.value)
print(number("nvmlDeviceGetHandleByPciBusId_v2", b"0000:02:00.0", kind=ctypes.c_void_p) == one.value)
print(number("nvmlDeviceGetHandleByPciBusId_v2", b"0000:09:00.0", kind=ctypes.c_void_p))
print(number("nvmlDeviceGetP2PStatus", one, device(0), 0), number("nvmlDeviceGetP2PStatus", one, device(0), 2))
print(number("nvmlDeviceGetPowerUsage", one), number("nvmlDeviceGetTemperature", one, 0))
print(ask("nvmlShutdown"), ask("nvmlShutdown"), number("nvmlDeviceGetCount_v2"))
"""
    assert told(code, tmp_path, "--machine", "a100") == [
        "error 1",
        "0 2 error 2",
        "0 8 0",
        "Manyscale a100 1",
        "1410 5120",
        "0 True 0",
        "True",
        "True",
        "error 6",
        "0 5",
        "error 3 error 3",
        "0 1 error 1",
    ]


def test_memory_and_processes_are_those_of_cuda_programs(tmp_path: Path) -> None:
    code = """
ask("nvmlInit_v2")
cuda = ctypes.CDLL("libcudart.so.13")
pointer = ctypes.c_void_p()
print(cuda.cudaSetDevice(1), cuda.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(1 << 20)))
class Process(ctypes.Structure):
    _fields_ = [("process", ctypes.c_uint), ("bytes", ctypes.c_ulonglong), ("a", ctypes.c_uint), ("b", ctypes.c_uint)]
for index in range(2):
    memory = (ctypes.c_ulonglong * 3)()
    ask("nvmlDeviceGetMemoryInfo", device(index), memory)
    rows, count = (Process * 4)(), ctypes.c_uint(4)
    error = ask("nvmlDeviceGetComputeRunningProcesses_v3", device(index), ctypes.byref(count), rows)
    print(memory[2], error, [(row.process == os.getpid(), row.bytes) for row in rows[: count.value]])
"""
    assert told(code, tmp_path) == ["0 0", "0 0 []", f"{1 << 20} 0 [(True, {1 << 20})]"]


def test_asking_does_not_keep_a_process_from_forking(tmp_path: Path) -> None:
    """As PyTorch does, which counts GPUs before its workers are forked."""
    code = """
ask("nvmlInit_v2")
print(number("nvmlDeviceGetCount_v2"), flush=True)
child = os.fork()
if child:
    os.waitpid(child, 0)
count = ctypes.c_int()
print(ctypes.CDLL("libcudart.so.13").cudaGetDeviceCount(ctypes.byref(count)), count.value, flush=True)
"""
    assert told(code, tmp_path) == ["2", "0 2", "0 2"]


def test_without_a_simulator_no_driver_is_loaded() -> None:
    code = HEAD + 'print(ask("nvmlInit_v2"))'
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"LD_LIBRARY_PATH": str(library_folder())},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "9\n"


def test_all_functions_are_there() -> None:
    table = Path(__file__).parents[2] / "cudart" / "nvml" / "functions.inc"
    if not table.exists():
        pytest.skip("only in a checkout")
    names = {
        line[len("FUNCTION(") : -1] for line in table.read_text().splitlines() if line.startswith("FUNCTION")
    }
    with open(library_folder() / "libnvidia-ml.so.1", "rb") as file:
        symbols = ELFFile(file).get_section_by_name(".dynsym").iter_symbols()
        assert {symbol.name for symbol in symbols if symbol.name.startswith("nvml")} == names

# SPDX-License-Identifier: Apache-2.0
"""Running the CUDA programs of `programs/` from their PTX fixtures, for the tests beside this file."""

from __future__ import annotations

import functools
import os
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from manyscale import InputError, gpu, load_machine
from manyscale.gpu.assembler import find_assembler
from traffic_support import WatchedCommands, check_profile, check_sums, check_traffic, watch

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
FIXTURES = HERE / "fixtures"
ISA = os.environ.get("MANYSCALE_TEST_ISA", "ptx")
"""What the programs run as, unless a test says so itself: "ptx" or, to have all of them as SASS, "sass"."""
NOT_MACHINE_CODE = ("cluster_exchange",)
"""Programs with machine instructions that are not modelled: clusters."""
MOST_INSTRUCTIONS = 2_000_000
"""More than any launch needs; threads that wait for ever end here."""
MOST_QUEUED = 16
"""Launches of a program that are given again without waiting."""


class Program:
    """One fixture on a device of its own, and a generator of inputs that is the same for all fixtures of a program.

    A checked one runs on two host threads of a device that looks for races, and must be free of them; a timed one on
    a simulated machine, in the order that its assembler would choose.
    """

    watched: WatchedCommands | None = None
    """What has ended on a device with time, to compare its traffic with that of the memory."""

    def __init__(self, path: Path, mode: str = "", threads: int = 1) -> None:
        if mode == "timed":
            machine = load_machine("v100", ["gpu.sm_count=4", "gpu.l2_slices=4"]).machine
            self.device: gpu.Device = gpu.TimedDevice(
                machine,
                threads=threads,
                maximum_instructions=MOST_INSTRUCTIONS,
                echo=False,
                allow_newer=True,
            )
        else:
            checked = mode == "checked"
            self.device = gpu.Device(
                threads=2 if checked else 1,
                check=checked,
                maximum_instructions=MOST_INSTRUCTIONS,
                echo=False,
                isa="sass" if mode == "SASS" else ISA,
            )
        if isinstance(self.device, gpu.TimedDevice):
            self.watched = watch(self.device)
        self.launches: list[tuple[str, Any, Any, tuple[Any, ...], int]] = []
        self.module = self.device.load(path)
        self.random = np.random.default_rng(zlib.crc32(path.stem.encode()))

    def launch(self, kernel: str, grid: Any, block: Any, *arguments: Any, shared: int = 0) -> Any:
        """Runs a kernel. Host arrays are copied to the device before and back into themselves after."""
        copies = []
        values = []
        if self.watched is not None:
            self.launches.append((kernel, grid, block, tuple(map(_kept, arguments)), shared))
        for argument in arguments:
            if isinstance(argument, np.ndarray) and argument.ndim:
                copy = self.device.array(argument)
                copies.append((argument, copy))
                values.append(copy)
            else:
                values.append(argument)
        done = self.module[kernel][grid, block, shared](*values)
        if isinstance(done, gpu.TimedLaunch):
            check_profile(done.profile)
        for host, copy in copies:
            host[...] = copy.numpy()
        assert not done.warnings, done.warnings[0]
        return done

    def integers(self, low: int, high: int, shape: Any, dtype: Any = np.int32) -> np.ndarray:
        """Whole numbers from low to high, high excluded."""
        return self.random.integers(low, high, shape, dtype=dtype)

    def words(self, shape: Any, dtype: Any = np.uint32) -> np.ndarray:
        """Words of which each bit is as often set as not, and first a few with special patterns."""
        limits = np.iinfo(dtype)
        words = self.random.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)
        special = [0, 1, limits.max, limits.min, limits.max // 2, 255, 2, limits.max - 1]
        flat = words.reshape(-1)
        unsigned = [value % (limits.max - limits.min + 1) for value in special]
        flat[: len(special)] = np.array(unsigned, np.uint64).astype(dtype)[: flat.size]
        return words

    def floats(self, low: float, high: float, shape: Any, dtype: Any = np.float32) -> np.ndarray:
        return self.random.uniform(low, high, shape).astype(dtype)


def program(name: str, not_modelled: Sequence[str] = ()) -> Callable[[Callable], Callable]:
    """Runs a test once for each fixture of a program; the first of them also with all checks, and with time.

    Of fixtures that are not modelled it is expected that they are refused before they run. The first also runs as
    SASS, which is assembled on the spot.
    """
    refused = pytest.mark.xfail(raises=InputError, strict=True, reason="not modelled")
    cases = []
    for path in sorted(FIXTURES.glob(f"sm_*/{name}.ptx")):
        target = path.parent.name
        marks = [refused] if target in not_modelled else []
        if not cases:
            cases += [pytest.param(path, mode, id=mode, marks=marks) for mode in ("checked", "timed")]
            machine_marks = [refused] if name in NOT_MACHINE_CODE else marks
            cases.append(pytest.param(path, "SASS", id="sass", marks=machine_marks))
        cases.append(pytest.param(path, "", id=target, marks=marks))

    def decorate(test: Callable[[Program], None]) -> Callable[[Path, str], None]:
        @pytest.mark.parametrize(("path", "mode"), cases)
        def run(path: Path, mode: str) -> None:
            if mode == "SASS" and find_assembler() is None:
                pytest.skip("SASS needs ptxas: pip install nvidia-cuda-nvcc-cu12")
            if mode == "timed":
                _same_on_any_number_of_threads(path, test)
            else:
                test(Program(path, mode))

        functools.update_wrapper(run, test)
        del run.__wrapped__  # or pytest would ask for the arguments of the test itself
        return run

    return decorate


def _same_on_any_number_of_threads(path: Path, test: Callable[[Program], None]) -> None:
    """Runs a test on a simulated machine with 1, 2 and 4 host threads; all statistics must be the same."""
    tables = []
    for threads in (1, 2, 4):
        timed = Program(path, "timed", threads)
        test(timed)
        assert isinstance(timed.device, gpu.TimedDevice)
        result = timed.device.result  # None if a kernel failed
        tables.append(None if result is None else result.stats)
        assert timed.watched is not None
        if result is not None:
            check_sums(timed.device, timed.watched)
            if threads == 1:
                _queue_again(path, timed)
    for table in tables[1:]:
        assert (table is None) == (tables[0] is None)
        assert table is None or table.equals(tables[0])


def _kept(argument: Any) -> Any:
    """An argument of a launch as it is now; of an array on the device which one, and what is in it."""
    if isinstance(argument, gpu.DeviceArray):
        return argument, argument.numpy()
    return argument.copy() if isinstance(argument, np.ndarray) else argument


def _queue_again(path: Path, done: Program) -> None:
    """Gives all launches of a program again, one behind the other without waiting, while copies run beside them."""
    program = Program(path, "timed")
    device = program.device
    assert isinstance(device, gpu.TimedDevice)
    assert program.watched is not None
    stream, beside, scratch = device.stream(), device.stream(), device.zeros(4096, np.uint32)
    arrays: dict[int, Any] = {}  # by the array of the first run that each stands for

    def again(value: Any) -> Any:
        if isinstance(value, tuple) and value and isinstance(value[0], gpu.DeviceArray):
            return arrays.setdefault(value[0].address, device.array(value[1]))
        return device.array(value) if isinstance(value, np.ndarray) and value.ndim else value

    queued, copies = [], []
    for kernel, grid, block, arguments, shared in done.launches[:MOST_QUEUED]:
        if any(isinstance(value, gpu.Texture) for value in arguments):
            continue  # they are of the first run's device
        queued.append(program.module[kernel][grid, block, shared, stream](*map(again, arguments)))
        copies.append(scratch.copy_to(np.empty(4096, np.uint32), stream=beside))
        copies.append(scratch.fill(1, stream=stream))
    device.synchronize()
    for launch in queued:
        check_profile(launch.result.profile)
    for copy in copies:
        assert copy.l2_bytes == scratch.nbytes
        check_traffic(copy.traffic)
    check_sums(device, program.watched)


def equal(result: np.ndarray, expected: Any) -> None:
    np.testing.assert_array_equal(result, expected)


def close(result: np.ndarray, expected: Any, rtol: float = 1e-5, atol: float = 0.0) -> None:
    np.testing.assert_allclose(result, expected, rtol=rtol, atol=atol)


def within_ulps(
    result: np.ndarray, expected: np.ndarray, ulps: float, name: str = "", least: float = 0.0
) -> None:
    """Compares with an expectation in double precision, in ulps of the result's own precision.

    Smaller results than `least` are measured by the unit of that.
    """
    with np.errstate(over="ignore"):
        rounded = np.asarray(expected).astype(result.dtype)
    special = ~np.isfinite(rounded) | ~np.isfinite(result)
    same = (result == rounded) | (np.isnan(result) & np.isnan(rounded))
    wrong = special & ~same
    assert not wrong.any(), f"{name}: {result[wrong][:5]} instead of {rounded[wrong][:5]}"
    finite = ~special
    unit = np.spacing(np.abs(rounded[finite]).clip(least)).astype(np.float64)
    error = np.abs(result[finite].astype(np.float64) - np.asarray(expected, np.float64)[finite]) / unit
    worst = int(np.argmax(error)) if error.size else 0
    assert not error.size or error[worst] <= ulps, (
        f"{name}: {error[worst]:.1f} ulps at {worst}: {result[finite][worst]} instead of {expected[finite][worst]}"
    )


def signed(value: int, bits: int = 32) -> int:
    """The low bits of a number as a number in two's complement."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def quotient(a: int, b: int) -> int:
    """Division that rounds towards zero, as in C."""
    result = abs(a) // abs(b)
    return result if (a < 0) == (b < 0) else -result


def blocks_of(count: int, size: int) -> int:
    """How many blocks it takes to have a thread for each element."""
    return -(-count // size)


def compare_rows(out: np.ndarray, rows: list[list[int]], bits: int = 32) -> None:
    """Each row of numbers of any size against one column of the result."""
    mask = (1 << bits) - 1
    for column, expected in enumerate(rows):
        assert [int(value) & mask for value in out[:, column]] == [value & mask for value in expected], column

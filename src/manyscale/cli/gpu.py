# SPDX-License-Identifier: Apache-2.0
"""`manyscale gpu run`: a kernel with its arguments, functional or with time."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import math
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from manyscale.cli.check import Target
from manyscale.cli.console import emit_json, say, simulated, tables
from manyscale.cli.findings import Finding, Junit, Sarif, findings_to
from manyscale.cli.kernel_report import print_profile, profile_data
from manyscale.cli.listing import print_table
from manyscale.cli.options import (
    AllowNewer,
    Changes,
    CodeChoice,
    Force,
    Json,
    Quiet,
    Seed,
    Threads,
    complete_preset,
)
from manyscale.cli.run import output_directory
from manyscale.errors import InputError, nearest

if TYPE_CHECKING:
    import numpy.typing as npt

    from manyscale.gpu import Device, Kernel, Launch, ManagedArray, Module, TimedDevice
    from manyscale.gpu.argument_text import KernelArgument
    from manyscale.machine import ResolvedMachine
    from manyscale.results.files import FileKind

commands = typer.Typer(name="gpu", help="Execute GPU kernels exactly, without a GPU.")

_FOUND_SOMETHING = 1


@commands.command()
def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file with PTX (.ptx) or CUDA C++ (.cu).")],
    kernel: Annotated[
        str | None,
        typer.Option("--kernel", "-k", metavar="NAME", help="The kernel; not needed if there is only one."),
    ] = None,
    grid: Annotated[
        str, typer.Option("--grid", "-g", metavar="X[,Y[,Z]]", help="Blocks in each direction.")
    ] = "1",
    block: Annotated[
        str, typer.Option("--block", "-b", metavar="X[,Y[,Z]]", help="Threads of a block in each direction.")
    ] = "1",
    arguments: Annotated[
        list[str] | None,
        typer.Option(
            "--arg",
            "-a",
            metavar="SPEC",
            help="An argument, as described above; repeated, in the order of the kernel's parameters.",
        ),
    ] = None,
    shared: Annotated[
        str, typer.Option("--shared", metavar="SIZE", help="Dynamic shared memory of a block, such as 4KiB.")
    ] = "0B",
    check: Annotated[
        bool, typer.Option("--check", help="Look for races in shared memory and for uninitialised reads.")
    ] = False,
    limit: Annotated[
        int,
        typer.Option(
            "--limit", min=0, metavar="N", help="Give up after so many warp instructions; 0: never."
        ),
    ] = 0,
    machine: Annotated[
        str | None,
        typer.Option(
            "--machine",
            "-m",
            metavar="NAME|FILE",
            help="Simulate the time on this machine's GPU, such as v100; without it, only the result is computed.",
            autocompletion=complete_preset,
        ),
    ] = None,
    managed: Annotated[
        bool,
        typer.Option(
            "--managed",
            help="Arrays are managed memory that the host has written: the kernel migrates their pages.",
        ),
    ] = False,
    changes: Changes = None,
    threads: Threads = 1,
    isa: CodeChoice = None,
    allow_newer: AllowNewer = False,
    target: Target = None,
    seed: Seed = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Leave the run in this directory (with --machine)."),
    ] = None,
    timeline: Annotated[
        bool,
        typer.Option(
            "--timeline",
            help="Also write which CTAs ran when to the directory, to look at in ui.perfetto.dev.",
        ),
    ] = False,
    show: Annotated[
        int, typer.Option("--show", min=0, metavar="N", help="Values to show of each array.")
    ] = 8,
    save: Annotated[
        list[str] | None,
        typer.Option("--save", metavar="NAME=FILE.npy", help="Write an array to a file; may be repeated."),
    ] = None,
    junit: Junit = None,
    sarif: Sarif = None,
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a kernel and show what it did to its arguments.

    An argument is a number (100, 2.5) or an array on the device. @FILE.npy
    reads one, TYPE[SHAPE]:FILL makes one: TYPE is one of f16 f32 f64 i8 i16
    i32 i64 u8 u16 u32 u64, FILL one of zeros (if none is given) ones arange
    random (between 0 and 1, or whole numbers from 0 to 99). A name in front
    (x=f32[64,64]:random) is for the output and for --save; without one, an
    array is called by the number of the argument.

    Example: manyscale gpu run saxpy.ptx --grid 4 --block 256 --arg 2.5
    --arg x=f32[1024]:random --arg y=f32[1024]:ones --arg 1024

    The exit code is 5 if the kernel fails, and 1 if --check found something.
    """
    import numpy as np

    from manyscale.gpu import Device, DeviceArray, TimedDevice
    from manyscale.gpu.argument_text import parse_arguments
    from manyscale.gpu.isa import described_code

    random = np.random.default_rng(seed or 0)
    given = parse_arguments(arguments or [], random)
    files = _files(save or [], [argument.name for argument in given if argument.is_array], force)
    shape = _extents("--grid", grid), _extents("--block", block)
    resolved = _machine(machine, changes, out, timeline)
    _forecast(shape, resolved is not None)
    options: dict[str, Any] = {
        "threads": threads,
        "check": check,
        "maximum_instructions": limit,
        "echo": not json,
        **({} if isa is None else {"isa": isa}),
        "allow_newer": allow_newer,
    }
    device = Device(**options) if resolved is None else TimedDevice(resolved, seed=seed or 0, **options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        module = device.load(file, target=target)
    for warning in caught:
        say(f"manyscale: {warning.message}")
    chosen = _kernel(module, kernel)
    make = functools.partial(_managed_array, device) if managed else device.array
    values = [make(argument.value) if argument.is_array else argument.value for argument in given]
    configuration = (*shape, _bytes("--shared", shared))
    with findings_to(junit, sarif, chosen.name) as findings:
        if isinstance(device, TimedDevice):
            workload = _workload(file, chosen.name, configuration, given)
            workload |= {"managed": True} if managed else {}
            with (
                _recorded(device, out, workload, timeline, quiet, force=force),
                _progress(device, chosen, shape[0], quiet),
            ):
                launch: Launch = chosen[configuration](*values)
        else:
            launch = chosen[configuration](*values)
        findings.found = [Finding.of_warning(text, chosen.name) for text in launch.warnings]
    moved = device.uvm.statistics() if managed and isinstance(device, TimedDevice) else None
    arrays = {
        argument.name: value.numpy()
        for argument, value in zip(given, values, strict=True)
        if isinstance(value, DeviceArray)
    }
    for name, path in files.items():
        _save(path, arrays[name], force)
    summaries = {name: _summary(array, show) for name, array in arrays.items()}
    if json:
        data = (
            _data(launch, shape, summaries, moved)
            | {"isa": launch.isa, "code": described_code(device.loaded_code, timed=resolved is not None)}
            | ({} if out is None else {"directory": str(out)})
        )
        emit_json(data | ({} if moved is None else {"unified_memory": moved}))
    elif not quiet:
        _print(launch, shape, summaries, out, moved, _code_in_words(chosen.module, resolved is not None))
    if check and launch.warnings:
        raise typer.Exit(_FOUND_SOMETHING)


def _forecast(shape: tuple[Sequence[int], Sequence[int]], timed: bool) -> None:
    import math

    from manyscale.cli.forecast import FUNCTIONAL_WARPS, TIMED_WARPS, warn_if_long

    warps = math.prod(shape[0]) * -(-math.prod(shape[1]) // 32)
    warn_if_long(warps, "warps", TIMED_WARPS if timed else FUNCTIONAL_WARPS, "--grid")


def _machine(
    name: str | None, changes: Sequence[str] | None, out: Path | None, timeline: bool
) -> ResolvedMachine | None:
    from manyscale.machine import load_machine

    if timeline and out is None:
        raise InputError("--timeline writes to the run's directory: give --out as well")
    if name is not None:
        return load_machine(name, changes or [])
    if changes:
        raise InputError("--set changes a machine: give --machine as well")
    if out is not None:
        raise InputError("--out keeps what a machine's time was spent on: give --machine as well")
    return None


def _managed_array(device: Device, values: npt.ArrayLike) -> ManagedArray:
    """Values in managed memory, on the host."""
    import numpy as np

    host = np.asarray(values)
    array = device.managed(host.shape, host.dtype)
    array.set(host)
    return array


def _workload(
    file: Path, kernel: str, configuration: tuple[list[int], list[int], int], given: Sequence[KernelArgument]
) -> dict[str, Any]:
    """The description of the kernel and its arguments in the run directory."""

    def described(argument: KernelArgument) -> Any:
        value = argument.value
        if isinstance(value, int | float):
            return value
        digest = hashlib.sha256(value.tobytes()).hexdigest()
        return {"dtype": str(value.dtype), "shape": list(value.shape), "hash": f"sha256:{digest}"}

    grid, block, shared = configuration
    return {
        "kind": "gpu-kernel",
        "file": file.name,
        "hash": f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}",
        "kernel": kernel,
        "grid": grid,
        "block": block,
        "shared_bytes": shared,
        "arguments": {argument.name: described(argument) for argument in given},
    }


@contextlib.contextmanager
def _recorded(
    device: TimedDevice,
    out: Path | None,
    workload: dict[str, Any],
    timeline: bool,
    quiet: bool,
    *,
    force: bool,
) -> Iterator[None]:
    """Leaves a run directory if one is requested."""
    if out is None:
        yield
        return
    command = ["manyscale", *sys.argv[1:]]
    with (
        output_directory(out, "gpu", quiet, force=force),
        device.record(out, workload=workload, timeline=timeline, command=command),
    ):
        yield


@contextlib.contextmanager
def _progress(device: TimedDevice, kernel: Kernel, grid: Sequence[int], quiet: bool) -> Iterator[None]:
    from manyscale.cli.progress import SimulationProgress

    with SimulationProgress(f"{kernel.name} on {device.machine.name}", None, quiet) as progress:
        commands = device.queue.commands
        progress.measure("CTAs", lambda: commands.ended_ctas, math.prod(grid))
        device.progress = progress
        yield


def _timing(launch: Launch) -> dict[str, Any]:
    """Columns of a kernel's row with time."""
    from manyscale.gpu import TimedLaunch

    if not isinstance(launch, TimedLaunch):
        return {}
    return {
        "cycles": launch.cycles,
        "occupancy": launch.occupancy,
        "registers": launch.registers,
        "issued_instructions": launch.issued_instructions,
        **profile_data(launch.profile),
    }


def _extents(option: str, text: str) -> list[int]:
    try:
        extents = [int(extent) for extent in text.split(",")]
    except ValueError:
        extents = []
    if not 1 <= len(extents) <= 3 or min(extents) < 1:
        raise InputError(f"{option} {text}: write one, two or three whole numbers, such as 4 or 4,2,1")
    return extents


def _bytes(option: str, text: str) -> int:
    from manyscale.units import BYTES, parse

    try:
        size = int(parse(text, BYTES))
    except InputError as error:
        raise InputError(f"{option}: {error}") from None
    if size < 0:
        raise InputError(f"{option} {text}: it must not be negative")
    return size


def _kernel(module: Module, name: str | None) -> Kernel:
    if name is not None:
        return module[name]
    if len(module.kernels) == 1:
        return module[module.kernels[0]]
    if not module.kernels:
        raise InputError(f"{module.name}: there is no kernel in it")
    raise InputError(f"{module.name}: choose one of its kernels with --kernel: {', '.join(module.kernels)}")


def _files(texts: Sequence[str], arrays: Sequence[str], force: bool) -> dict[str, Path]:
    """The arrays to save and their files; checked before the kernel runs."""
    from manyscale.results.files import check_output

    files: dict[str, Path] = {}
    for text in texts:
        name, equals, file = text.partition("=")
        if not equals or not file:
            raise InputError(f"--save {text}: write NAME=FILE.npy")
        if name not in arrays:
            raise InputError(
                f"--save {text}: there is no array '{name}' among the arguments; {nearest(name, arrays)}"
            )
        if not Path(file).parent.is_dir():
            raise InputError(f"--save {text}: there is no folder {Path(file).parent}")
        check_output(file, _array_file(), force=force)
        files[name] = Path(file)
    return files


def _array_file() -> FileKind:
    from manyscale.results.files import FileKind

    return FileKind.magic("an array of NumPy", b"\x93NUMPY")


def _save(path: Path, array: npt.NDArray[Any], force: bool) -> None:
    import numpy as np

    from manyscale.results.files import write_file

    write_file(path, lambda file: np.save(file, array, allow_pickle=False), _array_file(), force=force)


def _summary(array: npt.NDArray[Any], shown: int) -> dict[str, Any]:
    return {
        "dtype": str(array.dtype),
        "shape": list(array.shape),
        "first": array.reshape(-1)[:shown].tolist(),
        "minimum": array.min().item() if array.size else None,
        "maximum": array.max().item() if array.size else None,
    }


def _code_in_words(module: Module, timed: bool) -> str:
    """The ISA of a module, with the reason, and what that means for its time."""
    from manyscale.gpu.isa import LESS_ACCURATE

    reason = module.isa_reason.splitlines()[0].rstrip(":")
    if module.isa == "sass":
        return f"SASS ({reason})"
    return f"PTX, {LESS_ACCURATE} ({reason})" if timed else f"PTX ({reason})"


def _data(
    launch: Launch, shape: tuple[list[int], list[int]], arrays: dict[str, Any], moved: dict[str, int] | None
) -> dict[str, Any]:
    from manyscale.gpu import TimedLaunch
    from manyscale.gpu.headline import headline
    from manyscale.results.definitions import plain

    timing = _timing(launch)
    total = plain(headline([launch], moved)) if isinstance(launch, TimedLaunch) else {}
    return {
        "kernels": [
            {
                "name": launch.kernel,
                "grid": shape[0],
                "block": shape[1],
                "warp_instructions": launch.warp_instructions,
                "thread_instructions": launch.thread_instructions,
                **timing,
            }
        ],
        "wall_seconds": launch.wall_seconds,
        **total,
        "printed": launch.printed,
        "warnings": launch.warnings,
        "arrays": arrays,
    }


def _print(
    launch: Launch,
    shape: tuple[list[int], list[int]],
    arrays: dict[str, Any],
    out: Path | None,
    moved: dict[str, int] | None,
    code: str,
) -> None:
    from rich.table import Table
    from rich.text import Text

    from manyscale.gpu import TimedLaunch

    if launch.printed and not launch.printed.endswith("\n"):
        typer.echo()
    grid, block = (" x ".join(map(str, extents)) for extents in shape)
    facts = {
        "kernel": f"{launch.kernel}, {grid} blocks of {block} threads",
        "warp instructions": f"{launch.warp_instructions:,} ({launch.isa.upper()})",
        "thread instructions": f"{launch.thread_instructions:,} ({launch.isa.upper()})",
        **_simulated(launch),
        "run as": code,
    }
    if moved is not None:
        batches = moved["fault_batches"]
        facts["page faults"] = f"{moved['faults']:,} in {batches:,} batch{'' if batches == 1 else 'es'}"
        facts["pages prefetched"] = f"{moved['pages_prefetched']:,}"
        facts["bytes to device"] = f"{moved['bytes_to_device']:,} B"
    if out is not None:
        facts["directory"] = str(out)
    table = Table.grid(padding=(0, 2))
    for name, fact in facts.items():
        table.add_row(name, Text(fact, overflow="fold"))
    tables().print(table)
    for warning in launch.warnings:
        typer.echo(f"Warning: {warning}")
    if arrays:
        rows = [
            (
                name,
                f"{array['dtype']} {array['shape']}",
                " ".join(map(_number, array["first"])),
                _number(array["minimum"]),
                _number(array["maximum"]),
            )
            for name, array in arrays.items()
        ]
        print_table("Arrays", ("name", "type", "first values", "min", "max"), rows)
    if isinstance(launch, TimedLaunch):
        print_profile(launch.profile)


def _simulated(launch: Launch) -> dict[str, str]:
    from manyscale.gpu import TimedLaunch
    from manyscale.gpu.metrics import shown

    if isinstance(launch, TimedLaunch):
        return {"simulated": simulated(shown(launch.seconds, "s"), launch.wall_seconds)}
    return {"executed": simulated("all", launch.wall_seconds)}


def _number(value: Any) -> str:
    return "-" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)

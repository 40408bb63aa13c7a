# SPDX-License-Identifier: Apache-2.0
"""Programs of public suites on a GV100: cycles of their kernels beside those that Nsight Compute measured.

The measurements are in the package, the programs are not: they come from a folder, which holds `bin/` with the programs
and `data/` with their inputs (docs/validation.md says which). Each is run as `manyscale correlate` runs it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manyscale.errors import InputError, ManyscaleError
from manyscale.gpu.isa import Isa
from manyscale.studies.correlation.comparison import SAME_CODE
from manyscale.studies.correlation.values import base_name
from manyscale.validation.rows import Row, Use

MEASURED = Path(__file__).parent / "measured" / "gv100_ncu.csv"
_SOURCE = "ncu on a Quadro GV100 (HyFiSS, MICRO 2024; RepositoryAnonymous/simulator-apps)"

_LONGEST = 60  # characters of a kernel's name; of longer ones the template arguments are left out


@dataclass(frozen=True)
class SuiteProgram:
    """A program with its arguments, and the folder it runs in."""

    name: str
    use: Use
    arguments: str = ""
    folder: str = "data"


PROGRAMS = (
    SuiteProgram("backprop", "calibrated", "65536"),
    SuiteProgram("nn", "calibrated", "filelist -r 5 -lat 30 -lng 90"),
    SuiteProgram("hotspot", "calibrated", "512 2 2 temp_1024 power_1024 /dev/null"),
    SuiteProgram("atax", "calibrated"),
    SuiteProgram("gramschmidt", "calibrated"),
    SuiteProgram("dwt2d", "calibrated", "rgb.bmp -d 1024x1024 -f -5 -l 3", "data/dwt2d"),
    SuiteProgram("2DConvolution", "calibrated"),
    SuiteProgram("lulesh", "test", "-s 45"),
    SuiteProgram("lud", "test", "-i 2048.dat"),
    SuiteProgram("nw", "test", "2048 10"),
    SuiteProgram("pathfinder", "test", "100000 100 20"),
    SuiteProgram("gaussian", "test", "-f matrix1024.txt"),
    SuiteProgram("b+tree", "test", "file mil.txt command command.txt"),
    SuiteProgram("hotspot3D", "test", "512 8 100 power_512x8 temp_512x8 /dev/null"),
)


def rows(
    machine: str = "gv100",
    isa: Isa = "auto",
    programs: Path | None = None,
    say: Callable[[str], None] = lambda text: None,
    only: Sequence[str] = (),
) -> list[Row]:
    """A row for each kernel of the programs that the folder has; `say` is told which it lacks."""
    folder = checked_folder(programs, "gpu-programs")
    found: list[Row] = []
    for program in PROGRAMS:
        if only and program.name not in only:
            continue
        if not (folder / "bin" / program.name).is_file():
            say(f"{folder / 'bin' / program.name} is not there: its rows are left out")
            continue
        found += program_rows(folder, program, machine, isa)
    if not found:
        wanted = ", ".join(program.name for program in PROGRAMS)
        raise InputError(f"{folder / 'bin'} has none of the programs {wanted}")
    return found


def checked_folder(programs: Path | None, what: str) -> Path:
    """The folder of programs; an error that says what is needed."""
    if programs is None:
        raise InputError(
            f"{what} needs programs that you have built: --programs DIR, with the programs in DIR/bin and their inputs "
            "in DIR/data; docs/validation.md lists them with their arguments"
        )
    if not (programs / "bin").is_dir():
        raise InputError(f"{programs} has no folder bin with the programs in it")
    return programs.resolve()


def program_rows(folder: Path, program: SuiteProgram, machine: str, isa: Isa) -> list[Row]:
    """The kernels of one program, run in a process of its own as a user runs it; values are means of their launches."""
    options = ["--truth", str(MEASURED), "--machine", machine, "--isa", isa]
    data = run_command(folder, program, "correlate", [*options, "--program", program.name])
    kernels: dict[str, list[dict[str, Any]]] = {}
    for kernel in data["kernels"]:
        name = kernel["kernel"].partition(" [")[0]  # without the grid
        kernels.setdefault(name if len(name) <= _LONGEST else base_name(name), []).append(kernel)
    found = []
    for name, parts in kernels.items():
        launches = sum(part["launches"] for part in parts)
        cycles, instructions = (_means(parts, what, launches) for what in ("cycles", "warp_instructions"))
        error = instructions[0] / instructions[1] - 1
        use: Use = program.use if abs(error) <= SAME_CODE else "other code"
        note = "" if use == program.use else f"; {error:+.0%} instructions"
        title = f"{program.name}: {name}" + (f", {launches} launches" if launches > 1 else "")
        found.append(Row(title, *cycles, "cycles", _SOURCE + note, use))
    return found


def _means(parts: Sequence[dict[str, Any]], what: str, launches: int) -> tuple[float, float]:
    """Simulated and measured, of all launches."""

    def mean(side: str) -> float:
        return float(sum(part["launches"] * part["quantities"][what][side] for part in parts) / launches)

    return mean("simulated"), mean("measured")


def run_command(
    folder: Path,
    program: SuiteProgram,
    command: str,
    options: Sequence[str],
    look: Callable[[Path], None] = lambda run: None,
) -> dict[str, Any]:
    """The JSON of `manyscale cuda` or `correlate` for a program of the folder; `look` is given its run directory."""
    from manyscale.guard import temporary_folder

    binary = str(folder / "bin" / program.name)
    with temporary_folder("manyscale-programs-") as out:
        line = [sys.executable, "-m", "manyscale.cli.app", command, "--json", "--quiet", *options]
        line += ["--out", str(out / "run")]
        line += ["--", binary] if command == "cuda" else [binary, "--"]
        done = subprocess.run(
            [*line, *program.arguments.split()],
            cwd=folder / program.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            last = "\n".join(done.stderr.strip().splitlines()[-5:])
            raise ManyscaleError(f"{program.name} failed with exit code {done.returncode}: {last}")
        look(out / "run")
    data: dict[str, Any] = json.loads(done.stdout)
    return data

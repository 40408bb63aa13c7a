# SPDX-License-Identifier: Apache-2.0
"""What came out of a program's run on a simulated processor: time, CPI stacks, caches, regions, hot lines."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyscale.cpu.openmp import region_title
from manyscale.cpu.program import Program
from manyscale.results import definitions
from manyscale.results.files import FileGroup, FileKind
from manyscale.results.notebook import NotebookView, headline_table, plot, rows_table
from manyscale.results.stack_chart import stack_chart
from manyscale.results.statistics import frame, scalar
from manyscale.results.totals import Totals
from manyscale.system.dram_over_time import dram_over_time
from manyscale.units import TIME, humanize

if TYPE_CHECKING:
    import polars as pl

    from manyscale.results import RunWriter

_SECOND = 10**15  # femtoseconds
_PROCESS_ADDRESS = (1 << 40) - 1  # the part of an address that a process sees; above it is its number
OUTSIDE = "outside regions"
_MOST_BARS = 16  # in a notebook
KONATA_FILE = "pipeline.kanata"
KONATA = FileKind.magic("a log of a pipeline for Konata", b"Kanata")
L1_CACHES = ("l1i", "l1")
TABLES = ("cpi_stack", "caches", "regions", "tasks", "task_runs", "hot_instructions", "dram_over_time")


@dataclass(frozen=True)
class Process:
    """What one process of a program wrote, and how it ended."""

    exit_code: int
    stdout: bytes
    stderr: bytes


class ProgramResult:
    """What is known of a program that was run, with or without time."""

    def __init__(
        self, program: Program, processes: Sequence[Process], wall_seconds: float, details: dict[str, Any]
    ) -> None:
        """`details` is what the core knows of the run besides statistics."""
        self.program = program
        self.processes = list(processes)
        self.wall_seconds = wall_seconds
        self._details = details

    @property
    def exit_code(self) -> int:
        """Of the first process that did not exit with 0, else 0."""
        return next((process.exit_code for process in self.processes if process.exit_code), 0)

    @property
    def stdout(self) -> str:
        """What all processes wrote to standard output, one after the other."""
        return b"".join(process.stdout for process in self.processes).decode(errors="replace")

    @property
    def stderr(self) -> str:
        """What all processes wrote to standard error, one after the other."""
        return b"".join(process.stderr for process in self.processes).decode(errors="replace")

    def write_output(self, writer: RunWriter) -> None:
        """Keeps what the program wrote in a run directory."""
        for number, process in enumerate(self.processes):
            suffix = f".{number}" if len(self.processes) > 1 else ""
            for name, written in (("stdout", process.stdout), ("stderr", process.stderr)):
                if written:
                    writer.write_file(f"{name}{suffix}.txt", written)

    @cached_property
    def tasks(self) -> pl.DataFrame:
        """The explicit OpenMP tasks in the order of their creation: function, creating thread, parent, dependences."""
        import polars as pl

        named = [_named(self.program, region) for region in self._details["regions"]]
        rows = self._details["tasks"]
        return pl.DataFrame(
            {
                "task": list(range(len(rows))),
                "region": [named[region][0] for region, _, _, _ in rows],
                "source": [named[region][2] for region, _, _, _ in rows],
                "creator": [creator for _, creator, _, _ in rows],
                "parent": pl.Series([parent for _, _, parent, _ in rows], dtype=pl.Int64),
                "dependences": pl.Series(
                    [[f"{kind} {address:#x}" for address, kind in found] for _, _, _, found in rows],
                    dtype=pl.List(pl.String),
                ),
            }
        )


class FunctionalResult(NotebookView, ProgramResult):
    """What came out of a run without time."""

    def __init__(
        self,
        program: Program,
        processes: Sequence[Process],
        wall_seconds: float,
        instructions: int,
        details: dict[str, Any],
    ) -> None:
        super().__init__(program, processes, wall_seconds, details)
        self.instructions = instructions

    @cached_property
    def regions(self) -> pl.DataFrame:
        """For each region and thread: visits and instructions, without and with the regions within it."""
        table = region_table(self.program, self._details)
        return table.select(
            "region", "kind", "source", "thread", "visits", "instructions", "inclusive_instructions"
        )

    @property
    def headline(self) -> dict[str, dict[str, Any]]:
        """The numbers that matter, with units."""
        return {
            "instructions": {"value": self.instructions, "unit": "instruction"},
            "exit_code": {"value": self.exit_code, "unit": "1"},
            "wall_seconds": {"value": self.wall_seconds, "unit": "s"},
        }

    def write_tables(self, writer: RunWriter) -> None:
        """Keeps the table of regions as Parquet, and what the program wrote."""
        if self.regions.height:
            writer.write_table("regions.parquet", self.regions)
        self.write_output(writer)

    def _notebook(self) -> Iterable[str]:
        yield headline_table(repr(self), self.headline)

    def __repr__(self) -> str:
        return (
            f"FunctionalResult({self.program.name}: {self.instructions:,} instructions, exit code "
            f"{self.exit_code}, in {self.wall_seconds:.3g} s)"
        )


class CpuResult(NotebookView, ProgramResult):
    """What came out of a run on a simulated processor. Times are in seconds, except in `stats`."""

    def __init__(
        self,
        program: Program,
        processes: Sequence[Process],
        details: dict[str, Any],
        run: Any,
        clock: int,
        directory: Path | None,
    ) -> None:
        """`run` is the result of the system."""
        super().__init__(program, processes, run.wall_seconds, details)
        self.outcome: str = run.outcome
        self.threads: int = run.threads
        self.events: int = run.events
        self.columns: dict[str, list[Any]] = run.columns
        self.clock = clock
        self.directory = directory
        self.causes: list[str] = details["causes"]
        self.konata: list[str] = details["konata"]
        names = dict.fromkeys(run.columns["component"])
        self._cores = [name for name in names if name.startswith("core[")]
        self._slices = [name for name in names if name.startswith("slice[")]
        self._channels = [name for name in names if name.startswith("channel[")]
        self._totals = Totals(run.columns)

    @property
    def replayed(self) -> bool:
        """Whether a trace was played, and not a program executed."""
        return "task_runs" in self._details

    @property
    def cores(self) -> int:
        """Cores that were simulated."""
        return len(self._cores)

    @property
    def cycles(self) -> int:
        """Cycles of the cores' clock until the program ended."""
        return int(self._totals.most(self._cores, "cycles"))

    @property
    def simulated_seconds(self) -> float:
        """The time that the program took."""
        return self.cycles / self.clock

    @property
    def instructions(self) -> int:
        """Instructions that all cores committed."""
        return int(self._totals.total(self._cores, "instructions"))

    @property
    def ipc(self) -> float:
        """Instructions of all cores in one cycle."""
        return self.instructions / self.cycles if self.cycles else 0.0

    @cached_property
    def stats(self) -> pl.DataFrame:
        """The tidy table of statistics."""
        return frame(self.columns)

    def value(self, component: str, statistic: str) -> int | float:
        """One scalar statistic."""
        return scalar(self.stats, component, statistic)

    @cached_property
    def cpi_stack(self) -> pl.DataFrame:
        """For each core and cause: the cycles it took, per instruction, and its share; causes add up to the cycles."""
        import polars as pl

        rows = []
        for number, core in enumerate(self._cores):
            instructions = self._totals.total([core], "instructions")
            cycles = self._totals.total([core], "cycles")
            for cause in self.causes:
                taken = int(self._totals.total([core], f"cpi.{cause}"))
                per = taken / instructions if instructions else 0.0
                rows.append((number, cause, taken, per, taken / cycles if cycles else 0.0))
        schema = {
            "core": pl.Int64,
            "cause": pl.String,
            "cycles": pl.Int64,
            "cpi": pl.Float64,
            "share": pl.Float64,
        }
        return pl.DataFrame(rows, schema=schema, orient="row")

    @property
    def shares(self) -> dict[str, float]:
        """The share of all cores' cycles that each cause took."""
        total = self._totals.total(self._cores, "cycles") or 1
        return {cause: self._totals.total(self._cores, f"cpi.{cause}") / total for cause in self.causes}

    @cached_property
    def caches(self) -> pl.DataFrame:
        """For each level: accesses, hits and misses as shares of them, misses in 1000 instructions (mpki), what a miss
        took, lines written back.

        Accesses to a line with an outstanding miss are neither hits nor misses. A replay plays no accesses that hit
        the L1 filter cache of the recording: shares of L1 accesses are then not those of the program, and None;
        mpki is defined alike for runs and replays.
        """
        import polars as pl

        rows = [self._level(name, self._cores, f"{name}.") for name in ("l1i", "l1", "l2")]
        if self._slices:
            rows.append(self._level("shared", self._slices, ""))
        names = (
            "level",
            "caches",
            "accesses",
            "hit_rate",
            "miss_rate",
            "misses",
            "mpki",
            "miss_latency",
            "writebacks",
        )
        found = [row for row in rows if row is not None]
        return pl.DataFrame(found, schema=list(names), orient="row")

    def _level(self, level: str, components: list[str], prefix: str) -> tuple[Any, ...] | None:
        if not components or (components[0], f"{prefix}hits") not in self._totals:
            return None
        accesses, hits, merged, writebacks = (
            int(sum(self._totals.total(components, prefix + name) for name in names))
            for names in (("reads", "writes"), ("hits",), ("merged",), ("writebacks",))
        )
        misses = accesses - hits - merged
        whole = accesses and not (self.replayed and level in L1_CACHES)
        return (
            level,
            len(components),
            accesses,
            hits / accesses if whole else None,
            misses / accesses if whole else None,
            misses,
            1000 * misses / self.instructions if self.instructions else None,
            self._totals.seconds(components, f"{prefix}miss_latency"),
            writebacks,
        )

    @property
    def dram_bytes(self) -> int:
        """Bytes read from and written to DRAM."""
        return int(
            self._totals.total(self._channels, "read_bytes")
            + self._totals.total(self._channels, "write_bytes")
        )

    @cached_property
    def regions(self) -> pl.DataFrame:
        """For each region and thread: visits, time, instructions and the CPI stack, and with the regions within it."""
        return region_table(self.program, self._details)

    @cached_property
    def task_runs(self) -> pl.DataFrame:
        """Of a replay: which core executed each task of each copy, from when to when, in seconds; else empty."""
        import polars as pl

        rows = [
            (task, copy, core, begin / _SECOND, end / _SECOND)
            for task, copy, core, begin, end in self._details.get("task_runs", ())
        ]
        names = {"task": pl.Int64, "copy": pl.Int64, "core": pl.Int64, "begin": pl.Float64, "end": pl.Float64}
        return pl.DataFrame(rows, schema=names, orient="row")

    @cached_property
    def dram_over_time(self) -> pl.DataFrame:
        """Bytes a second that were read from DRAM and written to it, and how busy its buses were, in each interval."""
        return dram_over_time(self._details["dram"], self.columns)

    @property
    def _busy_causes(self) -> list[str]:
        return [cause for cause in self.causes if cause != "idle"]

    @cached_property
    def hot_instructions(self) -> pl.DataFrame:
        """For each instruction that was executed: where it is, how often, and its cycles by cause; the hottest first.

        Cycles in which a core had nothing to do belong to none. Empty unless the run kept it.
        """
        import polars as pl

        hot = self._details["hot"]
        addresses = [address & _PROCESS_ADDRESS for address in hot["pc"]]
        locations = {address: self.program.symbols.locate(address) for address in set(addresses)}
        data: dict[str, Any] = {
            "address": addresses,
            "function": [locations[address].function for address in addresses],
            "file": [locations[address].file for address in addresses],
            "line": [locations[address].line for address in addresses],
            "instructions": hot["instructions"],
        }
        causes = self._busy_causes
        for at, cause in enumerate(self.causes):
            if cause in causes:
                data[cause] = [cycles[at] for cycles in hot["cycles"]]
        table = pl.DataFrame(data).with_columns(cycles=pl.sum_horizontal(causes))
        numbers = [pl.col(name).sum() for name in ("instructions", "cycles", *causes)]
        keys = ["address", "function", "file", "line"]
        return table.group_by(keys).agg(numbers).sort(["cycles", "address"], descending=[True, False])

    @cached_property
    def hot_lines(self) -> pl.DataFrame:
        """The same for each line of source, or each function where the line is not known."""
        import polars as pl

        numbers = [pl.col(name).sum() for name in ("instructions", "cycles", *self._busy_causes)]
        keys = ["function", "file", "line"]
        return (
            self.hot_instructions.group_by(keys)
            .agg(numbers)
            .sort(["cycles", "function", "line"], descending=[True, False, False])
        )

    @property
    def headline(self) -> definitions.Headline:
        """The numbers that matter, with units."""
        wall = self.wall_seconds
        return definitions.headline(
            simulated_seconds=self.simulated_seconds,
            cycles=self.cycles,
            instructions=self.instructions,
            ipc=self.ipc,
            cores=self.cores,
            exit_code=self.exit_code,
            events=self.events,
            wall_seconds=wall,
            wall_instructions_per_second=self.instructions / wall if wall else None,
            wall_threads=self.threads,
        )

    def write_tables(self, writer: RunWriter) -> None:
        """Keeps the tables as Parquet, what the program wrote, and the pipeline logs that were asked for."""
        for name in TABLES:
            table = getattr(self, name)
            if table.height:
                writer.write_table(f"{name}.parquet", table)
        self.write_output(writer)
        for path, text in self._konata_files(Path(KONATA_FILE)).items():
            writer.write_file(path.name, text.encode())

    def write_konata(self, path: Path, *, force: bool = False) -> list[Path]:
        """Writes the pipeline logs that were asked for: to `path`, or with several cores to a file for each."""
        with FileGroup(path.parent, KONATA, force=force) as group:
            return [
                group.add(file.name, lambda file, text=text: file.write(text.encode()))  # type: ignore[misc]
                for file, text in self._konata_files(path).items()
            ]

    def _konata_files(self, path: Path) -> dict[Path, str]:
        logs = {core: text for core, text in enumerate(self.konata) if text}
        names = konata_paths(path, logs)
        return dict(zip(names, logs.values(), strict=True))

    def _notebook(self) -> Iterable[str]:
        yield headline_table(repr(self), self.headline)
        if any(self.shares.values()):
            bars = {
                f"core {core}": dict(own.select("cause", "share").iter_rows())
                for (core,), own in self.cpi_stack.group_by("core", maintain_order=True)
            }
            shown = dict(list(bars.items())[:_MOST_BARS])
            yield plot(stack_chart("Where the cycles went", "share of a core's cycles", shown))
        yield rows_table("Caches", self.caches.columns, self.caches.iter_rows())

    def __repr__(self) -> str:
        return (
            f"CpuResult({self.program.name} on {self.cores} cores: "
            f"{humanize(round(self.simulated_seconds * _SECOND), TIME)} simulated, {self.instructions:,} instructions, "
            f"IPC {self.ipc:.2f}, in {self.wall_seconds:.3g} s)"
        )


def konata_paths(path: Path, cores: Collection[int]) -> list[Path]:
    """The files of pipeline logs: `path`, or with several cores one for each."""
    if len(cores) == 1:
        return [path]
    return [path.with_name(f"{path.stem}.{core}{path.suffix}") for core in cores]


def region_table(program: Program, details: dict[str, Any]) -> pl.DataFrame:
    """What each thread did in each region, with the region's source location."""
    import polars as pl

    accounts: dict[str, list[Any]] = details["accounts"]
    named = [_named(program, region) for region in details["regions"]]
    outside = (OUTSIDE, "", "")
    labels = [outside if number is None else named[number] for number in accounts["region"]]
    data: dict[str, Any] = {
        "region": [label[0] for label in labels],
        "kind": [label[1] for label in labels],
        "source": [label[2] for label in labels],
        "thread": accounts["thread"],
        "core": accounts["core"],
        "visits": accounts["visits"],
        "time": [time / _SECOND for time in accounts["time"]],
        "away": [time / _SECOND for time in accounts["away"]],
        "inclusive_time": [time / _SECOND for time in accounts["inclusive_time"]],
        "shortest": [None if time is None else time / _SECOND for time in accounts["shortest"]],
        "longest": [time / _SECOND for time in accounts["longest"]],
        "instructions": accounts["instructions"],
        "inclusive_instructions": accounts["inclusive_instructions"],
    }
    for at, cause in enumerate(details["causes"]):
        data[cause] = [cycles[at] for cycles in accounts["cycles"]]
    return pl.DataFrame(data)


def _named(program: Program, region: dict[str, Any]) -> tuple[str, str, str]:
    """What a region is called, its kind, and where it is in the source."""
    location = program.symbols.locate(region["pc"])
    names = (
        (location.function, location.source)
        if region["kind"] == "user"
        else (location.source, location.function)
    )
    known = names[0] or names[1] or f"{location.address:#x}"
    return region_title(region["kind"], region["name"], known), region["kind"], location.source

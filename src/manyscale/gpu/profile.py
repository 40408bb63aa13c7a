# SPDX-License-Identifier: Apache-2.0
"""The profile of a launch: metrics, stalls, hot lines, roofline, and the verdict on what limits it."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from functools import cached_property
from typing import TYPE_CHECKING, Any

from manyscale import _core
from manyscale.errors import InputError, nearest
from manyscale.results.notebook import NotebookView, plot
from manyscale.results.stack_chart import stack_chart

from .kernel_counts import KernelCounts, machine_peaks
from .limits import Limit, limit_of
from .metrics import STALLS, Metric, Roofline, Value, metrics_of, ratio, roofline

if TYPE_CHECKING:
    import polars as pl

    from manyscale.machine.gpu_system import GpuSystem

HEADLINE = (
    *("duration", "cycles", "issued_instructions", "launch_overhead", "ipc", "issue_slots_busy"),
    *("theoretical_occupancy", "achieved_occupancy", "waves_per_sm", "registers"),
    *("threads_per_instruction", "sectors_per_request", "l1_hit_rate", "l2_hit_rate"),
    *("l2_throughput", "l2_utilization", "dram_throughput", "dram_utilization"),
    *("flop_rate", "roofline"),
)
"""The metrics that are shown first."""

# By the columns of `KernelProfile.operations`, which are groups of stall reasons.
_REASONS = {
    "issued": "Selected",
    "stall_memory": "Long Scoreboard, LG Throttle",
    "stall_shared": "Short Scoreboard, Barrier",
    "stall_execution": "Wait, Math Pipe Throttle",
    "stall_other": "No Instruction, Not Selected",
    "stall_fault": "Page Fault",
}
_SUMMED = ("cycles", "threads", *_REASONS)  # over the instructions of a line


class KernelProfile(NotebookView):
    """The profile of one launch. `profile["ipc"]` is a metric's value; see `metrics` for all of them."""

    def __init__(self, counts: KernelCounts) -> None:
        self.counts = counts
        self.kernel = counts.kernel

    @cached_property
    def metrics(self) -> dict[str, Metric]:
        """All metrics by name, each with value, unit, meaning, and its name in Nsight Compute."""
        return metrics_of(self.counts)

    def __getitem__(self, name: str) -> Value:
        if name not in self.metrics:
            raise InputError(f"there is no metric '{name}'; {nearest(name, self.metrics)}")
        return self.metrics[name].value

    @cached_property
    def roofline(self) -> Roofline:
        """The kernel in the roofline model of its machine."""
        return roofline(self.counts)

    @cached_property
    def limit(self) -> Limit:
        """What limits the kernel, with evidence, advice and what following it would save; `str` of it has all."""
        return limit_of(self.counts)

    @cached_property
    def stalls(self) -> pl.DataFrame:
        """Where the cycles of warps went: they add up to all cycles of all warps that were on the SMs.

        `warps` is how many on an SM with a CTA are in that state at a time, `per_instruction` the cycles for each one
        issued.
        """
        import polars as pl

        sm = self.counts.sm
        cycles = [sm[stall.statistic] for stall in STALLS]
        return pl.DataFrame(
            {
                "reason": [stall.name for stall in STALLS],
                "label": [stall.label for stall in STALLS],
                "cycles": cycles,
                "percent": [self[f"stall_{stall.name}"] for stall in STALLS],
                "warps": [ratio(count, sm["active_cycles"]) for count in cycles],
                "per_instruction": [ratio(count, sm["issued_instructions"]) for count in cycles],
                "doc": [stall.meaning for stall in STALLS],
            },
            schema_overrides=dict.fromkeys(("percent", "warps", "per_instruction"), pl.Float64),
        )

    @cached_property
    def warp_states(self) -> pl.DataFrame | None:
        """Over the time of the kernel, how many warps of an SM are in each state: the mean of an interval, and of SMs
        that had a CTA; None if the launch was not recorded.

        `begin` is in seconds from the begin of the kernel, `seconds` the length of the interval.
        """
        import polars as pl

        counts = self.counts
        if not counts.states:
            return None
        intervals = pl.DataFrame(dict(counts.states))
        begin = pl.int_range(intervals.height, eager=True) * counts.state_interval
        length = (counts.elapsed_cycles - begin).clip(1, counts.state_interval)
        return pl.DataFrame(
            {
                "begin": begin / counts.peaks.clock,
                "seconds": length / counts.peaks.clock,
                **{stall.name: intervals[stall.name] / (length * counts.sms) for stall in STALLS},
            }
        )

    @cached_property
    def operations(self) -> pl.DataFrame:
        """A row for each PTX instruction that was executed: how often, for how many threads, and its warps' cycles.

        `cycles` are those of warps that issued it or stalled before it: `issued` and the `stall_…` together, which are
        groups of stall reasons: `stall_memory` is Long Scoreboard and LG Throttle, `stall_shared` Short Scoreboard and
        Barrier, `stall_execution` Wait and Math Pipe Throttle, `stall_other` No Instruction and Not Selected,
        `stall_fault` page faults. `percent` is their part of all cycles of warps; Drain belongs to no instruction.
        """
        import polars as pl

        text = ("function", "text", "file")
        table = pl.DataFrame(
            dict(self.counts.operations),
            schema={name: pl.String if name in text else pl.Int64 for name in self.counts.operations},
        )
        table = table.filter((pl.col("issued") > 0) | (pl.col("threads") > 0))
        cycles, all_cycles = pl.sum_horizontal(*_REASONS), max(self.counts.sm["warp_cycles"], 1)
        return table.with_columns(cycles.alias("cycles"), (100 * cycles / all_cycles).alias("percent"))

    def hot_instructions(self, n: int = 10) -> pl.DataFrame:
        """The instructions that took most of the warps' cycles: of PTX, or of SASS beside its line of PTX."""
        table = _costliest(self.operations, n)
        return table.with_columns(_location(), _main_reason()).select(
            "location", "text", "issued", "threads", "cycles", "percent", "reason", "function", "ptx_line"
        )

    def hot_lines(self, n: int = 10) -> pl.DataFrame:
        """The lines that took most of the warps' cycles: of the source where the PTX names them, else of the PTX.

        `text` is the costliest instruction of the line.
        """
        import polars as pl

        columns = {
            "location": pl.String,
            "text": pl.String,
            "issued": pl.Int64,
            "threads": pl.Int64,
            "cycles": pl.Int64,
            "percent": pl.Float64,
            "reason": pl.String,
            "ptx_line": pl.Int64,
        }
        return pl.DataFrame(
            [[row[name] for name in columns] for row in self.hot_line_rows(n)], schema=columns, orient="row"
        )

    def hot_line_rows(self, n: int = 10) -> list[dict[str, Any]]:
        """The rows of `hot_lines`, without the import of a library for tables."""
        columns = self.counts.operations
        rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        for row in rows:
            row["cycles"] = sum(row[reason] for reason in _REASONS)
        rows = [row for row in rows if row["cycles"] > 0]
        lines: dict[str, dict[str, Any]] = {}
        for row in sorted(rows, key=_by_cost):
            named = row["source_line"] > 0 and row["file"]
            location = (
                f"{row['file'].rpartition('/')[2]}:{row['source_line']}"
                if named
                else f"PTX line {row['ptx_line']}"
            )
            line = lines.setdefault(location, {**row, **dict.fromkeys(_SUMMED, 0), "location": location})
            line["ptx_line"] = min(line["ptx_line"], row["ptx_line"])
            for name in _SUMMED:
                line[name] += row[name]
        whole = max(self.counts.sm["warp_cycles"], 1)
        for line in lines.values():
            line["percent"] = 100 * line["cycles"] / whole
            line["reason"] = _REASONS[max(_REASONS, key=line.__getitem__)]
        return sorted(lines.values(), key=_by_cost)[:n]

    def evidence(self) -> dict[str, Any]:
        """Data for reports besides metrics: the launch, the verdict, and the roofline."""
        counts, peaks = self.counts, self.counts.peaks
        return {
            "grid": list(counts.grid),
            "block": list(counts.block),
            "begin_seconds": counts.begun / 10**15,
            "end_seconds": counts.ended / 10**15,
            "limit": self.limit.data(),
            "occupancy_limit": counts.occupancy_limit_text,
            "roofline": asdict(self.roofline),
            "peaks": {
                "flops": dict(peaks.flops),
                "dram_bytes": peaks.dram_bytes,
                "l2_bytes": peaks.l2_bytes,
            },
        }

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{name} {self.metrics[name]}" for name in ("duration", "achieved_occupancy", "ipc")
        )
        return f"KernelProfile({self.kernel}: {shown}; limited by {self.limit})"

    def _notebook(self) -> Iterable[str]:
        def table(caption: str, rows: Mapping[str, tuple[str, str]]) -> str:
            cells = "".join(
                f'<tr title="{html.escape(doc)}"><td>{html.escape(name)}</td><td>{html.escape(value)}</td></tr>'
                for name, (value, doc) in rows.items()
            )
            return f"<table><caption>{html.escape(caption)}</caption><tbody>{cells}</tbody></table>"

        headline = {name: (str(self.metrics[name]), self.metrics[name].doc) for name in HEADLINE}
        stalls = {
            stall.label: (str(self.metrics[f"stall_{stall.name}"]), stall.meaning)
            for stall in STALLS
            if self.counts.sm[stall.statistic]
        }
        hot = {
            row["location"]: (f"{row['percent']:.1f}% {row['text']}", f"mostly {row['reason']}")
            for row in self.hot_lines(5).iter_rows(named=True)
        }
        yield table(self.kernel, headline)
        yield table("where the cycles of warps went", stalls)
        parts = {stall.label: float(self.counts.sm[stall.statistic]) for stall in STALLS}
        if any(parts.values()):
            yield plot(stack_chart("Where the cycles of warps went", "cycles", {self.kernel: parts}), 420)
        yield table("hot lines", hot)
        yield f"<p>limited by {html.escape(str(self.limit))}</p>"


def _costliest(table: pl.DataFrame, n: int) -> pl.DataFrame:
    import polars as pl

    return table.filter(pl.col("cycles") > 0).sort("cycles", "ptx_line", descending=[True, False]).head(n)


def _by_cost(row: Mapping[str, Any]) -> tuple[int, int]:
    return -row["cycles"], row["ptx_line"]


def _location() -> pl.Expr:
    """The line of the source, else that of the PTX."""
    import polars as pl

    source = pl.col("file").str.split("/").list.last()
    return (
        pl.when((pl.col("source_line") > 0) & (pl.col("file") != ""))
        .then(pl.format("{}:{}", source, "source_line"))
        .otherwise(pl.format("PTX line {}", "ptx_line"))
        .alias("location")
    )


def _main_reason() -> pl.Expr:
    """The most frequent stall of a row, as text."""
    import polars as pl

    columns = list(_REASONS)
    largest = pl.concat_list(columns).list.arg_max()
    return largest.replace_strict(dict(enumerate(_REASONS.values())), return_dtype=pl.String).alias("reason")


class Profiler:
    """Makes the profile of each launch when it has ended."""

    def __init__(self, parts: GpuSystem, launches: _core.GpuLaunches) -> None:
        self._launches = launches
        self._peaks = machine_peaks(parts)

    def take(
        self, index: int, kernel: str, grid: list[int], block: list[int], traffic: _core.GpuTraffic
    ) -> KernelProfile:
        """The profile of a launch; `traffic`: its requests at L2 and DRAM."""
        outcome, taken = self._launches.result(index), self._launches.take_profile(index)
        return KernelProfile(
            KernelCounts(
                kernel=kernel,
                grid=tuple(grid),
                block=tuple(block),
                begun=outcome["begun"],
                prepared=outcome["prepared"],
                first_cta=outcome["first_cta"],
                ended=outcome["ended"],
                registers=outcome["registers"],
                ctas_per_sm=outcome["ctas_per_sm"],
                warps_per_cta=outcome["warps_per_cta"],
                code_instructions=outcome["code_instructions"],
                sms=taken["sms"],
                sm=taken["statistics"],
                l2=traffic.l2,
                crossbar=traffic.crossbar,
                dram=traffic.dram,
                operations=taken["operations"],
                peaks=self._peaks,
                states=taken.get("states", {}),
                state_interval=taken.get("state_interval", 1),
            )
        )

# SPDX-License-Identifier: Apache-2.0
"""What came out of a job: times of ranks, load of links, latencies of messages, the critical path."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from manyscale.errors import InputError
from manyscale.machine.network import Network, described_topology
from manyscale.network import picture as drawing
from manyscale.network.load_picture import MOST_LINKS, LinkTimes, draw_load
from manyscale.network.program import Program
from manyscale.results import definitions
from manyscale.results.notebook import NotebookView, headline_table, plot
from manyscale.results.stack_chart import stack_chart
from manyscale.results.statistics import frame, scalar
from manyscale.units import TIME, humanize

if TYPE_CHECKING:
    import polars as pl

    from manyscale.results import RunWriter

_SECOND = 10**15  # femtoseconds
_MOST_LINKS_IN_NOTEBOOK = 20_000
PICTURE_FILE = "network.svg"
LOAD_PICTURE_FILE = "load.svg"
TABLES = ("ranks", "links", "load", "latency", "critical_path")
_PARTS = ("compute", "overhead", "waiting", "transfer")
_MEANINGS = {
    "compute": "time in compute phases",
    "overhead": "processor time for messages",
    "waiting": "time waited for a message that was not yet sent, or for a receiver",
    "transfer": "time waited for a message on its way",
    "end": "when the rank was done",
}


def link_name(row: dict[str, Any]) -> str:
    """A link of the table of links in words: its two ends, and which of several between them it is."""
    ends = [f"{'node' if row[f'{end}_node'] else 'switch'} {row[end]}" for end in ("from", "to")]
    return f"{ends[0]} to {ends[1]}" + (f" ({row['link'] + 1})" if row["link"] else "")


class JobResult(NotebookView):
    """What came out of a job. Times are in seconds, except in `stats`, which counts femtoseconds."""

    def __init__(
        self,
        program: Program,
        network: Network,
        node_of_rank: npt.NDArray[np.int32],
        native: Any,
        report: dict[str, Any],
        directory: Path | None,
    ) -> None:
        self.program = program
        self.network = network
        self.node_of_rank = node_of_rank
        self.directory = directory
        self.outcome: str = report["outcome"]
        self.events: int = report["events"]
        self.threads: int = report["threads"]
        self.wall_seconds: float = report["wall_seconds"]
        self._now: int = report["now"]
        self._native = native
        self._times: dict[str, npt.NDArray[np.int64]] = native.ranks()
        self.totals: dict[str, int] = native.totals()

    @property
    def _end(self) -> int:
        """When the last rank was done, or how far the run came if some are not."""
        ends = self._times["end"]
        return int(ends.max()) if ends.min() >= 0 else self._now

    @property
    def simulated_seconds(self) -> float:
        """When the last rank was done."""
        return self._end / _SECOND

    @property
    def messages(self) -> int:
        """Messages between ranks, those within nodes too."""
        return self.totals["messages"]

    @property
    def packets(self) -> int:
        """Packets that were sent into the network."""
        return self.totals["packets"]

    @property
    def packet_hops(self) -> int:
        """Links that packets went over, all together."""
        return self.totals["packet_hops"]

    @cached_property
    def ranks(self) -> pl.DataFrame:
        """For each rank its node, its time in compute, overhead, waiting and transfer, and when it was done."""
        import polars as pl

        columns = {name: self._times[name] / _SECOND for name in (*_PARTS, "end")}
        return pl.DataFrame({"rank": np.arange(self.program.ranks), "node": self.node_of_rank, **columns})

    @cached_property
    def links(self) -> pl.DataFrame:
        """For each link and direction: its ends, bytes, packets, the share of time it was busy, time waited for it."""
        import polars as pl

        found = self._native.links()
        end = max(self._end, 1)
        return pl.DataFrame(
            {
                "from": found["from"],
                "from_node": found["from_node"],
                "to": found["to"],
                "to_node": found["to_node"],
                "link": found["link"],
                "bytes": found["bytes"],
                "packets": found["packets"],
                "busy": np.asarray(found["busy"]) / end,
                "queueing": np.asarray(found["queueing"]) / _SECOND,
            }
        )

    @cached_property
    def load(self) -> pl.DataFrame:
        """Each link in each interval: its row in `links`, bytes, share of its bandwidth, mean bytes that waited for it.

        Intervals in which nothing was sent and nothing waited are left out; empty unless the load was recorded.
        """
        import polars as pl

        found = self._native.link_history()
        sent, waited = np.asarray(found["sent"], float), np.asarray(found["waited"], float)
        interval = int(found["interval"])
        row, index = np.nonzero((sent > 0) | (waited > 0))
        carried = np.maximum(self.links["bytes"].to_numpy(), 1)
        seconds_per_byte = self.links["busy"].to_numpy() * max(self._end, 1) / carried
        length = max(interval, 1)
        return pl.DataFrame(
            {
                "row": row,
                "begin": index * interval / _SECOND,
                "seconds": np.full(row.size, interval / _SECOND),
                "bytes": sent[row, index],
                "load": sent[row, index] * seconds_per_byte[row] / length,
                "queue": waited[row, index] / length,
            }
        )

    @cached_property
    def latency(self) -> pl.DataFrame:
        """Histogram of messages' latencies: lower bound of each bucket in seconds, number of messages."""
        import polars as pl

        found = self._native.latency()
        return pl.DataFrame(
            {
                "seconds": np.asarray(found["lower"], float) / _SECOND,
                "messages": np.asarray(found["count"], np.int64),
            }
        )

    @cached_property
    def critical_path(self) -> pl.DataFrame:
        """The chain that decided the end, from its beginning: rank, what it did (run or message), when, for whom.

        What is before the earliest recorded wait of a rank is one row.
        """
        import polars as pl

        found = self._native.critical_path()
        return pl.DataFrame(
            {
                "rank": np.asarray(found["rank"], np.int64),
                "begin": np.asarray(found["begin"], float) / _SECOND,
                "end": np.asarray(found["end"], float) / _SECOND,
                "kind": list(found["kind"]),
                "peer": np.asarray(found["peer"], np.int64),
            }
        )

    @property
    def shares(self) -> dict[str, float]:
        """The mean over ranks of the share of time in compute, overhead, waiting, transfer, and done early."""
        end = max(self._end, 1)
        shares = {name: float(self._times[name].mean()) / end for name in _PARTS}
        return shares | {"done": 1 - float(self._times["end"].mean()) / end}

    @property
    def headline(self) -> definitions.Headline:
        """The numbers that matter, with units."""
        wall = self.wall_seconds
        return definitions.headline(
            simulated_seconds=self.simulated_seconds,
            ranks=self.program.ranks,
            messages=self.messages,
            bytes=self.totals["bytes"],
            packets=self.packets,
            packet_hops=self.packet_hops,
            events=self.events,
            wall_seconds=wall,
            wall_packet_hops_per_second=self.packet_hops / wall if wall else None,
            wall_threads=self.threads,
        )

    @cached_property
    def columns(self) -> dict[str, list[Any]]:
        """Statistics of the whole job as the columns of the tidy table: totals, and times over all ranks."""
        rows: list[tuple[str, str, str, str, str, float | None, float | int]] = []
        for name, unit, meaning in (
            ("messages", "message", "sent between ranks, within nodes too"),
            ("bytes", "B", "in those messages"),
            ("packets", "packet", "sent into the network"),
            ("packet_hops", "hop", "links that packets went over, all together"),
        ):
            rows.append(("job", name, "counter", unit, meaning, None, self.totals[name]))
        for name in (*_PARTS, "end"):
            times = self._times[name]
            for suffix, value in (("min", times.min()), ("mean", times.mean()), ("max", times.max())):
                number = float(value) if suffix == "mean" else int(value)
                rows.append(
                    (
                        "ranks",
                        f"{name}.{suffix}",
                        "gauge",
                        "fs",
                        f"{_MEANINGS[name]}, over all ranks",
                        None,
                        number,
                    )
                )
        for row in self.latency.iter_rows():
            meaning = "from the beginning of a send to the end of its receive"
            rows.append(("job", "latency.bucket", "histogram", "message", meaning, row[0] * _SECOND, row[1]))
        names = ("component", "statistic", "kind", "unit", "description", "key", "value")
        columns: dict[str, list[Any]] = {name: [row[at] for row in rows] for at, name in enumerate(names)}
        columns["scope"] = ["run"] * len(rows)
        return columns

    @cached_property
    def stats(self) -> pl.DataFrame:
        """The tidy table of statistics."""
        return frame(self.columns)

    def value(self, component: str, statistic: str) -> int | float:
        """One scalar statistic."""
        return scalar(self.stats, component, statistic)

    def picture(self) -> str:
        """The network as SVG: the links that carried something, coloured by how busy they were."""
        links = self.links.filter(self.links["bytes"] > 0)
        between: dict[tuple[int, int], tuple[float, int]] = {}
        at_nodes: dict[int, float] = {}
        for row in links.iter_rows(named=True):
            if row["from_node"] or row["to_node"]:
                switch = row["to"] if row["from_node"] else row["from"]
                at_nodes[switch] = max(at_nodes.get(switch, 0.0), row["busy"])
            else:
                pair = (min(row["from"], row["to"]), max(row["from"], row["to"]))
                busy, count = between.get(pair, (0.0, 0))
                between[pair] = (max(busy, row["busy"]), count + 1)
        switches = sorted({*at_nodes, *(switch for pair in between for switch in pair)})
        drawn = [
            drawing.LinkLoad(a, b, busy, f"{count} links {a} - {b}: busiest {busy:.0%}")
            for (a, b), (busy, count) in between.items()
        ]
        return drawing.draw(
            self._title(), self._positions(switches, list(at_nodes), list(between)), drawn, at_nodes
        )

    def load_picture(self) -> str:
        """The busiest links over time as SVG: their load, and what waited for them; `load` must have been recorded."""
        table = self.load
        if table.is_empty():
            raise InputError('no load was recorded; run the job with an interval such as load="10us"')
        interval: float = table["seconds"][0]
        rows = sorted(set(table["row"].to_list()), key=lambda row: (-self.links["busy"][row], row))
        times = []
        for row in rows[:MOST_LINKS]:
            own = table.filter(table["row"] == row)
            indices = (own["begin"] / interval).round().cast(int)
            name = link_name(self.links.row(row, named=True))
            times.append(LinkTimes(name, list(zip(indices, own["load"], own["queue"], strict=True))))
        return draw_load(self._title(), times, interval)

    def _title(self) -> str:
        return (
            f"{self.program.name}, {self.program.ranks:,} ranks: "
            f"{humanize(round(self.simulated_seconds * _SECOND), TIME)}"
        )

    def _positions(
        self, switches: list[int], with_nodes: list[int], links: list[tuple[int, int]]
    ) -> dict[int, drawing.Point]:
        described = described_topology(self.network)
        if described["box"]:
            placed = drawing.box(described["box"])
        elif size := described["group"]:
            placed = drawing.groups(max(switches, default=0) // size + 1, size)
        else:
            return drawing.layered(drawing.levels_of(switches, with_nodes, links))
        if not set(switches) <= set(placed):
            raise InputError("there are switches that the picture does not show")
        return placed

    def write_tables(self, writer: RunWriter) -> None:
        """Keeps ranks, links, load, latencies and the critical path as Parquet, and the picture."""
        for name in TABLES:
            table = getattr(self, name)
            if table.height:
                writer.write_table(f"{name}.parquet", table)
        if self.load.height:
            writer.write_file(LOAD_PICTURE_FILE, self.load_picture().encode())
        if self.links.height <= 2 * drawing.MOST_LINES:
            writer.write_file(PICTURE_FILE, self.picture().encode())

    def _notebook(self) -> Iterable[str]:
        yield headline_table(repr(self), self.headline)
        if any(self.shares.values()):
            yield plot(stack_chart("Time of a rank, mean", "share of the time", {"ranks": self.shares}))
        if self.links.height <= _MOST_LINKS_IN_NOTEBOOK:
            yield plot(self.picture(), 800)

    def __repr__(self) -> str:
        return (
            f"JobResult({self.program.name}, {self.program.ranks:,} ranks: "
            f"{humanize(round(self.simulated_seconds * _SECOND), TIME)} simulated, {self.messages:,} messages, "
            f"in {self.wall_seconds:.3g} s)"
        )

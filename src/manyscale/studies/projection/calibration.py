# SPDX-License-Identifier: Apache-2.0
"""What the MPI library costs on a machine, measured by a detailed simulation of two ranks, for the network's model.

The same library runs on simulated nodes and is modelled by `network.mpi`; here the model's parameters are fitted until
a ping-pong takes as long in both. It is done once for a machine, a network and a version of the library, in some
seconds, and kept in the user's cache.
"""

from __future__ import annotations

import hashlib
import json
import os
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path

from pydantic import PositiveFloat, model_validator

from manyscale import _core
from manyscale.cpu.building import runtime_folder
from manyscale.cpu.program import Program
from manyscale.cpu.running import launch_of
from manyscale.documents import Document, Natural, read_json, validated
from manyscale.errors import InputError
from manyscale.machine import load_machine, to_toml
from manyscale.machine.cpu_system import build_cpu
from manyscale.network.job import Cluster, Job, cluster
from manyscale.network.recorder import Mpi
from manyscale.network.skeleton import compile
from manyscale.results.files import replace_file
from manyscale.studies.call_log import MOST_ENTRIES, CallOfRank, calls_of_ranks
from manyscale.studies.detailed_cluster import run_detailed

EAGER_LIMIT = 4096  # runtime/mpi/messages.c: SHORT_BYTES
WINDOW = 3 * 8192  # the same: so many whole pieces fit into a ring
ENVELOPE = 48  # the same: struct packet
_SIZES = (0, 64, 1024, 4096, 4104, 16384, 65536)  # programs/mpi_costs.c
_SHORT_SIZES = _SIZES[:4]
_REPETITIONS = 5
_REDUCED = 8192  # bytes of the reduction in there
_BLOCKS = 128  # numbers of 8 bytes in a message with gaps
_VERSION = 2  # of how this is fitted, for the cache
_MEASURED = frozenset(
    f"MPI_{name}" for name in ("Send", "Recv", "Isend", "Irecv", "Wait", "Waitall", "Barrier", "Reduce_local")
)
_PROGRAM = Path(__file__).parent / "programs" / "mpi_costs.xz"


@dataclass(frozen=True)
class MpiCosts:
    """The library's costs as `network.mpi` takes them, in femtoseconds and bytes, and those of calls without messages.

    `measured` and `modelled` are ping-pongs by bytes, one way, in seconds: between nodes, and within one.
    """

    send_overhead: int
    receive_overhead: int
    send_overhead_per_byte: int
    receive_overhead_per_byte: int
    post_overhead: int
    latency: int
    control_overhead: int
    local_send_overhead: int
    local_receive_overhead: int
    local_send_overhead_per_byte: int
    local_receive_overhead_per_byte: int
    local_latency: int
    local_bandwidth: int
    nobody_send: int  # to MPI_PROC_NULL
    nobody_receive: int
    reduction: int  # femtoseconds for each byte
    pack: int  # femtoseconds for each block of a message that has gaps in memory, to send it
    unpack: int  # the same, to receive it
    measured: dict[str, float]
    modelled: dict[str, float]

    @property
    def changes(self) -> list[str]:
        """Of a machine's parameters, so that its network's MPI is this library on these nodes."""
        values = {
            "send_overhead": f"{self.send_overhead}fs",
            "receive_overhead": f"{self.receive_overhead}fs",
            "send_overhead_per_byte": f"{self.send_overhead_per_byte}fs",
            "receive_overhead_per_byte": f"{self.receive_overhead_per_byte}fs",
            "post_overhead": f"{self.post_overhead}fs",
            "latency": f"{self.latency}fs",
            "control_overhead": f"{self.control_overhead}fs",
            "control_bytes": f"{ENVELOPE}B",
            "eager_limit": f"{EAGER_LIMIT}B",
            "window": f"{WINDOW}B",
            "copy_bandwidth": "0B/s",
            "match_overhead": "0fs",
            "page_overhead": "0fs",
            # Of collectives in skeletons; recorded jobs have their messages and their reductions.
            "reduction_bandwidth": f"{10**15 // self.reduction if self.reduction else 0}B/s",
            "offload": "false",
            "collectives": '"mpich"',
            "local.send_overhead": f"{self.local_send_overhead}fs",
            "local.receive_overhead": f"{self.local_receive_overhead}fs",
            "local.send_overhead_per_byte": f"{self.local_send_overhead_per_byte}fs",
            "local.receive_overhead_per_byte": f"{self.local_receive_overhead_per_byte}fs",
            "local.latency": f"{self.local_latency}fs",
            "local.bandwidth": f"{self.local_bandwidth}B/s",
            "local.eager_limit": f"{EAGER_LIMIT}B",
        }
        return [f"network.mpi.{name}={value}" for name, value in values.items()]

    @cached_property
    def largest_error(self) -> float:
        """How far a modelled ping-pong is off, at most, as a share."""
        return max(abs(self.modelled[name] / time - 1) for name, time in self.measured.items())


class CostsDocument(Document):
    """`MpiCosts` in a file."""

    send_overhead: Natural
    receive_overhead: Natural
    send_overhead_per_byte: Natural
    receive_overhead_per_byte: Natural
    post_overhead: Natural
    latency: Natural
    control_overhead: Natural
    local_send_overhead: Natural
    local_receive_overhead: Natural
    local_send_overhead_per_byte: Natural
    local_receive_overhead_per_byte: Natural
    local_latency: Natural
    local_bandwidth: Natural
    nobody_send: Natural
    nobody_receive: Natural
    reduction: Natural
    pack: Natural
    unpack: Natural
    measured: dict[str, PositiveFloat]
    modelled: dict[str, PositiveFloat]

    @model_validator(mode="after")
    def _is_modelled(self) -> CostsDocument:
        if missing := set(self.measured) - set(self.modelled):
            raise ValueError(f"'{min(missing)}' was measured and is not modelled")
        if not self.measured:
            raise ValueError("nothing was measured")
        return self


def costs_of(document: CostsDocument) -> MpiCosts:
    """The costs that a file has."""
    return MpiCosts(**document.model_dump())


def calibrated(
    machine: str = "broadwell",
    changes: Sequence[str] = (),
    network: str = "omnipath",
    network_changes: Sequence[str] = (),
    *,
    fresh: bool = False,
) -> MpiCosts:
    """The costs on nodes of a machine with a network, from the cache if they were measured before."""
    path = _cache_file(machine, changes, network, network_changes)
    if not fresh and path.is_file():
        try:
            what = "costs of an MPI library"
            return costs_of(validated(read_json(path, what), CostsDocument, f"{path} is no {what}"))
        except InputError:
            pass  # written by something else: it is measured again
    costs = measure(machine, changes, network, network_changes)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(asdict(costs), indent=1)
        replace_file(path, lambda file: file.write(text.encode()))
    except OSError:
        pass  # a cache that cannot be written costs time only
    return costs


def _cache_file(machine: str, changes: Sequence[str], network: str, network_changes: Sequence[str]) -> Path:
    digest = hashlib.sha256(str(_VERSION).encode())
    for name, told in ((machine, changes), (network, network_changes)):
        resolved = load_machine(name, told)
        digest.update(to_toml(resolved.machine, {}).encode())
    digest.update(_PROGRAM.read_bytes())
    for source in sorted((runtime_folder() / "mpi").glob("*.[ch]")):
        digest.update(source.read_bytes())
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "manyscale" / "mpi-costs" / f"{digest.hexdigest()[:32]}.json"


def measure(
    machine: str = "broadwell",
    changes: Sequence[str] = (),
    network: str = "omnipath",
    network_changes: Sequence[str] = (),
) -> MpiCosts:
    """Simulates the experiments on two nodes and on one, and fits the model to them."""
    fabric = cluster(network, network_changes, nodes=2)
    remote = _Experiments(
        run_detailed(
            Program(_PROGRAM),
            nodes=2,
            ranks_per_node=1,
            machine=machine,
            changes=changes,
            network=fabric,
            keep_calls=True,
        ).calls
    )
    local = _Experiments(_on_one_node(machine, changes))
    return _fit(remote, local, network, network_changes)


def _on_one_node(machine: str, changes: Sequence[str]) -> list[list[CallOfRank]]:
    parts = build_cpu(load_machine(machine, changes).machine, 2, region_log=MOST_ENTRIES)
    program = replace(Program(_PROGRAM), ranks=2)
    _core.cpu_launch(parts.program.native, launch_of(program, True, ()))
    parts.system.run()
    return calls_of_ranks(parts, 2)


class _Experiments:
    """Medians of the experiments of programs/mpi_costs.c, in femtoseconds; the first of each is not counted."""

    def __init__(self, calls: Sequence[Sequence[CallOfRank]]) -> None:
        streams = [[call for call in rank if call.name in _MEASURED] for rank in calls]
        positions = [0, 0]

        def take(rank: int, names: Sequence[str]) -> list[list[CallOfRank]]:
            rows = []
            for _ in range(_REPETITIONS):
                row = streams[rank][positions[rank] : positions[rank] + len(names)]
                assert [call.name for call in row] == list(names)
                positions[rank] += len(names)
                rows.append(row)
            return rows[1:]

        def length(rows: list[list[CallOfRank]], column: int) -> float:
            return statistics.median(row[column].end - row[column].begin for row in rows)

        self.ping_pong: dict[int, float] = {}
        self.send: dict[int, float] = {}
        self.receive: dict[int, float] = {}
        for size in _SIZES:
            rows = take(0, ("MPI_Send", "MPI_Recv"))
            take(1, ("MPI_Recv", "MPI_Send"))
            self.ping_pong[size] = statistics.median((row[1].end - row[0].begin) / 2 for row in rows)
        for size in _SHORT_SIZES:
            sender = take(0, ("MPI_Isend", "MPI_Wait", "MPI_Barrier"))
            receiver = take(1, ("MPI_Irecv", "MPI_Wait", "MPI_Barrier"))
            self.send[size] = length(sender, 0) + length(sender, 1)
            self.receive[size] = length(receiver, 1)
            self.post = length(receiver, 0)
        for _ in _SHORT_SIZES:
            take(0, ("MPI_Send", "MPI_Barrier"))
            take(1, ("MPI_Recv", "MPI_Barrier"))
        sender = take(0, ("MPI_Isend", "MPI_Wait", "MPI_Barrier"))
        receiver = take(1, ("MPI_Irecv", "MPI_Wait", "MPI_Barrier"))
        dense = 8 * _BLOCKS
        assert dense in _SHORT_SIZES
        self.pack = max(0.0, length(sender, 0) + length(sender, 1) - self.send[dense]) / _BLOCKS
        self.unpack = max(0.0, length(receiver, 1) - self.receive[dense]) / _BLOCKS
        nobody = take(0, ("MPI_Irecv", "MPI_Isend", "MPI_Waitall"))
        completion = length(nobody, 2) / 2
        self.nobody_receive = length(nobody, 0) + completion
        self.nobody_send = length(nobody, 1) + completion
        self.reduction = length(take(0, ("MPI_Reduce_local",)), 0) / _REDUCED

    @staticmethod
    def line(times: dict[int, float]) -> tuple[int, int]:
        """A time without bytes and one for each byte, from the shortest and the longest message."""
        slope = (times[_SHORT_SIZES[-1]] - times[0]) / _SHORT_SIZES[-1]
        return round(times[0]), max(0, round(slope))


def _fit(remote: _Experiments, local: _Experiments, network: str, network_changes: Sequence[str]) -> MpiCosts:
    send, send_byte = remote.line(remote.send)
    receive, receive_byte = remote.line(remote.receive)
    local_send, local_send_byte = local.line(local.send)
    local_receive, local_receive_byte = local.line(local.receive)
    costs = MpiCosts(
        send_overhead=send,
        receive_overhead=receive,
        send_overhead_per_byte=send_byte,
        receive_overhead_per_byte=receive_byte,
        post_overhead=round(remote.post),
        latency=0,
        control_overhead=0,
        local_send_overhead=local_send,
        local_receive_overhead=local_receive,
        local_send_overhead_per_byte=max(0, local_send_byte - send_byte),
        local_receive_overhead_per_byte=max(0, local_receive_byte - receive_byte),
        local_latency=0,
        local_bandwidth=10**12,
        nobody_send=round(remote.nobody_send),
        nobody_receive=round(remote.nobody_receive),
        reduction=round(remote.reduction),
        pack=round(remote.pack),
        unpack=round(remote.unpack),
        measured=_named(remote.ping_pong, local.ping_pong),
        modelled={},
    )

    def modelled(found: MpiCosts, size: int, within: bool) -> float:
        return _modelled_ping_pong(found, size, within, network, network_changes)

    costs = replace(costs, latency=max(0, round(remote.ping_pong[64] - modelled(costs, 64, False))))
    # The question and the answer of a long message cost one each.
    missing = remote.ping_pong[4104] - modelled(costs, 4104, False)
    costs = replace(costs, control_overhead=max(0, round(missing / 2)))
    missing = local.ping_pong[64] - modelled(costs, 64, True)
    if missing >= 0:
        costs = replace(costs, local_latency=round(missing))
    else:  # the receiver has begun before the sender is done
        costs = replace(costs, local_receive_overhead=max(0, round(costs.local_receive_overhead + missing)))
    costs = _fit_local_bytes(costs, local, lambda found, size: modelled(found, size, True))
    times = [{size: modelled(costs, size, within) for size in _SIZES} for within in (False, True)]
    return replace(costs, modelled=_named(*times))


def _fit_local_bytes(
    costs: MpiCosts, local: _Experiments, modelled: Callable[[MpiCosts, int], float]
) -> MpiCosts:
    """Scales what a byte costs within a node, so that ping-pongs of all sizes are as near as can be.

    How much of a message is still in whose cache depends on what both do; alone, a send is dearer than in a ping-pong.
    """
    sizes = [size for size in _SIZES if size >= 1024]

    def scaled(factor: float) -> MpiCosts:
        return replace(
            costs,
            local_send_overhead_per_byte=round(factor * costs.local_send_overhead_per_byte),
            local_receive_overhead_per_byte=round(factor * costs.local_receive_overhead_per_byte),
        )

    # The model is linear in the factor; the sum of squares of relative errors has its least value at:
    above = below = 0.0
    for size in sizes:
        base, time = modelled(scaled(0), size), local.ping_pong[size]
        slope = (modelled(scaled(1), size) - base) / time
        above += slope * (1 - base / time)
        below += slope * slope
    return scaled(max(0.0, above / below)) if below else costs


def _named(between: dict[int, float], within: dict[int, float]) -> dict[str, float]:
    names = {f"{size} B between nodes": time / 10**15 for size, time in between.items()}
    return names | {f"{size} B within a node": time / 10**15 for size, time in within.items()}


def _ping_pong(turns: int, bytes: int) -> Callable[[Mpi, int, int], None]:
    def play(mpi: Mpi, rank: int, size: int) -> None:
        for _ in range(turns):
            if rank == 0:
                mpi.send(1, bytes)
            mpi.recv(1 - rank, bytes)
            if rank == 1:
                mpi.send(0, bytes)

    return play


def _modelled_ping_pong(
    costs: MpiCosts, size: int, within: bool, network: str, network_changes: Sequence[str]
) -> float:
    turns = 10
    told = [*network_changes, *costs.changes]
    fabric: Cluster = cluster(network, told, nodes=1 if within else 2, ranks_per_node=2 if within else 1)
    program = compile(_ping_pong(turns, size), 2, name="ping-pong")
    return Job(program, fabric, critical_path=False).run().simulated_seconds * 10**15 / (2 * turns)

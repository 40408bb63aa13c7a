# SPDX-License-Identifier: Apache-2.0
"""What phase 2 hands to phase 3: for each group of ranks its timing profiles, with the other nodes and without."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from manyscale.cpu.program import Program
from manyscale.documents import Document, Natural, read_document
from manyscale.errors import InputError, ManyscaleError
from manyscale.machine import load_machine, to_toml
from manyscale.machine.saving import MACHINE_FILE, with_network
from manyscale.results.files import FileGroup, document_kind
from manyscale.results.integrity import checksum_of, damage, is_listing, sealed
from manyscale.studies.projection.calibration import CostsDocument, MpiCosts, calibrated, costs_of
from manyscale.studies.projection.node import NodeResult, simulate_node, with_threads
from manyscale.studies.projection.profiling import RankProfile
from manyscale.studies.projection.recorded_job import record
from manyscale.studies.projection.timings import TIMING_PROFILE, PhaseTiming, TimingProfile

SCHEMA = 2  # 1 had no checksums
KIND = "projection-node"
FILE = "node.json"
MACHINE = "machine.toml"
TIMINGS = "timings"

Say = Callable[[str], None]


class _Facts(Document):
    """What phase 3 takes of a job where it is not told otherwise; there may be more."""

    model_config = ConfigDict(extra="allow")

    program: str
    arguments: list[str] = []
    machine: str
    network: str
    network_changes: list[str]
    native_program: str | None = None


class _Node(Document):
    facts: _Facts
    labels: list[Natural]
    ranks_per_node: Annotated[int, Field(ge=1, le=2**20)]
    external: Natural
    alone: Natural
    costs: CostsDocument
    cpi: dict[str, dict[str, float]]
    files: dict[str, dict[str, Any]] = {}


@dataclass(frozen=True, eq=False)
class GroupTimings:
    """The compute phases of one group of ranks: between calls, and by the regions that the program marked."""

    phases: TimingProfile
    call_sites: TimingProfile


@dataclass(frozen=True, eq=False)
class MeasuredJob:
    """The timings of a job's groups of ranks; `external` with native ranks on the other nodes, `alone` without."""

    labels: list[int]  # the group of each rank
    ranks_per_node: int
    external: list[GroupTimings]  # by group; empty if it was not simulated
    alone: list[GroupTimings]
    costs: MpiCosts
    cpi: dict[str, dict[str, float]]  # by rank: cycles for each instruction, by cause
    facts: dict[str, Any] = field(default_factory=dict)
    machine_toml: str = ""  # the node and the network, with all that the runs used

    def timings(self, external: bool) -> list[GroupTimings]:
        """Of each group."""
        found = self.external if external else self.alone
        if not found:
            how = "with native ranks on the other nodes" if external else "of a node alone"
            raise InputError(f"there are no timings {how}; simulate the nodes so, too")
        return found

    def groups(self, ranks: int) -> list[int]:
        """The group of each rank of a job of another size.

        The first rank and the last are as those that were profiled; those between are as the ones at the same
        relative position.
        """
        known = len(self.labels)
        if ranks == known or max(self.labels) == 0:
            return [self.labels[min(rank, known - 1)] for rank in range(ranks)]
        inner = max(1, known - 2)
        positions = [0]
        positions += [1 + (rank - 1) * inner // max(1, ranks - 2) for rank in range(1, ranks - 1)]
        positions += [known - 1] * (ranks > 1)
        return [self.labels[min(position, known - 1)] for position in positions]

    def save(self, folder: str | os.PathLike[str], *, force: bool = False) -> None:
        """Writes node.json, machine.toml and a timing profile for each group; over others only with `force`."""
        files = {
            f"{TIMINGS}/{name}-{group}{ending}.json": profile.to_json()
            for name, found in (("external", self.external), ("alone", self.alone))
            for group, one in enumerate(found)
            for ending, profile in (("", one.phases), ("-call-sites", one.call_sites))
        }
        if self.machine_toml:
            files[MACHINE] = self.machine_toml.encode()
        document = {
            "schema": SCHEMA,
            "kind": KIND,
            "facts": self.facts,
            "labels": self.labels,
            "ranks_per_node": self.ranks_per_node,
            "external": len(self.external),
            "alone": len(self.alone),
            "costs": asdict(self.costs),
            "cpi": self.cpi,
            "files": {name: checksum_of(content) for name, content in files.items()},
        }
        kinds = {FILE: document_kind(KIND), MACHINE: MACHINE_FILE}
        with FileGroup(folder, lambda name: kinds.get(name, TIMING_PROFILE), force=force) as group_of_files:
            for name, content in (files | {FILE: sealed(document, indent=1)}).items():
                group_of_files.add(name, lambda file, content=content: file.write(content))  # type: ignore[misc]

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> MeasuredJob:
        """Reads what `save` wrote."""
        path = Path(folder) / FILE
        read = read_document(path, _Node, "result of phase 2", kind=KIND, schema=SCHEMA)
        timings = Path(folder) / TIMINGS
        problems = (
            damage(Path(folder), read.files) if is_listing(read.files) else ["its list of files is none"]
        )
        if problems:
            raise InputError(f"{path} does not fit its timings: {'; '.join(problems)}; run phase 2 again")

        def groups(name: str, count: int) -> list[GroupTimings]:
            return [
                GroupTimings(
                    TimingProfile.load(timings / f"{name}-{group}.json"),
                    TimingProfile.load(timings / f"{name}-{group}-call-sites.json"),
                )
                for group in range(count)
            ]

        labels = read.labels
        count = max(labels, default=-1) + 1
        if not labels or {read.external, read.alone} - {0, count}:
            raise InputError(f"{path} is no result of phase 2: groups of ranks and timings do not fit")
        return cls(
            labels,
            read.ranks_per_node,
            groups("external", read.external),
            groups("alone", read.alone),
            costs_of(read.costs),
            read.cpi,
            read.facts.model_dump(exclude_unset=True),
            (Path(folder) / MACHINE).read_text(encoding="utf-8") if MACHINE in read.files else "",
        )


def measure_job(
    program: Program,
    native_program: str | os.PathLike[str] | None,
    profile: RankProfile,
    *,
    machine: str = "broadwell",
    changes: Sequence[str] = (),
    network: str = "omnipath",
    network_changes: Sequence[str] = (),
    external: bool = True,
    alone: bool = True,
    alone_args: Sequence[str] | None = None,
    injection: bool = True,
    threads_per_rank: int = 1,
    threads: int = 1,
    seed: int = 0,
    say: Say = lambda text: None,
    progress: Callable[[int, int], None] | None = None,
) -> MeasuredJob:
    """Phase 2: simulates the nodes that a profile chose, with native ranks on the others, alone, or both.

    A node alone is given `alone_args` (else those of the program): the problem scaled to a single node.
    """
    if external and native_program is None:
        raise InputError("ranks of other nodes need the program compiled for this machine (--native)")
    if not external and not alone:
        raise InputError("nothing is simulated with neither external ranks nor a node alone")
    say("costs of the MPI library (kept for the next time)")
    costs = calibrated(machine, changes, network, network_changes)
    labels, per_node = profile.clusters.labels, profile.ranks_per_node
    if len(labels) % per_node:
        raise InputError(f"{len(labels)} ranks cannot fill nodes of {per_node}")
    nodes = len(labels) // per_node
    arguments = [str(argument) for argument in program.args]
    common: dict[str, Any] = {
        "machine": machine,
        "changes": changes,
        "threads_per_rank": threads_per_rank,
        "threads": threads,
        "seed": seed,
        "progress": progress,
    }
    program = with_threads(program, threads_per_rank)
    with_others: list[tuple[int, NodeResult]] = []
    isolated: list[NodeResult] = []
    if external:
        assert native_program is not None
        recording = record(native_program, len(labels), arguments, environment=program.environment)
        for node in profile.nodes:
            say(f"node {node} of {nodes} in detail, the ranks of the others native")
            found = simulate_node(
                program,
                ranks_per_node=per_node,
                native_program=native_program,
                nodes=nodes,
                node=node,
                injection=injection,
                recording=recording,
                instructions=profile.instructions(node),
                **common,
            )
            with_others.append((node * per_node, found))
    if alone:
        say("a node alone")
        single = list(alone_args) if alone_args is not None else arguments
        isolated.append(_alone(program, native_program, per_node, single, common))
    rows = with_others or [(0, isolated[0])]
    return MeasuredJob(
        labels,
        per_node,
        _by_group(with_others, labels),
        [_pooled([(found, rank) for found in isolated for rank in range(per_node)])] * (max(labels) + 1)
        if isolated
        else [],
        costs,
        {
            str(first + core): stack
            for first, found in rows
            for core, stack in enumerate(found.cpi[:per_node])
        },
        {
            "program": program.name,
            "arguments": arguments,
            "machine": machine,
            "changes": list(changes),
            "network": network,
            "network_changes": list(network_changes),
            "nodes": nodes,
            "simulated_nodes": profile.nodes if external else [0],
            "injection": injection and external,
            "threads_per_rank": threads_per_rank,
            "native_program": None if native_program is None else os.fspath(native_program),
        },
        _machine_toml(rows[0][1], network, network_changes),
    )


def _machine_toml(found: NodeResult, network: str, network_changes: Sequence[str]) -> str:
    """The simulated node and the network of the job as one machine."""
    joined = load_machine(network, network_changes)
    return to_toml(*with_network(found.machine, found.sources, joined.machine, joined.sources))


def _alone(
    program: Program,
    native_program: str | os.PathLike[str] | None,
    ranks: int,
    arguments: Sequence[str],
    common: dict[str, Any],
) -> NodeResult:
    single = replace(program, args=tuple(arguments))
    try:
        recording = (
            None
            if native_program is None
            else record(native_program, ranks, arguments, environment=single.environment)
        )
        return simulate_node(single, ranks_per_node=ranks, recording=recording, **common)
    except ManyscaleError as error:
        raise InputError(
            f"a node alone: {error} (give arguments for a single node with --alone-args, or leave it out with "
            "--no-alone)"
        ) from None


def _by_group(simulated: Sequence[tuple[int, NodeResult]], labels: Sequence[int]) -> list[GroupTimings]:
    if not simulated:
        return []
    members: dict[int, list[tuple[NodeResult, int]]] = {}
    for first, found in simulated:
        for rank in range(len(found.calls)):
            members.setdefault(labels[first + rank], []).append((found, rank))
    if missing := set(labels) - set(members):
        raise InputError(f"no node with a rank of group {min(missing)} was simulated; choose one more node")
    return [_pooled(members[group]) for group in range(max(labels) + 1)]


def _pooled(members: Sequence[tuple[NodeResult, int]]) -> GroupTimings:
    """The timings of some ranks of simulated nodes together."""
    facts = members[0][0].profile.facts
    costs = members[0][0].profile.call_costs

    def pooled(what: str) -> TimingProfile:
        by_name: dict[str, list[list[float]]] = {}
        for found, rank in members:
            for name, ranks in getattr(found, what).items():
                if ranks[rank]:
                    by_name.setdefault(name, []).append(ranks[rank])
        return TimingProfile([PhaseTiming.of(name, by_name[name]) for name in sorted(by_name)], facts, costs)

    return GroupTimings(pooled("phases"), pooled("call_sites"))

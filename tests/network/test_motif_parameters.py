# SPDX-License-Identifier: Apache-2.0
"""Every parameter of every motif does something: it changes the program and the schedule, or it is refused."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from manyscale import _core
from manyscale.errors import InputError
from manyscale.network import MOTIFS, motif
from manyscale.network.durations import Distribution
from manyscale.network.goal_export import Library, schedule_of
from manyscale.network.job import program_for
from manyscale.network.program import Program
from manyscale.spec import Base

RANKS = 16
# Values that no type tells: names, and numbers that must divide others.
VALUES: dict[str, Any] = {
    "algorithm": "ring",
    "tensor": 4,
    "pipeline": 2,
    "layers": 16,
    "levels": 2,
    "x": 1,
    "y": 1,
    "z": 1,
    "rows": 2,
    "target": 3,
    "senders": 5,
    "measured_side": 64,
}
ALGORITHMS = {
    "alltoall": "bruck",
    "collective": "tree",
    "dataparallel": "chain",
    "fft2d": "bruck",
    "fft3d": "bruck",
}
# What else must be stated for a parameter to matter.
NEEDS: dict[tuple[str, str], dict[str, Any]] = {
    ("halo2d", "corner"): {"points": "9"},
    ("halo3d", "edge"): {"points": "26"},
    ("halo3d", "corner"): {"points": "26"},
    ("allreduce", "variation"): {"compute": "1us"},
    ("alltoall", "variation"): {"compute": "1us"},
    ("collective", "variation"): {"compute": "1us"},
    ("random", "variation"): {"compute": "1us"},
    ("collective", "bytes"): {"collective": "bcast"},
    ("gputraining", "host_link"): {"staging": "staged"},
    ("training", "schedule"): {"pipeline": 2},
}
TIMED = {("fft2d", "measured_side")}
ALL = [(name, parameter) for name, kind in MOTIFS.items() for parameter in kind.model_fields]


def other_value(name: str, parameter: str) -> Any:
    """A value of a parameter that is not its default."""
    if parameter == "algorithm" and name in ALGORITHMS:
        return ALGORITHMS[name]
    if parameter in VALUES:
        return VALUES[parameter]
    field = MOTIFS[name].model_fields[parameter]
    default = getattr(motif(name), parameter)
    if isinstance(default, bool):
        return not default
    if choices := get_args(field.annotation):
        return next(choice for choice in choices if choice != default)
    if isinstance(default, float):
        return default / 2 if default else 0.5
    assert isinstance(default, int)
    return Base(2 * default or 10**6)


def text(program: Program, ranks_per_node: int = 2) -> str:
    """All that the schedule of a program holds."""
    schedule = schedule_of(program, Library(ranks_per_node=ranks_per_node))
    return repr([vars(schedule.rank(rank)) for rank in range(program.ranks)])


def contents(program: Program) -> str:
    """All that a program holds."""
    steps = [
        [(step.kind, step.operands, step.algorithm) for step in program.steps(rank)] for rank in range(RANKS)
    ]
    patterns = [[(list(one.low), list(one.high)) for one in pattern.clusters] for pattern in program.patterns]
    return repr((steps, patterns))


def small(name: str) -> dict[str, Any]:
    """Few iterations, for speed."""
    fields = MOTIFS[name].model_fields
    counts = {"iterations": 2, "steps": 2, "messages": 3, "microbatches": 3}
    sizes = {"nx": 32, "ny": 16, "nz": 16} if name == "hpcg" else {}
    return {key: value for key, value in counts.items() if key in fields} | sizes


@pytest.mark.parametrize(("name", "parameter"), ALL)
def test_a_parameter_changes_the_program(name: str, parameter: str):
    base = small(name) | NEEDS.get((name, parameter), {})
    base.pop(parameter, None)
    skeleton, changed = motif(name, **base), motif(name, **base, **{parameter: other_value(name, parameter)})
    if (name, parameter) in TIMED:
        timings = {"transpose": Distribution.normal(10**9, 0.1)}
        skeleton, changed = skeleton.with_timings(timings), changed.with_timings(timings)
    programs = [program_for(one, RANKS, {}) for one in (skeleton, changed)]
    assert contents(programs[0]) != contents(programs[1])
    # Distributions are their means in GOAL, so a variation is not in it.
    if parameter != "variation":
        assert text(programs[0]) != text(programs[1])


@pytest.mark.parametrize(("name", "parameter"), [*NEEDS, *TIMED])
def test_a_parameter_that_nothing_reads_is_refused(name: str, parameter: str):
    if (name, parameter) == ("training", "schedule"):
        pytest.skip("it is read: with one stage both schedules are the same")
    with pytest.raises(InputError, match=f"{name}: the parameter '{parameter}' has no effect"):
        program_for(name, RANKS, {parameter: other_value(name, parameter)})


@pytest.mark.parametrize(("name", "parameter"), ALL)
@pytest.mark.parametrize("ranks", [1, 2])
def test_whether_a_parameter_matters_does_not_depend_on_the_ranks(name: str, parameter: str, ranks: int):
    """A study that begins with one rank states what the larger jobs need."""
    if (
        parameter in ("x", "y", "z", "rows", "target", "senders", "tensor", "pipeline")
        or (name, parameter) in TIMED
    ):
        return  # numbers of ranks
    stated = small(name) | NEEDS.get((name, parameter), {}) | {parameter: other_value(name, parameter)}
    stated |= {"tensor": 1} if name == "training" else {}
    if stated.get("pipeline", 1) > ranks or (name in ("pingpong", "random") and ranks < 2):
        return
    program_for(name, ranks, stated)


def test_timed_skeletons_refuse_compute_times_of_their_own():
    timings = {"transpose": Distribution.normal(10**9, 0.1)}
    with pytest.raises(InputError, match=r"'butterfly' has no effect.*measured"):
        program_for(motif("fft2d", butterfly="1ns").with_timings(timings), 4, {})


ALGORITHM_NAMES = [(kind, name) for kind, known in _core.mpi_algorithms().items() for name in known]


@pytest.mark.parametrize(("kind", "algorithm"), ALGORITHM_NAMES)
@pytest.mark.parametrize("ranks", [2, 6, 8])
def test_a_schedule_has_the_messages_of_the_run(kind: str, algorithm: str, ranks: int, tmp_path):
    """As many messages and bytes as the job that runs the same algorithm, on nodes of two ranks."""
    from manyscale.network import run
    from manyscale.network.goal import write_goal

    def skeleton(mpi, rank, size):
        name = {"broadcast": "bcast"}.get(kind, kind)
        if kind == "barrier":
            mpi.barrier(algorithm=algorithm)
        else:
            getattr(mpi, name)(4800, algorithm=algorithm)

    if kind == "alltoallv":
        pytest.skip("amounts for each pair are not written as GOAL")
    program = program_for(skeleton, ranks, {})
    schedule = schedule_of(program, Library(ranks_per_node=2))
    write_goal(schedule, tmp_path / "job.goal")
    direct = run(program, nodes=ranks // 2, ranks_per_node=2)
    again = run(tmp_path / "job.goal", nodes=ranks // 2, ranks_per_node=2)
    assert (again.messages, again.totals["bytes"]) == (direct.messages, direct.totals["bytes"])
    assert again.simulated_seconds == pytest.approx(direct.simulated_seconds, rel=0.25)


def test_reductions_hardly_go_on_while_ranks_compute():
    """Collectives that were begun go on within MPI calls: computing and reducing add up (docs/gpu-nodes.md)."""
    from manyscale.network import run

    def seconds(backward: str) -> float:
        stated = {"layers": 4, "layer": "4MiB", "steps": 1, "forward": "0fs", "update": "0fs"}
        return run("gputraining", nodes=4, backward=backward, algorithm="ring", **stated).simulated_seconds

    alone, both = seconds("0fs"), seconds("1ms")
    assert both == pytest.approx(alone + 4 * 1e-3, rel=0.3)
    assert both > 4e-3 + 0.6 * alone

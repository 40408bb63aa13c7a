# SPDX-License-Identifier: Apache-2.0
"""What a projection does not know it says: threads without cores, and phases that no simulated rank ran."""

from __future__ import annotations

import numpy as np
import pytest

from manyscale import cpu
from manyscale.errors import ProgramError
from manyscale.studies.projection.node import simulate_node
from manyscale.studies.projection.predict import Prediction
from manyscale.studies.projection.recorded_job import RecordedJob
from manyscale.studies.projection.timings import PhaseTiming, TimingProfile, phase_name


def product(threads: int) -> cpu.Program:
    """A product of matrices by so many OpenMP threads."""
    return cpu.Program(cpu.sample("elastic"), ["matrix", str(threads), "64"])


def test_a_rank_has_a_core_for_each_of_its_threads():
    one, four = (
        simulate_node(product(threads), ranks_per_node=1, threads_per_rank=threads) for threads in (1, 4)
    )
    assert four.seconds < 0.5 * one.seconds
    assert four.profile.facts["threads_per_rank"] == 4


def test_more_threads_than_cores_are_refused():
    with pytest.raises(ProgramError, match=r"made 4 threads, but have 1 cores.*--threads-per-rank 4"):
        simulate_node(product(4), ranks_per_node=1)


A, B, C = ("MPI_Send", 1), ("MPI_Recv", 2), ("MPI_Recv", 3)


def job(*plans: list[tuple]) -> RecordedJob:
    """A job whose ranks compute between calls at these sites."""
    found = RecordedJob("job", [np.array([])] * len(plans))
    found.__dict__["_plans"] = [[("compute", before, after) for before, after in plan] for plan in plans]
    return found


def profile(**seconds: float) -> TimingProfile:
    names = {"ab": (A, B), "bc": (B, C), "ac": (A, C), "ca": (C, A)}
    phases = []
    for name, time in seconds.items():
        before, after = names[name]
        phase = phase_name(before[0], after[0], (before[1], after[1]))
        phases.append(PhaseTiming.of(phase, [[time, time]]))
    return TimingProfile(phases, {}, {})


def test_all_that_was_measured_has_no_stand_ins():
    found = job([(A, B), (B, C)], [(A, B)]).stand_ins([profile(ab=1e-6, bc=2e-6)] * 2)
    assert (found.phases, found.share, found.text) == ([], 0.0, "")
    assert found.compute_seconds == pytest.approx(4e-6, rel=0.01)


def test_a_phase_of_the_same_calls_stands_in_and_is_told():
    """Rank 1 goes another way: its phase ends at another call site than that of the simulated rank."""
    found = job([(A, B)], [(A, C), (A, C)]).stand_ins([profile(ab=3e-6)] * 2)
    (phase,) = found.phases
    assert phase.used is not None
    assert (phase.ranks, phase.occurrences) == (1, 2)
    assert phase.seconds == pytest.approx(6e-6, rel=0.01)
    assert found.share == pytest.approx(6 / 9, rel=0.01)
    assert "1 phases of up to 1 ranks were never run" in found.text
    assert "66.67% of the compute time" in found.text


def test_a_phase_without_any_time_is_told():
    found = job([(A, B), (C, A)]).stand_ins([profile(ab=1e-6)])
    (phase,) = found.phases
    assert phase.used is None
    assert phase.words == "takes no time"
    assert "and 1 take none" in found.text


def test_a_prediction_without_a_recording_has_none():
    assert Prediction(2, "ext-ct", [1.0], {}).stand_ins.text == ""

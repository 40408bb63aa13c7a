# SPDX-License-Identifier: Apache-2.0
"""Timing profiles: groups of times, patterns of groups, distributions that keep what matters."""

import json

import numpy as np
import pytest

from manyscale.errors import InputError
from manyscale.network.durations import Distribution
from manyscale.studies.projection import multimodal, repetition
from manyscale.studies.projection.timings import PhaseTiming, TimingProfile

MULTIGRID = [0, 1, 2, 2, 2, 1, 0]  # the smoother of HPCG, as the many-node study finds it
LEVELS = np.array([10e-3, 2.5e-3, 0.6e-3])


def smoother(noise: float, seed: int = 1) -> np.ndarray:
    random = np.random.default_rng(seed)
    times = np.tile(LEVELS[MULTIGRID], 50)
    return times * (1 + noise * random.standard_normal(times.size))


@pytest.mark.parametrize("noise", [0.0, 0.01, 0.05])
def test_the_smoother_of_hpcg(noise):
    """0 1 2 2 2 1 0, fifty times: found exactly, with three clusters whose means are those of the levels."""
    phase = PhaseTiming.of("smoother", [smoother(noise, seed) for seed in range(4)])
    assert phase.pattern.order == tuple(MULTIGRID)
    assert phase.explained == 1.0
    means = [cluster.mean / 1e15 for cluster in phase.pattern.clusters]
    assert means == pytest.approx(LEVELS, rel=0.01)
    # Constant timings keep the mean and lose the spread.
    constant = phase.duration("constant")
    assert constant.mean == pytest.approx(phase.pattern.mean, rel=1e-9)
    assert all(len(cluster.low) == 1 for cluster in constant.clusters)


def test_a_pattern_survives_a_few_strange_times():
    times = smoother(0.01)
    times[[17, 101]] *= 12
    phase = PhaseTiming.of("smoother", [times])
    assert phase.pattern.order == tuple(MULTIGRID)
    assert phase.explained == pytest.approx(1 - 2 / times.size, abs=0.01)


@pytest.mark.parametrize(
    "draw",
    [
        lambda random: random.normal(1.0, 0.1, 3000),
        lambda random: 1 + random.exponential(1.0, 3000),
        lambda random: random.lognormal(0.0, 0.3, 3000),
        lambda random: random.uniform(0.5, 1.5, 100),
        lambda random: np.ones(50),
    ],
)
def test_one_group_stays_one(draw):
    assert set(multimodal.split(draw(np.random.default_rng(3))).tolist()) == {0}


def test_groups_are_numbered_from_the_longest():
    assert multimodal.split([1.0] * 5 + [4.0] * 5 + [2.0] * 5).tolist() == [2] * 5 + [0] * 5 + [1] * 5


@pytest.mark.parametrize("pattern", [[0], [0, 1], [2, 1, 0, 1], [0, 0, 0, 1]])
@pytest.mark.parametrize("cut", [0, 1])
def test_patterns_without_noise_are_exact(pattern, cut):
    sequence = (pattern * 9)[: len(pattern) * 9 - cut]
    assert repetition.find(sequence).pattern == tuple(pattern)


def test_what_does_not_repeat_has_no_pattern():
    random = np.random.default_rng(5)
    assert repetition.find(random.integers(0, 3, 400).tolist()) is None
    phase = PhaseTiming.of("mixed", [np.where(random.random(400) < 0.5, 1.0, 9.0)])
    assert phase.pattern.order == (0,)
    assert phase.mean == pytest.approx(5.0, rel=0.1)


SHAPES = {
    "normal": lambda random: random.normal(1.0, 0.1, 20_000),
    "exponential": lambda random: 1 + random.exponential(1.0, 20_000),
    "lognormal": lambda random: random.lognormal(0.0, 1.0, 20_000),
    "pareto": lambda random: 1 + random.pareto(2.5, 20_000),
    "rare": lambda random: np.where(random.random(20_000) < 0.985, 1.0, 30.0) + 0.01 * random.random(20_000),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_hundred_bins_keep_mean_and_tail(shape):
    """The mean within 0.5% and the 99th percentile within 2% of the samples', drawn as the core draws."""
    random = np.random.default_rng(11)
    samples = SHAPES[shape](random)
    kept = Distribution.from_samples(samples)
    assert len(kept.low) <= 100
    assert kept.mean / 1e15 == pytest.approx(samples.mean(), rel=0.005)
    bins = random.choice(len(kept.low), 2_000_000, p=kept.weights)
    drawn = kept.low[bins] + random.random(bins.size) * (kept.high - kept.low)[bins]
    assert np.quantile(drawn, 0.99) / 1e15 == pytest.approx(np.quantile(samples, 0.99), rel=0.02)
    assert kept.high[-1] / 1e15 == pytest.approx(samples.max(), rel=1e-9)


def test_profiles_can_be_kept(tmp_path):
    profile = TimingProfile([PhaseTiming.of("smoother", [smoother(0.05)])], {"machine": "broadwell"})
    profile.save(tmp_path / "profile.json")
    again = TimingProfile.load(tmp_path / "profile.json")
    assert again.facts == {"machine": "broadwell"}
    assert again["smoother"].pattern.key == profile["smoother"].pattern.key
    with pytest.raises(InputError, match="smoother"):
        again["smother"]


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document.update(kind="other"),
        lambda document: document.update(schema=99),
        lambda document: document["phases"][0].pop("order"),
        lambda document: document["phases"][0].update(order=[7]),
        lambda document: document["phases"][0]["clusters"][0].update(low_fs=[-1]),
        lambda document: document["phases"][0]["clusters"][0].update(weights="many"),
    ],
)
def test_a_broken_profile_is_refused(change, tmp_path):
    path = tmp_path / "profile.json"
    TimingProfile([PhaseTiming.of("smoother", [smoother(0.0)])]).save(path)
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match="profile"):
        TimingProfile.load(path)
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(InputError, match="no timing profile"):
        TimingProfile.load(path)

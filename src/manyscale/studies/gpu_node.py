# SPDX-License-Identifier: Apache-2.0
"""Nodes with GPUs: how long the phases of a program of kernels take, from the model of the GPU, and how the GPUs of a
node reach each other and the network.

A program of kernels is a Python function that launches them on a timed device, as often as the user likes: each time
with other data and other contents of the caches, so that its phases vary as they do in the model. What comes out are
the same timings as those of phase 2 of a projection, for a skeleton with one rank for each GPU.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from manyscale.errors import InputError, nearest
from manyscale.gpu.timed_device import TimedDevice
from manyscale.network.motifs.motif import AnyMotif, Timings
from manyscale.studies.projection.timings import PhaseTiming, TimingProfile, Variant


@dataclass(frozen=True)
class GpuLink:
    """What joins the GPUs of a node, in each direction between two of them."""

    bandwidth: str
    latency: str


LINKS: dict[str, GpuLink] = {
    # NVIDIA, Tesla V100 architecture whitepaper: 25 GB/s in each direction of each of six links; that two of them
    # join each pair of a node of four, and the latency, are assumed.
    "nvlink": GpuLink("50GB/s", "1us"),
    # PCI Express base specification 3.0: 15.75 GB/s for sixteen lanes; what is left beside headers (12 GB/s) and the
    # latency through a switch are assumed.
    "pcie": GpuLink("12GB/s", "2us"),
}


@dataclass(frozen=True)
class GpuNode:
    """The GPUs of a node: how many, what joins them, and whether the network reaches their memory directly.

    Leaves out that several links may share a switch, and that GPUs share the way to the network interface.
    """

    gpus: int = 4
    link: str = "nvlink"
    staging: Literal["direct", "staged"] = "direct"

    def __post_init__(self) -> None:
        if self.link not in LINKS:
            raise InputError(f"there is no link '{self.link}' between GPUs; {nearest(self.link, LINKS)}")
        if self.staging not in ("direct", "staged"):
            raise InputError(f"staging is 'direct' or 'staged', not '{self.staging}'")
        if not 1 <= self.gpus <= 1024:
            raise InputError(f"a node has from 1 to 1024 GPUs, not {self.gpus}")

    @property
    def changes(self) -> list[str]:
        """What to change in a machine with a network so that ranks of one node talk as GPUs of one do."""
        link = LINKS[self.link]
        return [
            f"network.mpi.local.bandwidth={link.bandwidth}",
            f"network.mpi.local.latency={link.latency}",
        ]


class PhaseClock:
    """Tells how long the phases of a program of kernels take on a timed device."""

    def __init__(self, device: TimedDevice) -> None:
        self._device = device
        self.seconds: dict[str, list[float]] = defaultdict(list)

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """What is launched and copied within belongs to an occurrence of this phase."""
        began = self._now()
        yield
        self.seconds[name].append(self._now() - began)

    def _now(self) -> float:
        self._device.synchronize()
        ended = self._device.timeline()
        return ended[-1].end if ended else 0.0


KernelProgram = Callable[[TimedDevice], Callable[[PhaseClock], None]]
"""Prepares a device, and gives what is done in each step, in phases of the clock."""


@dataclass(frozen=True, eq=False)
class GpuTimings:
    """The phases of a program of kernels, by how many SMs the GPU has."""

    profiles: dict[int, TimingProfile]

    def on_gpus(
        self, motif: AnyMotif, node: GpuNode, nodes: int, variant: Variant = "variable", mixed: bool = True
    ) -> AnyMotif:
        """A skeleton of one rank for each GPU, with these timings.

        Where there are several counts of SMs and they are `mixed`, the GPUs of a node have them in turn; otherwise all
        have the largest.
        """
        by_count = sorted(self.profiles, reverse=True)
        timings = [_durations(self.profiles[count], variant) for count in by_count]
        special: dict[Sequence[int], Timings] = {}
        if mixed:
            for index in range(1, len(by_count)):
                ranks = tuple(
                    rank for rank in range(nodes * node.gpus) if rank % node.gpus % len(by_count) == index
                )
                if ranks:
                    special[ranks] = timings[index]
        return motif.with_timings(timings[0], special)


def measure(
    program: KernelProgram,
    *,
    machine: str = "v100",
    changes: Sequence[str] = (),
    sm_counts: Sequence[int] = (),
    steps: int = 4,
    warm_up: int = 1,
    **options: Any,
) -> GpuTimings:
    """Runs the steps of a program on the model of a GPU, for each count of SMs (that of the machine if none is given).

    The first `warm_up` steps are left out: they find caches empty. `options` go to the device.
    """
    if steps < 1 or warm_up < 0:
        raise InputError(f"{steps} steps after {warm_up} others cannot be measured; at least one is needed")
    profiles: dict[int, TimingProfile] = {}
    for wanted in sm_counts or (None,):
        own = [*changes, *([] if wanted is None else [f"gpu.sm_count={wanted}"])]
        device = TimedDevice(machine, changes=own, echo=False, **options)
        step = program(device)
        clock = PhaseClock(device)
        for number in range(warm_up + steps):
            if number == warm_up:
                clock.seconds.clear()
            step(clock)
        count = len(device.parts.sms)
        if not clock.seconds:
            raise InputError("the program of kernels has no phases; give it some with clock.phase(name)")
        facts = {"machine": device.machine.name, "sm_count": count, "steps": steps}
        phases = [PhaseTiming.of(name, [times]) for name, times in clock.seconds.items()]
        profiles[count] = TimingProfile(phases, facts)
    return GpuTimings(profiles)


def _durations(profile: Mapping[str, PhaseTiming], variant: Variant) -> Timings:
    return {name: profile[name].duration(variant) for name in profile}

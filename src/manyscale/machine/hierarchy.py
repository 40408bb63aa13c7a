# SPDX-License-Identifier: Apache-2.0
"""What is below the cores of a machine: an interconnect, shared slices, channels of DRAM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from manyscale import units
from manyscale.errors import GraphError, InputError, nearest
from manyscale.machine.dram import dram_standard
from manyscale.machine.model_specs import any_of, parts_of
from manyscale.spec import Bytes, Count, Spec, Time, dump, parameter, refusal
from manyscale.system import System
from manyscale.system.catalogue import model
from manyscale.system.component import NativeComponent, PortRef

CHANNEL = "memory.dram"
SLICES = {"mesi": "memory.home", "none": "memory.cache"}
INTERCONNECTS = {
    "crossbar": "memory.crossbar",
    "ring": "memory.ring",
    "mesh": "memory.mesh",
    "sockets": "memory.sockets",
}
MOST_COHERENT_CORES = 256  # that an entry of the directory of memory.home can track
DEFAULT_INTERLEAVE = 256  # bytes

_CACHE = parts_of("memory.generator", "l1")

if TYPE_CHECKING:  # what the core's tables make at run time
    from manyscale.machine.core_specs import DramChannelModel, InterconnectModel, SharedSlice
else:
    SharedSlice = any_of("Slice", "A slice.", SLICES.values())
    InterconnectModel = any_of("Network", "A network.", INTERCONNECTS.values())
    DramChannelModel = any_of("Channel", "A channel.", [CHANNEL])


class SharedCache(SharedSlice):
    """The cache that all cores share, in slices that lines are spread over."""

    slices: Count = parameter(1, doc="number of slices", minimum=1, maximum=4096)
    coherence: Literal["mesi", "none"] = parameter(
        "mesi", doc="mesi: slices keep a directory (memory.home); none: they do not (memory.cache)"
    )
    link_latency: Time = parameter(
        "1ns", doc="of the link to a slice, from the interconnect or a core", minimum="0fs"
    )


class Interconnect(InterconnectModel):
    """The network between the cores and the slices, or the channels where there is no shared cache."""

    kind: Literal["crossbar", "ring", "mesh", "sockets", "none"] = parameter(
        "crossbar",
        doc="which network; sockets: several chips with memory of their own; none: a link from each core to the one "
        "slice or channel",
    )
    link_latency: Time = parameter("1ns", doc="of the link from a core to the interconnect", minimum="0fs")


class Dram(DramChannelModel):
    """The channels of DRAM that addresses are spread over."""

    channels: Count = parameter(1, doc="number of channels", minimum=1, maximum=65536)
    standard: str | None = parameter(
        None, doc="DRAM standard that organisation and timings come from, such as ddr4-2400 (machines/dram/)"
    )
    interleave: Bytes | None = parameter(
        None,
        doc="consecutive bytes that go to one channel; not stated: 256B, or a line without slices",
        minimum="32B",
    )
    link_latency: Time = parameter(
        "1ns", doc="of the link to a channel, from a slice, the interconnect or a core", minimum="0fs"
    )


@dataclass(frozen=True)
class Hierarchy:
    """What cores with private caches stand on; `cores` and `line` are theirs."""

    where: str
    cores: int
    line: int
    shared: SharedCache | None
    network: Interconnect | None
    dram: Dram
    counted_by: str = "memory.cores"
    classify_misses: bool = True  # of the shared cache, where it does not state it

    @property
    def entries(self) -> int:
        """What the lines of the cores are spread over: slices, or channels where there are none."""
        return self.shared.slices if self.shared is not None else self.dram.channels

    @property
    def interleave(self) -> int:
        """Consecutive bytes of one channel."""
        return self.dram.interleave or (DEFAULT_INTERLEAVE if self.shared is not None else self.line)

    @property
    def sockets(self) -> int:
        """Chips with slices and channels of their own."""
        if self.network is None or self.network.kind != "sockets":
            return 1
        default = model(INTERCONNECTS["sockets"]).spec.model_fields["sockets"].default
        return int(getattr(self.network, "sockets", None) or default)

    @property
    def coherent(self) -> bool:
        """Whether the slices keep a directory of the lines of the cores."""
        return self.shared is not None and self.shared.coherence == "mesi"


def build_below(system: System, parts: Hierarchy, cores: Sequence[NativeComponent]) -> None:
    """Adds `interconnect`, `slice[0]`… and `channel[0]`…, and joins them to the port `memory` of each core."""
    network = _add_network(system, parts)
    slices = _add_slices(system, parts)
    channels = _add_channels(system, parts)
    _connect(system, parts, cores, network, slices, channels)


def check_fit(parts: Hierarchy) -> None:
    """What no section can know of the others."""
    problems = []
    if parts.network is None and parts.entries > 1:
        below = "memory.shared.slices" if parts.shared is not None else "memory.dram.channels"
        problems.append(
            f"{below}: {parts.entries} of them need an interconnect; "
            "state [memory.interconnect] with a kind other than none"
        )
    if parts.shared is not None and parts.shared.coherence == "mesi" and parts.cores > MOST_COHERENT_CORES:
        problems.append(
            f"{parts.counted_by}: a directory tracks at most {MOST_COHERENT_CORES} cores, not {parts.cores}; "
            'state memory.shared.coherence = "none" for more'
        )
    for number, path in (
        (parts.cores, parts.counted_by),
        (parts.entries, "memory.shared.slices"),
        (parts.dram.channels, "memory.dram.channels"),
    ):
        if number % parts.sockets:
            problems.append(f"{path}: {number} cannot be divided among {parts.sockets} sockets")
    if parts.sockets > 1 and parts.shared is None:
        problems.append("memory.interconnect.kind: sockets need slices; state [memory.shared]")
    if parts.interleave % parts.line:
        problems.append(
            f"memory.dram.interleave: {bytes_text(parts.interleave)} is no multiple of a line of "
            f"{bytes_text(parts.line)}"
        )
    if parts.shared is None and parts.entries > 1 and parts.interleave != parts.line:
        problems.append(
            "memory.dram.interleave: without [memory.shared] cores spread lines over channels one by one, "
            f"so it must be {bytes_text(parts.line)}"
        )
    if problems:
        raise refusal([f"{parts.where}: {problem}" for problem in problems])


def _add_network(system: System, parts: Hierarchy) -> NativeComponent | None:
    if parts.network is None:
        return None
    name = INTERCONNECTS[parts.network.kind]
    given = _stated(parts, parts.network, name, "memory.interconnect")
    return add_part(system, parts.where, name, "interconnect", "memory.interconnect", **given)


def _add_slices(system: System, parts: Hierarchy) -> list[NativeComponent]:
    if parts.shared is None:
        return []
    name = SLICES[parts.shared.coherence]
    given = _stated(parts, parts.shared, name, "memory.shared")
    given["memory_interleave"] = bytes_text(parts.interleave)
    given["slices"] = parts.shared.slices // parts.sockets
    given["cache"] = {"classify_misses": parts.classify_misses} | given.get("cache", {})
    slices = [
        add_part(system, parts.where, name, f"slice[{index}]", "memory.shared", **given)
        for index in range(parts.shared.slices)
    ]
    line = slices[0].spec.cache.line  # type: ignore[attr-defined]
    if line != parts.line:
        raise InputError(
            f"{parts.where}: memory.shared.cache.line: {bytes_text(line)} is not the line of the cores' caches, "
            f"{bytes_text(parts.line)} (memory.l1.line)"
        )
    return slices


def _add_channels(system: System, parts: Hierarchy) -> list[NativeComponent]:
    given: dict[str, Any] = {}
    if parts.dram.standard is not None:
        try:
            given = dram_standard(parts.dram.standard).parameters()
        except InputError as error:
            raise InputError(f"{parts.where}: memory.dram.standard: {error}") from None
    given |= _stated(parts, parts.dram, CHANNEL, "memory.dram")
    given["interleave_channels"] = parts.dram.channels // parts.sockets
    given["interleave_bytes"] = bytes_text(parts.interleave)
    given["refresh_offset"] = 0
    return [
        add_part(system, parts.where, CHANNEL, f"channel[{index}]", "memory.dram", **given)
        for index in range(parts.dram.channels)
    ]


def _connect(
    system: System,
    parts: Hierarchy,
    cores: Sequence[NativeComponent],
    network: NativeComponent | None,
    slices: list[NativeComponent],
    channels: list[NativeComponent],
) -> None:
    def join(a: PortRef, b: PortRef, section: SharedCache | Interconnect | Dram | None) -> None:
        latency = 0 if section is None else section.link_latency
        system.connect(a, b, units.format(latency, units.TIME))

    entries = [part.requesters for part in slices] or [part.requests for part in channels]
    for core in cores:
        if network is not None:
            join(core.memory, network.requesters, parts.network)
        else:
            join(core.memory, entries[0], parts.shared or parts.dram)
    if network is not None:
        for entry in entries:
            join(network.responders, entry, parts.shared or parts.dram)
    # A slice sends to its n-th link what belongs to the n-th channel of its socket.
    each = len(channels) // parts.sockets
    for index, part in enumerate(slices):
        first = index * parts.sockets // len(slices) * each
        for channel in channels[first : first + each]:
            join(part.memory, channel.requests, parts.dram)


def _stated(parts: Hierarchy, section: Spec, name: str, path: str) -> dict[str, Any]:
    """What a section states for its model; an error where the model has no such parameter."""
    own, known = type(section).__annotations__, model(name).spec.model_fields
    given = {part: value for part, value in dump(section).items() if part not in own}
    for part in given:
        if part not in known:
            raise InputError(
                f"{parts.where}: {path}.{part}: {name} has no such parameter; {nearest(part, known)}"
            )
    return given


def add_part(
    system: System, where: str, name: str, component: str, path: str, **given: Any
) -> NativeComponent:
    try:
        return system.add(name, component, **given)
    except GraphError as error:  # what the model itself says of its parameters
        what = str(error)
        first = what.partition(":")[0]
        inner = "cache." if first in _CACHE and "cache" in given else ""
        named = first.partition(".")[0] in {*_CACHE, *given}
        raise InputError(f"{where}: {path}{'.' + inner if named else ': '}{what}") from None


def bytes_text(value: int) -> str:
    return units.format(value, units.BYTES)

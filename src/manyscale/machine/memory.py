# SPDX-License-Identifier: Apache-2.0
"""The memory of a machine: cores with private caches, an interconnect, shared slices, DRAM channels.

What the core's models can be told is taken from the core's own tables; declared here is only how many there
are of each, and what joins them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Optional

from pydantic import Field, create_model
from pydantic.fields import FieldInfo

from manyscale import _core, units
from manyscale.errors import GraphError, InputError, nearest
from manyscale.machine.dram import dram_standard
from manyscale.spec import (
    Bandwidth,
    Bytes,
    Count,
    Frequency,
    Spec,
    Time,
    build,
    dump,
    parameter,
    parameters,
    refusal,
)
from manyscale.system import System
from manyscale.system.catalogue import model
from manyscale.system.component import NativeComponent, PortRef

if TYPE_CHECKING:
    from manyscale.machine.description import Machine

CORE, CHANNEL = "memory.generator", "memory.dram"
SLICES = {"mesi": "memory.home", "none": "memory.cache"}
INTERCONNECTS = {"crossbar": "memory.crossbar", "ring": "memory.ring", "mesh": "memory.mesh"}
MOST_COHERENT_CORES = 64  # what an entry of the directory of memory.home has room for
DEFAULT_INTERLEAVE = 256  # bytes
REGION = 4096  # cores have memory of their own in multiples of so many bytes
# Set by `build_memory` from what the description says elsewhere, or meant for tests of a model alone.
_BUILT = ("slices", "memory_interleave", "interleave_channels", "interleave_bytes")
_FOR_TESTS = ("keep_values", "log_commands", "jitter", "reorder")


def _some(name: str, doc: str, fields: Mapping[str, FieldInfo], names: Iterable[str]) -> type[Spec]:
    """A Spec of some of a model's parameters, as the core declares them."""
    chosen = {part: fields[part] for part in names}
    return _spec(name, doc, {part: _like(field, field.default) for part, field in chosen.items()})


def any_of(name: str, doc: str, kinds: Iterable[str]) -> type[Spec]:
    """A Spec of all parameters of several models; one that is not stated is the model's own default."""
    return _optional(name, doc, [field for kind in kinds for field in model(kind).spec.model_fields.items()])


def _optional(name: str, doc: str, fields: Iterable[tuple[str, FieldInfo]]) -> type[Spec]:
    definitions: dict[str, tuple[Any, Any]] = {}
    for part, field in fields:
        if part in _BUILT or part in _FOR_TESTS or part in definitions:
            continue
        annotation, declared = _like(field, None)
        if isinstance(annotation, type) and issubclass(annotation, Spec):
            annotation = _optional(f"{name}.{part}", f"{part} of it", annotation.model_fields.items())
        definitions[part] = (Optional[annotation], declared)  # noqa: UP045 - X | None fails for some types
    return _spec(name, doc, definitions)


def _like(field: FieldInfo, default: Any) -> tuple[Any, Any]:
    """The type of a field, and a declaration like its own with this default."""
    declared = Field(default, description=field.description, json_schema_extra=field.json_schema_extra)
    return field.rebuild_annotation(), declared


def _spec(name: str, doc: str, definitions: Mapping[str, Any]) -> type[Spec]:
    return create_model(name, __base__=Spec, __doc__=doc, **definitions)


_generator = model(CORE).spec.model_fields
_PATTERN = ("pattern", "accesses", "footprint", "stride", "size", "writes", "atomics")
_CORE = ("clock", "window", "interval", "writeback_buffer", "home_hash")

if TYPE_CHECKING:  # what the core's tables make at run time
    Core = Spec
    L1 = Spec
    L2 = Spec
    Prefetcher = Spec
    Translation = Spec
    _Slice = Spec
    _Network = Spec
    _Channel = Spec
    _Pattern = Spec
else:
    Core = _some("Core", "A core: what it can have under way.", _generator, _CORE)
    L1, L2 = _generator["l1"].annotation, _generator["l2"].annotation
    Prefetcher, Translation = _generator["prefetcher"].annotation, _generator["translation"].annotation
    _Slice = any_of("Slice", "A slice.", SLICES.values())
    _Network = any_of("Network", "A network.", INTERCONNECTS.values())
    _Channel = any_of("Channel", "A channel.", [CHANNEL])
    _Pattern = _some("Pattern", "A pattern of accesses.", _generator, _PATTERN)


class SharedCache(_Slice):
    """The cache that all cores share, in slices that lines are spread over."""

    slices: Count = parameter(1, doc="number of slices", minimum=1, maximum=4096)
    coherence: Literal["mesi", "none"] = parameter(
        "mesi", doc="mesi: slices keep a directory (memory.home); none: they do not (memory.cache)"
    )
    link_latency: Time = parameter(
        "1ns", doc="of the link to a slice, from the interconnect or a core", minimum="0fs"
    )


class Interconnect(_Network):
    """The network between the cores and the slices, or the channels where there is no shared cache."""

    kind: Literal["crossbar", "ring", "mesh", "none"] = parameter(
        "crossbar", doc="which network; none: a link from each core to the one slice or channel"
    )
    link_latency: Time = parameter("1ns", doc="of the link from a core to the interconnect", minimum="0fs")


class Dram(_Channel):
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


class Memory(Spec):
    """The host's memory: what a source prints of it, and the hierarchy that is simulated."""

    clock: Frequency | None = parameter(
        None, doc="memory clock, as the source states it (for DDR often the data rate)", minimum="1Hz"
    )
    capacity: Bytes | None = parameter(None, doc="total capacity", minimum="1B")
    bandwidth: Bandwidth | None = parameter(
        None, doc="bandwidth of the memory's port on the mesh", minimum="1B/s"
    )
    cores: Count | None = parameter(None, doc="cores that make accesses", minimum=1, maximum=65536)
    core: Core | None = parameter(None, doc="each of the cores")
    l1: L1 | None = parameter(None, doc="first private cache of a core")
    l2: L2 | None = parameter(None, doc="second private cache of a core; none if not stated")
    prefetcher: Prefetcher | None = parameter(None, doc="of the last private cache; none if not stated")
    translation: Translation | None = parameter(None, doc="TLBs and page walks; none if not stated")
    shared: SharedCache | None = parameter(None, doc="cache that the cores share; none if not stated")
    interconnect: Interconnect | None = parameter(None, doc="network between cores and slices or channels")
    dram: Dram | None = parameter(None, doc="channels of DRAM")


class MemoryWorkload(_Pattern):
    """What each core does: accesses by a pattern, each core in memory of its own unless it is shared."""

    shared: bool = parameter(False, doc="whether all cores use the same memory, and not one region each")


@dataclass(frozen=True)
class _Parts:
    """A description of which all that is needed is stated."""

    where: str
    capacity: int | None
    cores: int
    core: Spec
    l1: Spec
    l2: Spec | None
    prefetcher: Spec | None
    translation: Spec | None
    shared: SharedCache | None
    network: Interconnect | None
    dram: Dram

    @property
    def line(self) -> int:
        return int(self.l1.line)  # type: ignore[attr-defined]

    @property
    def entries(self) -> int:
        """What the lines of the cores are spread over: slices, or channels where there are none."""
        return self.shared.slices if self.shared is not None else self.dram.channels

    @property
    def interleave(self) -> int:
        return self.dram.interleave or (DEFAULT_INTERLEAVE if self.shared is not None else self.line)


def build_memory(
    machine: Machine, workload: MemoryWorkload, *, traces: Sequence[bytes] = (), seed: int = 0
) -> System:
    """A system of one `memory.generator` for each core, and the hierarchy below them.

    Its components are `core[0]`…, `interconnect`, `slice[0]`… and `channel[0]`…. For the pattern "trace",
    `traces` holds the packed accesses of the first cores (`_core.set_trace`), and the other cores are idle.
    """
    parts = _whole(machine)
    _check_fit(parts)
    _check_workload(parts, workload, traces)
    system = System(parts.where, seed=seed)
    cores = _add_cores(system, parts, workload, traces)
    network = _add_network(system, parts)
    slices = _add_slices(system, parts)
    channels = _add_channels(system, parts)
    _connect(system, parts, cores, network, slices, channels)
    return system


def complete(machine: Machine, sources: Mapping[str, str], system: System) -> tuple[Machine, dict[str, str]]:
    """The machine that a system was built from, with all that the system's models have stated in it.

    What the description left to a model's default or to a DRAM standard is then there with its source, so the
    machine gives the same system even if those change.
    """
    memory = machine.memory
    if memory is None:
        return machine, dict(sources)
    found = dict(sources)
    changed: dict[str, Spec] = {}
    for name, component in (("shared", "slice[0]"), ("interconnect", "interconnect"), ("dram", "channel[0]")):
        section = getattr(memory, name)
        if section is not None and component in system.components:
            changed[name] = _filled(section, dump(system.components[component].spec), f"memory.{name}", found)
    return machine.model_copy(update={"memory": memory.model_copy(update=changed)}), found


def _filled(section: Spec, used: dict[str, Any], path: str, sources: dict[str, str]) -> Spec:
    """The section with what it leaves open as it is used; `sources` is told where that is from."""
    origins: Mapping[str, str] = {}
    if isinstance(section, Dram):
        used["interleave"] = used["interleave_bytes"]
        if section.standard is not None:
            standard = dram_standard(section.standard)
            origins = {name: f"{standard.name}: {source}" for name, source in standard.sources.items()}
    data = dump(section)
    for row in parameters(type(section)):
        above, _, name = row.path.rpartition(".")
        here = used.get(above, {}) if above else used
        stated = data.setdefault(above, {}) if above else data
        if name in here and name not in stated:
            stated[name] = here[name]
            sources[f"{path}.{row.path}"] = origins.get(row.path, "default")
    return build(type(section), data, path)


def _whole(machine: Machine) -> _Parts:
    where = machine.name or "the machine"
    memory = machine.memory
    if memory is None:
        raise InputError(f"{where}: memory: there is no section [memory], so there is nothing to simulate")
    problems = []
    for name in ("cores", "core", "l1", "dram"):
        if getattr(memory, name) is None:
            what = "parameter" if name == "cores" else f"section [memory.{name}]"
            problems.append(
                f"{where}: memory.{name}: there is no such {what}, which is required: "
                f"{Memory.model_fields[name].description}"
            )
    if memory.l2 is not None and memory.l2.size == 0:  # type: ignore[attr-defined]
        problems.append(f"{where}: memory.l2.size: is required; leave [memory.l2] out for no second level")
    if problems:
        raise refusal(problems)
    assert memory.cores is not None and memory.core is not None  # noqa: PT018
    assert memory.l1 is not None and memory.dram is not None  # noqa: PT018
    network = (
        None if memory.interconnect is None or memory.interconnect.kind == "none" else memory.interconnect
    )
    return _Parts(
        where,
        memory.capacity,
        memory.cores,
        memory.core,
        memory.l1,
        memory.l2,
        memory.prefetcher,
        memory.translation,
        memory.shared,
        network,
        memory.dram,
    )


def _check_fit(parts: _Parts) -> None:
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
            f"memory.cores: a directory has room for {MOST_COHERENT_CORES} cores, not {parts.cores}; "
            'state memory.shared.coherence = "none" for more'
        )
    if parts.interleave % parts.line:
        problems.append(
            f"memory.dram.interleave: {_bytes(parts.interleave)} is no multiple of a line of {_bytes(parts.line)}"
        )
    if parts.shared is None and parts.entries > 1 and parts.interleave != parts.line:
        problems.append(
            "memory.dram.interleave: without [memory.shared] cores spread lines over channels one by one, "
            f"so it must be {_bytes(parts.line)}"
        )
    if problems:
        raise refusal([f"{parts.where}: {problem}" for problem in problems])


def _check_workload(parts: _Parts, workload: Any, traces: Sequence[bytes]) -> None:
    if (workload.pattern == "trace") != bool(traces):
        raise InputError(
            "the pattern trace needs a trace" if not traces else f"a trace was given for {workload.pattern}"
        )
    if len(traces) > parts.cores:
        raise InputError(f"{len(traces)} traces are too many for the {parts.cores} cores of {parts.where}")
    if parts.line % workload.size:
        raise InputError(
            f"size: accesses of {_bytes(workload.size)} would cross lines of {_bytes(parts.line)}; "
            "choose a power of two up to 32B"
        )
    if workload.writes + workload.atomics > 1:
        raise InputError(
            f"writes ({workload.writes}) and atomics ({workload.atomics}) are together more than 1"
        )
    lines = 3 if workload.pattern == "triad" else 1
    if workload.footprint < lines * parts.line:
        raise InputError(
            f"footprint: {_bytes(workload.footprint)} is too little for {workload.pattern}; "
            f"give at least {_bytes(lines * parts.line)}"
        )
    if parts.capacity is None:
        return
    if not traces:
        last = _base(parts.cores - 1, workload) + workload.footprint
        reach = f"footprint: {parts.cores} cores reach up to"
    else:
        last = max((max(array("Q", trace)[::2], default=0) for trace in traces), default=0)
        reach = "trace: it reaches up to address"
    if last > parts.capacity:
        raise InputError(
            f"{reach} {last:#x}, but {parts.where} has {_bytes(parts.capacity)} of memory (memory.capacity)"
        )


def _base(core: int, workload: Any) -> int:
    return 0 if workload.shared else core * -(-workload.footprint // REGION) * REGION


def _add_cores(
    system: System, parts: _Parts, workload: MemoryWorkload, traces: Sequence[bytes]
) -> list[NativeComponent]:
    coherent = parts.shared is not None and parts.shared.coherence == "mesi"
    caches = {"l1": dump(parts.l1)} | ({} if parts.l2 is None else {"l2": dump(parts.l2)})
    for name in ("prefetcher", "translation"):
        section = getattr(parts, name)
        if section is not None:
            caches[name] = dump(section)
    # One section after the other, so that an error names it.
    for count, name in enumerate(caches, start=1):
        some = dict(list(caches.items())[:count])
        _add(System(), parts, CORE, "check", f"memory.{name}", coherent=coherent, **some)
    pattern = dump(workload)
    del pattern["shared"]
    cores = []
    for index in range(parts.cores):
        base = units.format(_base(index, workload), units.BYTES)
        given = {**dump(parts.core), **caches, **pattern, "base": base}
        cores.append(system.add(CORE, f"core[{index}]", coherent=coherent, homes=parts.entries, **given))
        if traces:
            _core.set_trace(cores[-1].native, traces[index] if index < len(traces) else b"")
    return cores


def _add_network(system: System, parts: _Parts) -> NativeComponent | None:
    if parts.network is None:
        return None
    name = INTERCONNECTS[parts.network.kind]
    given = _stated(parts, parts.network, name, "memory.interconnect")
    return _add(system, parts, name, "interconnect", "memory.interconnect", **given)


def _add_slices(system: System, parts: _Parts) -> list[NativeComponent]:
    if parts.shared is None:
        return []
    name = SLICES[parts.shared.coherence]
    given = _stated(parts, parts.shared, name, "memory.shared")
    given["memory_interleave"] = _bytes(parts.interleave)
    given["slices"] = parts.shared.slices
    slices = [
        _add(system, parts, name, f"slice[{index}]", "memory.shared", **given)
        for index in range(parts.shared.slices)
    ]
    line = slices[0].spec.cache.line  # type: ignore[attr-defined]
    if line != parts.line:
        raise InputError(
            f"{parts.where}: memory.shared.cache.line: {_bytes(line)} is not the line of the cores' caches, "
            f"{_bytes(parts.line)} (memory.l1.line)"
        )
    return slices


def _add_channels(system: System, parts: _Parts) -> list[NativeComponent]:
    given: dict[str, Any] = {}
    if parts.dram.standard is not None:
        try:
            given = dram_standard(parts.dram.standard).parameters()
        except InputError as error:
            raise InputError(f"{parts.where}: memory.dram.standard: {error}") from None
    given |= _stated(parts, parts.dram, CHANNEL, "memory.dram")
    given |= {"interleave_channels": parts.dram.channels, "interleave_bytes": _bytes(parts.interleave)}
    return [
        _add(system, parts, CHANNEL, f"channel[{index}]", "memory.dram", **given)
        for index in range(parts.dram.channels)
    ]


def _connect(
    system: System,
    parts: _Parts,
    cores: list[NativeComponent],
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
    # A slice sends to its n-th link what belongs to channel n.
    for part in slices:
        for channel in channels:
            join(part.memory, channel.requests, parts.dram)


def _stated(parts: _Parts, section: Spec, name: str, path: str) -> dict[str, Any]:
    """What a section states for its model; an error where the model has no such parameter."""
    own, known = type(section).__annotations__, model(name).spec.model_fields
    given = {part: value for part, value in dump(section).items() if part not in own}
    for part in given:
        if part not in known:
            raise InputError(
                f"{parts.where}: {path}.{part}: {name} has no such parameter; {nearest(part, known)}"
            )
    return given


def _add(
    system: System, parts: _Parts, name: str, component: str, path: str, **given: Any
) -> NativeComponent:
    try:
        return system.add(name, component, **given)
    except GraphError as error:  # what the model itself says of its parameters
        what = str(error)
        first = what.partition(":")[0]
        inner = "cache." if first in L1.model_fields and "cache" in given else ""
        named = first.partition(".")[0] in {**L1.model_fields, **given}
        raise InputError(f"{parts.where}: {path}{'.' + inner if named else ': '}{what}") from None


def _bytes(value: int) -> str:
    return units.format(value, units.BYTES)

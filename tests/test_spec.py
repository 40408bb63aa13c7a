# SPDX-License-Identifier: Apache-2.0
"""A Spec refuses what is wrong and says so; what is right survives saving."""

from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from manyscale.errors import InputError
from manyscale.spec import (
    Bandwidth,
    Base,
    Bytes,
    Count,
    Cycles,
    Frequency,
    Ratio,
    Spec,
    Time,
    build,
    dump,
    parameter,
    parameters,
)
from manyscale.spec_table import spec_from_table


class Cache(Spec):
    """A cache."""

    size: Bytes = parameter("32KiB", doc="total capacity", minimum="1KiB", maximum="1GiB")
    ways: Count = parameter(8, doc="associativity", minimum=1)
    latency: Cycles = parameter("4cycles", doc="cycles to a hit")
    policy: Literal["lru", "random"] = parameter("lru", doc="which line is replaced")
    write_back: bool = parameter(True, doc="whether writes stay in the cache")


class Core(Spec):
    """A core."""

    clock: Frequency = parameter(doc="core clock", minimum="1MHz")
    name: str = parameter("core", doc="name of the core")
    hit_rate: Ratio = parameter(0.9, doc="expected hit rate", minimum=0, maximum=1)
    cache: Cache = parameter(Cache(), doc="L1 cache")
    second: Cache | None = parameter(None, doc="L2 cache")
    others: list[Cache] = parameter([], doc="further caches")
    wake_up: Time | None = parameter(None, doc="time to wake up")
    port: Bandwidth | None = parameter(None, doc="bandwidth of the port")


def refusal(data: Any) -> str:
    with pytest.raises(InputError) as error:
        build(Core, data, "core.toml")
    return str(error.value)


def test_values_are_held_in_base_units() -> None:
    core = build(Core, {"clock": "1.5GHz", "wake_up": "45us", "port": "8Gb/s", "hit_rate": 1}, "here")
    assert (core.clock, core.wake_up, core.port) == (1_500_000_000, 45 * 10**9, 10**9)
    assert isinstance(core.hit_rate, float)
    assert core.cache.size == 32 * 1024
    assert type(core.clock) is int


def test_a_base_value_needs_no_unit() -> None:
    core = build(Core, {"clock": Base(2_000_000_000)}, "here")
    assert core.clock == 2_000_000_000
    assert type(core.clock) is int


def test_a_spec_is_immutable() -> None:
    core = Core(clock="1GHz")
    with pytest.raises(ValidationError):
        core.clock = 5


def test_repr_shows_units() -> None:
    core = Core(clock="1312MHz", second={"size": "192KiB"}, others=[{"ways": 2}])
    assert "clock='1312MHz'" in repr(core)
    assert "second=Cache(size='192KiB', ways=8, latency='4cycles'" in repr(core)
    assert "others=[Cache(size='32KiB', ways=2" in repr(core)
    assert "wake_up" not in repr(core)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"clok": "1GHz"}, "core.toml: clok: there is no such parameter; did you mean 'clock'?"),
        ({"cache": {"wais": 4}}, "core.toml: cache.wais: there is no such parameter; did you mean 'ways'?"),
        ({"others": [{}, {"wais": 4}]}, "core.toml: others[1].wais: there is no such parameter"),
        ({}, "core.toml: clock: is required (frequency): core clock"),
        (
            {"clock": 1312},
            "clock: 1312 has no unit; a frequency takes Hz, kHz, MHz, GHz, THz, such as '1312MHz'",
        ),
        ({"clock": "1312"}, "clock: '1312' has no unit; a frequency takes Hz"),
        ({"clock": "5ns"}, "clock: '5ns': 'ns' is no unit of a frequency"),
        ({"clock": True}, "clock: expected a frequency such as '1312MHz', got True"),
        ({"clock": [1]}, "clock: expected a frequency such as '1312MHz', got [1]"),
        ({"clock": None}, "clock: expected a frequency"),
        ({"clock": "10kHz"}, "clock: 10kHz is out of range; it must be at least 1MHz"),
        ({"cache": {"size": "4GiB"}}, "cache.size: 4GiB is out of range; it must be from 1KiB to 1GiB"),
        ({"cache": {"ways": 0}}, "cache.ways: 0 is out of range; it must be at least 1"),
        ({"cache": {"ways": 2.5}}, "cache.ways: 2.5 is not whole; a count is a whole number"),
        ({"cache": {"ways": True}}, "cache.ways: expected a count such as '84', got True"),
        ({"cache": {"ways": 2**70}}, "cache.ways: 1180591620717411303424 is beyond the range of a count"),
        ({"cache": {"policy": "fifo"}}, "cache.policy: expected 'lru' or 'random', got 'fifo'"),
        ({"cache": {"write_back": 1}}, "cache.write_back: expected true or false, got 1"),
        ({"cache": 3}, "cache: expected a section of parameters, got 3"),
        ({"others": 3}, "others: expected a list, got 3"),
        ({"name": 3}, "name: expected text, got 3"),
        ({"hit_rate": 1.5}, "hit_rate: 1.5 is out of range; it must be from 0.0 to 1.0"),
        ({"hit_rate": float("nan")}, "hit_rate: nan is not a finite number"),
        ({"hit_rate": 10**400}, "is beyond the range of a ratio"),
        ({"hit_rate": "high"}, "hit_rate: 'high' is not a ratio"),
        ({"wake_up": "-1e30s"}, "wake_up: '-1e30s' is beyond the range of a time"),
        ({"clock": 1 << 40000}, "clock: a very large int has no unit"),
        ([1], "core.toml: expected a section of parameters, got [1]"),
    ],
)
def test_a_refusal_says_where_and_what_would_be_right(data: Any, message: str) -> None:
    assert message in refusal(data)


def test_all_problems_are_reported_together() -> None:
    lines = refusal({"clok": "1GHz", "clock": "12 parsecs", "cache": {"ways": 0, "size": 5}}).splitlines()
    assert [line.split(": ")[1] for line in lines] == ["clock", "cache.size", "cache.ways", "clok"]


def test_of_very_many_problems_the_first_are_reported() -> None:
    lines = refusal({"clock": "1GHz", **{f"x{number}": 1 for number in range(60)}}).splitlines()
    assert len(lines) == 51
    assert lines[-1] == "… and 10 more problems"


def test_the_origin_may_depend_on_the_location() -> None:
    with pytest.raises(InputError, match=r"^line of clock: clock: "):
        build(Core, {"clock": 1}, lambda location: f"line of {location[-1]}")


def test_whole_floats_are_counts() -> None:
    assert Cache(ways=4.0).ways == 4


@pytest.mark.parametrize(
    "core",
    [
        Core(clock="1GHz"),
        Core(
            clock="1312MHz",
            hit_rate=0.1,
            second={"policy": "random", "write_back": False},
            others=[{"ways": 2}, {"size": "1MB"}],
            wake_up="1fs",
            port="37.5GB/s",
        ),
    ],
)
def test_what_is_dumped_builds_an_equal_spec(core: Core) -> None:
    assert build(Core, dump(core), "here") == core


@given(st.integers(10**6, 2**63 - 1), st.integers(-(2**63), 2**63 - 1), st.floats(0, 1))
def test_any_value_survives_a_dump(clock: int, wake_up: int, hit_rate: float) -> None:
    core = Core(clock=Base(clock), wake_up=Base(wake_up), hit_rate=hit_rate)
    assert build(Core, dump(core), "here") == core


def test_dump_has_units_and_leaves_out_what_is_not_stated() -> None:
    plain = dump(Core(clock="1500MHz"))
    assert plain["clock"] == "1500MHz"
    assert plain["cache"]["size"] == "32KiB"
    assert "second" not in plain


def test_parameters_lists_nested_specs() -> None:
    rows = {row.path: row for row in parameters(Core)}
    assert rows["clock"] == ("clock", "frequency", "Hz", "required", "at least 1MHz", "core clock")
    assert rows["cache.size"] == (
        "cache.size",
        "amount of bytes",
        "B",
        "32KiB",
        "from 1KiB to 1GiB",
        "total capacity",
    )
    assert rows["others[].ways"].default == "8"
    assert rows["second.policy"].type == "lru | random"
    assert rows["wake_up"].default == "not stated"
    assert rows["cache.write_back"].default == "true"


def test_a_parameter_without_doc_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Bare\.size has no doc"):

        class Bare(Spec):
            size: Bytes = parameter("1B", doc="")


def test_an_optional_parameter_defaults_to_none() -> None:
    with pytest.raises(TypeError, match="its default must be None"):

        class Odd(Spec):
            size: Bytes | None = parameter("1B", doc="size")


def test_a_type_without_a_meaning_is_refused() -> None:
    with pytest.raises(TypeError, match="is no type of a parameter"):

        class Odd(Spec):
            size: int = parameter(1, doc="size")


TABLE = [
    {"name": "latency", "type": "int", "unit": "time", "default": 750_000, "minimum": 1, "doc": "one hop"},
    {
        "name": "slots",
        "type": "int",
        "unit": "none",
        "default": 4,
        "minimum": 0,
        "maximum": 2**64 - 1,
        "doc": "s",
    },
    {
        "name": "load",
        "type": "float",
        "unit": "ratio",
        "default": 1,
        "minimum": 0.0,
        "maximum": 2.0,
        "doc": "l",
    },
    {"name": "ordered", "type": "bool", "unit": "none", "default": True, "doc": "order"},
    {"name": "kind", "type": "str", "unit": "none", "default": "ring", "doc": "kind"},
    {"name": "flit", "type": "int", "unit": "bytes", "minimum": 1, "maximum": 64, "doc": "flit"},
]


def test_a_table_of_the_core_becomes_a_spec() -> None:
    made = spec_from_table("Router", "A router.", TABLE)
    router = build(made, {"flit": "8B"}, "here")
    assert router.model_dump() == {
        "latency": 750_000,
        "slots": 4,
        "load": 1.0,
        "ordered": True,
        "kind": "ring",
        "flit": 8,
    }
    assert made.__doc__ == "A router."
    assert made.__name__ == "Router"
    rows = {row.path: row for row in parameters(made)}
    assert rows["latency"].default == "750ps"
    assert rows["slots"].range == "at least 0"
    assert rows["flit"].default == "required"
    assert build(made, dump(router), "here") == router


def test_a_spec_of_a_table_explains_itself() -> None:
    made = spec_from_table("Router", "A router.", TABLE)
    with pytest.raises(InputError) as error:
        build(made, {"latncy": 1, "flit": "65B", "load": 3}, "net.toml")
    assert str(error.value).splitlines() == [
        "net.toml: load: 3.0 is out of range; it must be from 0.0 to 2.0",
        "net.toml: flit: 65B is out of range; it must be from 1B to 64B",
        "net.toml: latncy: there is no such parameter; did you mean 'latency'?",
    ]


def test_a_table_with_an_impossible_type_is_refused() -> None:
    with pytest.raises(TypeError, match="'latency': type 'float' with unit 'time' is no quantity"):
        spec_from_table("Router", "", [{"name": "latency", "type": "float", "unit": "time", "doc": "x"}])

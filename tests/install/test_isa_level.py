# SPDX-License-Identifier: Apache-2.0
"""The core of a wheel is the highest level that the processor has."""

import pytest

from manyscale import isa_level

V2 = "fpu sse sse2 cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3"
V3 = V2 + " avx avx2 bmi1 bmi2 f16c fma abm movbe xsave"
V4 = V3 + " avx512f avx512bw avx512cd avx512dq avx512vl"


@pytest.fixture
def package(tmp_path, monkeypatch):
    for level in ("x86-64-v2", "x86-64-v3", "x86-64-v4"):
        (tmp_path / "isa" / level).mkdir(parents=True)
    monkeypatch.delenv(isa_level.VARIABLE, raising=False)
    return tmp_path


def chosen(package, monkeypatch, flags):
    monkeypatch.setattr(isa_level, "_flags", lambda: set(flags.split()))
    return [folder.rpartition("/")[2] for folder in isa_level.core_folders(str(package))]


@pytest.mark.parametrize(
    ("flags", "level"),
    [
        (V2, "x86-64-v2"),
        (V3, "x86-64-v3"),
        (V3 + " avx512f", "x86-64-v3"),
        (V3.replace(" fma", ""), "x86-64-v2"),
        (V4, "x86-64-v4"),
        (V4.replace(" avx2", ""), "x86-64-v2"),
    ],
)
def test_the_highest_level_that_the_processor_has_whole(package, monkeypatch, flags, level):
    assert chosen(package, monkeypatch, flags) == [level]


def test_a_processor_below_the_lowest_level_is_an_error_that_says_what_to_do(package, monkeypatch):
    with pytest.raises(ImportError, match=r"x86-64-v2.*build it from source"):
        chosen(package, monkeypatch, "fpu sse sse2")


def test_a_level_can_be_chosen_by_hand(package, monkeypatch):
    monkeypatch.setenv(isa_level.VARIABLE, "x86-64-v2")
    assert chosen(package, monkeypatch, V4) == ["x86-64-v2"]


def test_a_level_that_the_wheel_has_not_is_named(package, monkeypatch):
    monkeypatch.setenv(isa_level.VARIABLE, "x86-64-v9")
    with pytest.raises(ImportError, match=r"x86-64-v9.*x86-64-v2, x86-64-v3, x86-64-v4"):
        chosen(package, monkeypatch, V4)


def test_a_build_from_source_has_its_core_beside_the_package(tmp_path, monkeypatch):
    assert chosen(tmp_path, monkeypatch, V4) == []


def test_flags_of_this_machine_are_read():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        known = "flags" in file.read()
    assert bool(isa_level._flags()) == known

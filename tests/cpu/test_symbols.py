# SPDX-License-Identifier: Apache-2.0
"""Functions and lines of a program, also of files that lie about themselves."""

from __future__ import annotations

import pytest

from manyscale.cpu import Program, SourceLocation, Symbols, sample
from manyscale.errors import InputError


@pytest.fixture(scope="module")
def heat() -> Program:
    return Program(sample("heat"))


def test_an_address_has_a_function_an_offset_and_a_line(heat: Program) -> None:
    main = heat.symbols.addresses["main"]
    location = heat.symbols.locate(main)
    assert (location.function, location.offset, location.source) == ("main", 0, f"heat.c:{location.line}")
    source = sample("heat").with_name("heat.c").read_text(encoding="utf-8").splitlines()
    assert source[location.line - 1].startswith("int main(")
    assert str(heat.symbols.locate(main + 6)).startswith(f"{main + 6:#x} in main+0x6 (heat.c:")


def test_a_function_without_lines_has_a_name_only(heat: Program) -> None:
    location = heat.symbols.locate(heat.symbols.addresses["GOMP_parallel"] + 2)
    assert (location.function, location.source) == ("GOMP_parallel", "")


def test_outside_of_the_program_there_is_only_the_address(heat: Program) -> None:
    assert heat.symbols.locate(0x10) == SourceLocation(0x10)
    assert str(heat.symbols.locate(0x10)) == "0x10"


def test_a_program_that_is_moved_has_its_symbols_there(heat: Program) -> None:
    moved = Symbols(heat.data, base=0x2000_0000)
    main = heat.symbols.addresses["main"]
    assert moved.addresses["main"] == main + 0x2000_0000
    assert moved.locate(main + 0x2000_0000).function == "main"
    assert moved.code[0][1] == heat.symbols.code[0][1] + 0x2000_0000


@pytest.mark.parametrize("kept", [0, 4, 63, 64, 500, 5_000, 100_000, -1])
def test_a_file_that_is_cut_off_has_fewer_symbols_and_no_crash(heat: Program, kept: int) -> None:
    location = Symbols(heat.data[:kept]).locate(0x10700)
    assert location.address == 0x10700


@pytest.mark.parametrize("offset", [16, 24, 32, 40, 54, 58, 60, 62])
@pytest.mark.parametrize("value", [0x00, 0x7F, 0xFF])
def test_a_header_that_lies_does_no_harm(heat: Program, offset: int, value: int) -> None:
    data = bytearray(heat.data)
    data[offset : offset + 2] = bytes([value, value])
    assert Symbols(bytes(data)).locate(0x10700).address == 0x10700


def test_a_packed_program_is_unpacked_and_a_broken_one_refused(tmp_path) -> None:
    assert Program(sample()).data[:4] == b"\x7fELF"
    assert Program(sample()).name == "heat"
    (tmp_path / "broken.xz").write_bytes(sample().read_bytes()[:1000])
    with pytest.raises(InputError, match=r"broken\.xz: it cannot be unpacked"):
        Program(tmp_path / "broken.xz").data  # noqa: B018
    with pytest.raises(InputError, match="there is no sample named 'heta'; did you mean 'heat'"):
        sample("heta")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ranks": 0}, "0 ranks cannot be started"),
        ({"args": "one two"}, "give a list of arguments"),
        ({"environment": {"A=B": "c"}}, "'A=B' is no name for an environment variable"),
        ({"root": "/no/such/folder"}, "there is no such folder for the program's files"),
    ],
)
def test_what_a_program_is_given_is_checked(options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Program(sample(), **options)


def test_a_file_that_is_not_there(tmp_path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*none: No such file"):
        Program(tmp_path / "none").data  # noqa: B018

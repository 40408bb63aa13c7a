# SPDX-License-Identifier: Apache-2.0
"""The two definitions of the protocol agree: wire.py and cudart/wire.hpp."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from manyscale.cuda import wire
from manyscale.cuda.server import HANDLERS

HEADER = Path(__file__).parents[2] / "cudart" / "wire.hpp"
_TYPES = {
    "std::uint8_t": "B",
    "std::uint16_t": "H",
    "std::uint32_t": "I",
    "std::int32_t": "i",
    "std::uint64_t": "Q",
    "float": "f",
    "double": "d",
    "char": "s",
}


def fields_of(body: str) -> str:
    """The members of a C++ struct as the format of Python's struct."""
    form = ""
    for kind, names in re.findall(r"(std::u?int\d+_t|float|double|char)\s+([^;]+);", body):
        for name in names.split(","):
            count = re.search(r"\[(\d+)\]", name)
            form += (count[1] if count else "") + _TYPES[kind]
    return form


def declared() -> dict[int, tuple[str, str, str]]:
    """Each call of the header by number: its name, the format of its request and that of its answer."""
    text = re.sub(r"//[^\n]*", "", HEADER.read_text())
    calls = {}
    for name, body in re.findall(r"\nstruct (\w+) \{\n(.*?)\n\};", text, re.S):
        number = re.search(r"kCall = (\d+)", body)
        if number is None:
            continue
        parts = {}
        for part in ("Request", "Answer"):
            found = re.search(rf"struct {part} \{{(.*?)\}}", body, re.S)
            parts[part] = fields_of(found[1]) if found else ""
        calls[int(number[1])] = (name, parts["Request"], parts["Answer"])
    return calls


@pytest.mark.skipif(not HEADER.exists(), reason="only in a checkout")
def test_all_calls_have_the_same_numbers_and_fields_on_both_sides() -> None:
    here = {
        int(call): (
            call.name.title().replace("_", ""),
            "".join(form for _, form in layout.fields),
            "".join(form for _, form in layout.answer),
        )
        for call, layout in wire.LAYOUTS.items()
    }
    assert declared() == here


@pytest.mark.skipif(not HEADER.exists(), reason="only in a checkout")
def test_the_headers_and_constants_are_the_same_on_both_sides() -> None:
    text = re.sub(r"//[^\n]*", "", HEADER.read_text())
    for name, layout in (("RequestHeader", wire.REQUEST), ("ReplyHeader", wire.REPLY)):
        body = re.search(rf"struct {name} \{{(.*?)\}};", text, re.S)
        assert body is not None
        assert "<" + fields_of(body[1]) == layout.format
    for name, value in (
        ("kVersion", wire.VERSION),
        ("kAgain", wire.AGAIN),
        ("kSticky", wire.STICKY),
        ("kPosted", hex(wire.POSTED)),
        ("kUntimed", hex(wire.UNTIMED)),
        ("kLargestInline", wire.LARGEST_INLINE),
    ):
        assert re.search(rf"{name} = {value};", text), name


def test_each_call_is_answered() -> None:
    by_the_server_itself = {wire.Call.HELLO, wire.Call.STAGING, wire.Call.DEVICE_STATUS, wire.Call.HOST_TIME}
    assert set(HANDLERS) | by_the_server_itself == set(wire.Call) == set(wire.LAYOUTS)


def test_nothing_is_padded() -> None:
    assert struct.calcsize(wire.REQUEST.format) == 24
    assert wire.LAYOUTS[wire.Call.DEVICE_DESCRIPTION].reply().size == 8 + 256 + 16 + 4

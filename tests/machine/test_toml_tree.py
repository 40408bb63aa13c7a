# SPDX-License-Identifier: Apache-2.0
"""TOML is read alike line by line and by tomlkit: values, their types, their sources and their order."""

from __future__ import annotations

import pytest
import tomlkit

from manyscale.machine.presets import presets_folder
from manyscale.machine.statements import leaves
from manyscale.machine.toml_tree import container_tree, plain_tree, toml_tree

PRESETS = sorted(presets_folder().rglob("*.toml"))
PLAIN = """
# a machine
name = "made" # of nothing
share = 0.25
[gpu] # heading
clock = "1GHz"   ## a data sheet, page 3
on = true
count = -3
timing = {latency = 4, interval = 2} # measured, "twice"
[gpu.sm.l1]
text = "a # in a text = {no comment}"
empty = {}
[gpu.sm]
warps = 64
"""


def by_tomlkit(text):
    return container_tree(tomlkit.parse(text), "file", "source")


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: path.stem)
def test_a_preset_is_read_line_by_line_as_tomlkit_reads_it(path):
    text = path.read_text(encoding="utf-8")
    plain = plain_tree(text, "file", "source")
    assert plain is not None
    assert list(leaves(plain)) == list(leaves(by_tomlkit(text)))


def test_values_types_and_comments_are_those_of_tomlkit():
    plain = plain_tree(PLAIN, "file", "source")
    assert plain == by_tomlkit(PLAIN)
    found = {name: (statement.value, statement.source) for name, statement in leaves(plain)}
    assert found["gpu.clock"] == ("1GHz", "a data sheet, page 3")
    assert found["gpu.timing.interval"] == (2, 'measured, "twice"')
    assert found["gpu.sm.l1.text"] == ("a # in a text = {no comment}", "source")
    assert found["gpu.on"] == (True, "source")
    assert [type(found[name][0]) for name in ("share", "gpu.count")] == [float, int]


@pytest.mark.parametrize(
    "text",
    [
        "a = 1e3",
        "a = 1_000",
        "a = 0x10",
        "a = 'x'",
        'a = "\\u0041"',
        'a = """\nx"""',
        "a = [1, 2]",
        "a = [\n 1,\n]",
        "a.b = 1",
        '"a b" = 1',
        "[[a]]\nb = 1",
        '[a."b c"]\nd = 1',
        "a = {b = {c = 1}}",
        "a = {b = 1,}",
        "a = 1\r\nb = 2",
        "a = 1979-05-27",
    ],
)
def test_what_is_not_plain_is_left_to_tomlkit(text):
    assert plain_tree(text, "file", "source") is None
    assert toml_tree(text, "file", "source") == by_tomlkit(text)


@pytest.mark.parametrize(
    "text",
    [
        "a = 1\na = 2",
        "[a]\n[a]",
        "a = 1\n[a]",
        "a = 1\n[a.b]",
        "[a.b]\n[a]\nb = 1",
        "a = {b = 1}\n[a]",
        "a = {b = 1}\n[a.c]",
        "a = {b = 1, b = 2}",
        "a = 01",
        "a = 1 2",
        "a =",
        "= 1",
        "a",
        'a = "x\ty\x01"',
        "[a",
        "[]",
        "a = truely",
    ],
)
def test_what_is_wrong_is_refused(text):
    assert plain_tree(text, "file", "source") is None
    with pytest.raises(ValueError, match=r"."):
        toml_tree(text, "file", "source")

# SPDX-License-Identifier: Apache-2.0
"""The bindings keep to Python's stable ABI, so that one wheel serves all later versions of Python."""

import re
from pathlib import Path

BINDINGS = Path(__file__).parents[2] / "bindings"
# Macros such as PyBytes_AS_STRING and PyList_GET_ITEM reach into objects, whose layout is of one version.
INTO_OBJECTS = re.compile(r"\bPy[A-Z][a-z]\w*?_(?:[A-Z]+_)*[A-Z]{2,}\b")


def found_in(text: str) -> set[str]:
    return set(INTO_OBJECTS.findall(text))


def test_no_binding_reaches_into_objects_of_python():
    sources = sorted(BINDINGS.glob("*.[ch]pp"))
    assert sources
    assert not {path.name: found for path in sources if (found := found_in(path.read_text()))}


def test_macros_of_one_version_are_noticed():
    text = "PyBytes_AS_STRING(a); PyList_GET_ITEM(b, 0); PyTuple_SET_ITEM(c, 0, d); PyBytes_AsString(e);"
    assert found_in(text) == {"PyBytes_AS_STRING", "PyList_GET_ITEM", "PyTuple_SET_ITEM"}

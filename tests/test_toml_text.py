# SPDX-License-Identifier: Apache-2.0
"""TOML that we write reads back as what it was, with the standard library's reader and with tomlkit."""

import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from manyscale import toml_text

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))  # no half of a pair: no file can hold it
VALUES = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=12,
)
TABLES = st.dictionaries(TEXTS, VALUES, max_size=5)


def written(data: dict[str, object]) -> str:
    return "\n".join(toml_text.lines(data)) + "\n"


@given(TABLES)
def test_data_is_read_back(data: dict[str, object]) -> None:
    assert toml_text.parse(written(data)) == data


@given(st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3))
def test_tomlkit_reads_the_same(data: dict[str, object]) -> None:
    assert tomlkit.parse(written(data)).unwrap() == data


def test_values_keep_their_types() -> None:
    data = {"whole": 1, "real": 1.0, "large": 1e30, "small": 1e-30, "yes": True, "text": "1"}
    assert [(name, type(value)) for name, value in toml_text.parse(written(data)).items()] == [
        (name, type(value)) for name, value in data.items()
    ]


def test_a_comment_stands_behind_its_value() -> None:
    data = {"clock": "1GHz", "cache": {"size": 4}}
    text = "\n".join(toml_text.lines(data, comments={"clock": "measured", "cache.size": "data sheet"}))
    assert text == 'clock = "1GHz" # measured\n\n[cache]\nsize = 4 # data sheet'


def test_what_toml_does_not_have_is_refused() -> None:
    with pytest.raises(TypeError, match="TOML has no object"):
        toml_text.inline(object())

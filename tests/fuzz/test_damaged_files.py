# SPDX-License-Identifier: Apache-2.0
"""Whatever is done to an input file, it is read or refused with a message; no other error, and none that takes long.

`FUZZ_FILES=20000 pytest tests/fuzz` tries more of them; `make fuzz SECONDS=600` goes on for a while, with sanitizers.
"""

from __future__ import annotations

import os
import random

import pytest

from fuzz.attempt import Outcome, attempt
from fuzz.formats import FORMATS
from fuzz.worker import CORPUS, mutated

pytestmark = pytest.mark.core

COUNT = int(os.environ.get("FUZZ_FILES", "200"))


@pytest.mark.parametrize("name", FORMATS)
def test_samples_are_valid(name, tmp_path):
    path = FORMATS[name].make(tmp_path)
    for content in (path.read_bytes(), *FORMATS[name].more()):
        path.write_bytes(content)
        FORMATS[name].read(path)


@pytest.mark.parametrize(
    "file", sorted(CORPUS.glob("*/*")), ids=lambda file: f"{file.parent.name}-{file.name}"
)
def test_what_failed_once_is_read_or_refused(file, tmp_path):
    one = FORMATS[file.parent.name]
    path = one.make(tmp_path)
    path.write_bytes(file.read_bytes())
    assert attempt(one, path).problem is None


@pytest.mark.parametrize("name", FORMATS)
def test_a_damaged_file_is_read_or_refused(name, tmp_path):
    one = FORMATS[name]
    path = one.make(tmp_path)
    good = path.read_bytes()
    samples = [good, *one.more()]
    found = []
    refused = 0
    for seed in range(COUNT):
        path.write_bytes(mutated(one, samples[seed % len(samples)], random.Random(f"{name} {seed}")))
        outcome = attempt(one, path)
        refused += outcome.is_refused
        if outcome.problem is not None:
            found.append(f"seed {seed}: {outcome.problem}")
    path.write_bytes(good)
    assert attempt(one, path) == Outcome(is_refused=False), "reading a damaged file leaves something behind"
    assert not found, f"{len(found)} of {COUNT}:\n" + "\n".join(found[:20])
    assert one.is_optional or refused > COUNT // 10, "hardly any damage was seen: the reader looks at nothing"

# SPDX-License-Identifier: Apache-2.0
"""Whatever is done to an input file, it is read or refused with a message; no other error, and none that takes long.

`FUZZ_FILES=20000 pytest tests/fuzz` tries more of them.
"""

from __future__ import annotations

import os
import random
import time
import traceback

import pytest

from fuzz.formats import FORMATS
from manyscale.errors import ManyscaleError

pytestmark = pytest.mark.core

COUNT = int(os.environ.get("FUZZ_FILES", "200"))
LONGEST = 20.0  # seconds for one file


@pytest.mark.parametrize("name", FORMATS)
def test_the_sample_is_valid(name, tmp_path):
    FORMATS[name].read(FORMATS[name].make(tmp_path))


@pytest.mark.parametrize("name", FORMATS)
def test_a_damaged_file_is_read_or_refused(name, tmp_path):
    one = FORMATS[name]
    path = one.make(tmp_path)
    good = path.read_bytes()
    found = []
    refused = 0
    for seed in range(COUNT):
        content = one.mutate(good, random.Random(f"{name} {seed}"))
        path.write_bytes(content)
        begin = time.monotonic()
        try:
            one.read(path)
        except ManyscaleError as error:
            refused += 1
            if not str(error).strip():
                found.append(f"seed {seed}: the message is empty")
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            last = traceback.extract_tb(error.__traceback__)[-1]
            found.append(
                f"seed {seed}: {type(error).__name__}: {error!s:.100} at {last.filename}:{last.lineno}"
            )
        assert time.monotonic() - begin < LONGEST, f"seed {seed} took too long"
    assert not found, f"{len(found)} of {COUNT}:\n" + "\n".join(found[:20])
    assert one.is_optional or refused > COUNT // 10, "hardly any damage was seen: the reader looks at nothing"

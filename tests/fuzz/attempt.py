# SPDX-License-Identifier: Apache-2.0
"""One damaged file: it is read, or refused with a message; anything else is a finding."""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass
from pathlib import Path

from fuzz.formats import Format
from manyscale.errors import ManyscaleError

LONGEST = 20.0  # seconds of processor time for one file


@dataclass(frozen=True)
class Outcome:
    """How reading a file ended."""

    is_refused: bool
    problem: str | None = None
    """What was wrong with how it ended, in words; None if nothing was."""


def attempt(one: Format, path: Path) -> Outcome:
    """Reads a file as its command does."""
    begin = time.process_time()
    is_refused = False
    try:
        one.read(path)
    except ManyscaleError as error:
        is_refused = True
        if not str(error).strip():
            return Outcome(True, "the message is empty")
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return Outcome(False, f"{type(error).__name__}: {error!s:.100} at {last.filename}:{last.lineno}")
    took = time.process_time() - begin
    return Outcome(is_refused, f"it took {took:.0f} s" if took > LONGEST else None)

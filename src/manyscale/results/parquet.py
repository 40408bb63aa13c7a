# SPDX-License-Identifier: Apache-2.0
"""Tables in Parquet files, read so that a damaged file is an error and never the end of the process."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from manyscale.errors import RunError

if TYPE_CHECKING:
    import polars as pl

_LEAST_MEMORY = 8 << 30  # address space of the process that tries a file
_EXPANSION = 1000  # of a file's size, that it may take beyond that

# A wrong length in a damaged file is allocated as it stands, and polars ends the process that cannot.
_TRIAL = """
import io, resource, sys
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
_, hard = resource.getrlimit(resource.RLIMIT_AS)
limit = int(sys.argv[1]) if hard == resource.RLIM_INFINITY else min(int(sys.argv[1]), hard)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
import polars
polars.read_parquet(io.BytesIO(sys.stdin.buffer.read()))
"""


def table_of(
    content: bytes, path: Path, *, verified: bool, columns: Sequence[str] | None = None
) -> pl.DataFrame:
    """The table in the content of a file; one whose checksum is not known is first tried in a process of its own."""
    import polars as pl

    if not verified:
        _try(content, path)
    try:
        return pl.read_parquet(io.BytesIO(content), columns=None if columns is None else list(columns))
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise _damaged(path, (str(error).strip().splitlines() or [type(error).__name__])[0]) from None


def read_table(path: Path, *, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """The table in a file that has no known checksum."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror or error}") from None
    return table_of(content, path, verified=False, columns=columns)


def _try(content: bytes, path: Path) -> None:
    limit = _LEAST_MEMORY + _EXPANSION * len(content)
    ended = subprocess.run(
        [sys.executable, "-c", _TRIAL, str(limit)],
        input=content,
        capture_output=True,
        check=False,
        # Libraries that are loaded before others, such as sanitizers, may need more address space than the limit.
        env={name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        | {"POLARS_MAX_THREADS": "1"},
    )
    if ended.returncode < 0:
        raise _damaged(path, "what it says of its own content cannot be")
    if ended.returncode > 0:
        lines = ended.stderr.decode(errors="replace").strip().splitlines()
        raise _damaged(path, lines[-1] if lines else "it cannot be read")


def _damaged(path: Path, reason: str) -> RunError:
    return RunError(f"{path} is damaged or truncated: {reason}; run the simulation again")

# SPDX-License-Identifier: Apache-2.0
"""Where the `manyscale` command begins: Ctrl-C and a lack of memory are answered while the commands are imported, too.

Imports nothing that takes time before it can answer.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Sequence

STOPPED = 130
_COLLECT_AFTER = (
    50_000  # objects: importing makes many that stay, and looking through them takes a tenth of its time
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    gc.set_threshold(_COLLECT_AFTER)
    try:
        if list(sys.argv[1:] if arguments is None else arguments) == ["--version"]:
            sys.stdout.write(f"{version()}\n")
            sys.stdout.flush()
            return 0
        from manyscale.host_memory import guard_libraries

        guard_libraries()
        from manyscale.cli import app

        return app.main(arguments)
    except KeyboardInterrupt:
        return report("stopped", STOPPED)
    except BaseException as error:
        code = answer(error)
        if code is None:
            raise
        return code


def version() -> str:
    """What --version says."""
    from importlib.metadata import version

    return f"manyscale {version('manyscale')}"


def answer(error: BaseException) -> int | None:
    """Says that the memory was not enough where that is the reason, and gives the exit code; None if it is not."""
    from manyscale.host_memory import shortage

    found = shortage(error)
    return None if found is None else report(str(found), found.exit_code)


def report(text: str, code: int) -> int:
    """Writes an error message with nothing but the operating system, and gives back the exit code."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
    os.write(2, f"Error: {text}\n".encode())
    return code


if __name__ == "__main__":
    sys.exit(main())

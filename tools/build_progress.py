# SPDX-License-Identifier: Apache-2.0
"""Runs a command that builds, and shows ninja's count of steps instead of all that it prints.

    python tools/build_progress.py COMMAND...

On a terminal one line is updated; elsewhere a line is printed for each tenth. What the command printed is shown only
if it fails. Exits as the command does.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time

STEP = re.compile(r"^\s*\[(\d+)/(\d+)\] ")


def main(command: list[str]) -> int:
    if not command:
        print(__doc__, file=sys.stderr)
        return 2
    begin = time.monotonic()
    printed: list[str] = []
    tenth = -1
    terminal = sys.stderr.isatty()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            printed.append(line)
            step = STEP.match(line)
            if step is None:
                continue
            done, steps = int(step[1]), int(step[2])
            text = f"building: {done} of {steps} steps, {time.monotonic() - begin:.0f} s"
            if terminal:
                print(f"\r{text} ", end="", file=sys.stderr, flush=True)
            elif 10 * done // steps > tenth:
                tenth = 10 * done // steps
                print(text, file=sys.stderr, flush=True)
    if terminal and any(map(STEP.match, printed)):
        print(file=sys.stderr)
    if process.returncode != 0:
        sys.stderr.writelines(printed)
    return process.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

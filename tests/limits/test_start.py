# SPDX-License-Identifier: Apache-2.0
"""The beginning of a command: Ctrl-C while it imports, a pipe that is closed, input that is not there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

# Ctrl-C at the n-th import of the command; n is an argument.
AT_IMPORT = """
import sys
number = int(sys.argv.pop(1))
class Press:
    def find_spec(self, name, path=None, target=None):
        global number
        number -= 1
        if number == 0:
            import os, signal
            os.kill(os.getpid(), signal.SIGINT)
from manyscale.cli.start import main
sys.meta_path.insert(0, Press())
sys.exit(main(sys.argv[1:]))
"""


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "manyscale.cli.start", *arguments]


@pytest.mark.parametrize("number", [1, 2, 5, 10, 20, 50, 100, 200, 400])
def test_ctrl_c_while_importing_says_one_word(number: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", AT_IMPORT, str(number), "machines"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode in (0, 130), done.stderr
    assert "Traceback" not in done.stderr
    if done.returncode:
        assert done.stderr == "Error: stopped\n"
    assert done.returncode == 130 or number > 50


def test_the_installed_command_begins_there() -> None:
    from importlib.metadata import entry_points

    (found,) = (one for one in entry_points(group="console_scripts") if one.name == "manyscale")
    assert found.value == "manyscale.cli.start:main"


@pytest.mark.parametrize(
    "arguments",
    [
        ["machines"],
        ["machines", "show", "v100"],
        ["models"],
        ["net", "list"],
        ["--help"],
        ["net", "run", "allreduce", "--nodes", "4"],
        ["mem", "run", "random", "-m", "memory-small", "--accesses", "50", "--json"],
    ],
)
def test_a_closed_pipe_ends_a_command_without_a_traceback(arguments: list[str], tmp_path: Path) -> None:
    for lines in (0, 1):
        process = subprocess.Popen(
            command(*arguments),
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        for _ in range(lines):
            process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read().decode()
        process.stderr.close()
        assert process.wait(60) in (0, 1, 141)
        assert "Traceback" not in errors, errors
        assert "Exception ignored" not in errors, errors


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_closed_streams_do_no_harm(closed: tuple[int, ...], tmp_path: Path) -> None:
    begin = time.monotonic()
    process = subprocess.run(
        command("net", "run", "allreduce", "--nodes", "4", "--out", "here"),
        cwd=tmp_path,
        preexec_fn=lambda: [os.close(one) for one in closed],
        timeout=60,
        capture_output=closed == (0,),
    )
    assert process.returncode >= 0, signal.Signals(-process.returncode)
    assert (tmp_path / "here" / "run.json").is_file()
    assert time.monotonic() - begin < 60

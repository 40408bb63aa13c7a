# SPDX-License-Identifier: Apache-2.0
"""A newcomer: a fresh clone, an empty environment, and the commands of the README to the letter, in their order.

    python tests/newcomer/newcomer.py                      clones this repository, and does all of it (make newcomer)
    python tests/newcomer/newcomer.py --installed .venv    skips `make`, with an environment that has the package

Every ```sh block that is not marked `<!-- not run -->` goes to one shell, every ```python block to its `python`; what
the README shows of the output must be what was printed, but for times of the host. Ends with 1
where they differ.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tools")]
from docs_pages import Block, blocks  # noqa: E402
from update_docs_outputs import WIDTH, PageError, selected, without_host  # noqa: E402

_MARK = "--- newcomer: step "
_KEPT = re.compile(
    r"PIP_\w+|\w+_proxy|\w+_PROXY|SSL_CERT_FILE|REQUESTS_CA_BUNDLE"
)  # how pip reaches packages


@dataclass
class Step:
    """A block that is run, and the block that shows what it prints."""

    block: Block
    shown: list[Block] = field(default_factory=list)

    def commands(self, installed: bool) -> str:
        """The block for a shell."""
        if self.block.language == "python":
            return f"python - <<'PYTHON'\n{self.block.text}PYTHON\n"
        lines = self.block.text.splitlines(keepends=True)
        return "".join(line for line in lines if not (installed and line.startswith("make ")))


def steps_of(readme: Path) -> list[Step]:
    """What a newcomer does, in order."""
    steps: list[Step] = []
    for block in blocks(readme):
        if block.language in ("sh", "python") and not block.skipped:
            steps.append(Step(block))
        elif block.language == "text" and block.follows and steps:
            steps[-1].shown.append(block)
    return steps


def environment(home: Path) -> dict[str, str]:
    """Nothing of ours but what pip needs to reach packages."""
    kept = {name: value for name, value in os.environ.items() if _KEPT.fullmatch(name)}
    for name in (".config/pip/pip.conf", ".pip/pip.conf"):
        if (Path.home() / name).is_file():
            kept.setdefault("PIP_CONFIG_FILE", str(Path.home() / name))
    return {
        **kept,
        "HOME": str(home),
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "COLUMNS": WIDTH,
    }


def run(readme: Path, folder: Path, home: Path, installed: bool = False, echo: bool = False) -> None:
    """Follows a README in a folder; raises PageError where a command fails or prints something else."""
    steps = steps_of(readme)
    script = "set -e\n" + "".join(
        f"echo '{_MARK}{number}'\n{step.commands(installed)}" for number, step in enumerate(steps)
    )
    process = subprocess.Popen(
        ["bash", "-c", script],
        cwd=folder,
        env=environment(home),
        stdout=subprocess.PIPE,
        stderr=None if echo else subprocess.PIPE,
        text=True,
    )
    output, complaint = process.communicate()
    if echo:
        print(output, end="")
    parts = re.split(rf"^{_MARK}(\d+)\n", output, flags=re.M)
    printed = {int(number): text for number, text in zip(parts[1::2], parts[2::2], strict=True)}
    if process.returncode != 0:
        failed = steps[max(printed, default=0)].block
        raise PageError(
            f"{readme.name}, line {failed.line}: exit code {process.returncode}\n{failed.text}\n"
            f"{printed.get(max(printed, default=0), '')}\n{complaint or ''}"
        )
    for number, step in enumerate(steps):
        for shown in step.shown:
            compare(shown, printed[number], f"{readme.name}, line {shown.line}")


def compare(shown: Block, output: str, where: str) -> None:
    """What a block shows is what was printed."""
    right = output if shown.output is None else selected(output, shown.output, where)
    if without_host(shown.text) != without_host(right):
        raise PageError(f"{where} shows\n{shown.text}\nprinted was\n{right}")


def processor_seconds() -> float:
    """Of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    """Clones and follows the README of the clone."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--installed", type=Path, metavar="VENV", help="an environment that has the package")
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="newcomer-") as name:
        clone, home = Path(name) / "manyscale", Path(name) / "home"
        home.mkdir()
        subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(clone)], check=True)
        if options.installed is not None:
            (clone / ".venv").symlink_to(options.installed.resolve())
        try:
            run(clone / "README.md", clone, home, installed=options.installed is not None, echo=True)
        except PageError as error:
            print(error, file=sys.stderr)
            return 1
        kept = sum(file.lstat().st_size for file in (clone / ".venv").rglob("*") if not file.is_symlink())
    print(
        f"The README is right: {time.monotonic() - began:.0f} s, {processor_seconds():.0f} s of processor time; "
        f".venv has {kept / 1e6:.0f} MB."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

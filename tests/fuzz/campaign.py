# SPDX-License-Identifier: Apache-2.0
"""A fuzzing campaign over every format: `make fuzz SECONDS=600` runs it on a core built with sanitizers.

Each format gets its share of the time in processes of its own, so that a crash, a sanitizer's report or a hang ends
one of them only. The file that did it is kept in `build/fuzz`; `--only FORMAT --file FILE` reads it again, and with
`--minimise` leaves out what is not needed for it to fail. A finding that was mended is kept in
`tests/fuzz/corpus/FORMAT`, where the tests read it. What is tried follows from the seed and from what campaigns before
have left in `build/fuzz/corpus`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent
FOLDERS = ("", "memory", "gpu", "network", "cpu", "cuda", "cudart", "report")
sys.path[:0] = [str(TESTS / folder) for folder in FOLDERS]

from fuzz.attempt import LONGEST, attempt  # noqa: E402
from fuzz.formats import FORMATS, Format  # noqa: E402
from fuzz.minimise import minimised  # noqa: E402
from fuzz.worker import Worker  # noqa: E402

GRACE = 600.0  # seconds that a worker may take to begin and to end, also on a host that has other work
ROUND = 300.0  # seconds, of which each format gets its share before the next round


@dataclass
class Campaign:
    """What came of one format."""

    name: str
    files: int = 0
    refused: int = 0
    processor_seconds: float = 0.0
    entries: int = 0
    edges: int = 0
    lines: int = 0
    findings: list[str] = field(default_factory=list)

    def add(self, words: list[str]) -> None:
        """What the last line of a worker says."""
        tried, refused, seconds, entries, edges, lines = words
        self.files += int(tried)
        self.refused += int(refused)
        self.processor_seconds += float(seconds)
        self.entries = max(self.entries, int(entries))
        self.edges = max(self.edges, int(edges))
        self.lines = max(self.lines, int(lines))

    def row(self) -> str:
        """As a line of the table."""
        return (
            f"{self.name:20} {self.files:10,} {self.refused / max(self.files, 1):8.0%} "
            f"{self.processor_seconds:8,.0f} {self.entries:7} {self.edges:7,} {self.lines:6,} {len(self.findings):8}"
        )


HEADINGS = f"{'format':20} {'files':>10} {'refused':>8} {'CPU s':>8} {'corpus':>7} {'edges':>7} {'lines':>6} findings"


def watch(result: Campaign, seed: int, seconds: float, out: Path) -> None:
    """Runs workers of one format until the time is over."""
    one = FORMATS[result.name]
    end = monotonic() + seconds
    while (rest := end - monotonic()) > 1.0:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            command = [sys.executable, __file__, "--worker", one.name, "--folder", name]
            command += ["--seed", str(seed), "--seconds", str(rest), "--out", str(out)]
            try:
                done = subprocess.run(
                    command,
                    capture_output=True,
                    text=True,
                    errors="replace",
                    check=False,
                    timeout=rest + GRACE,
                )
                status, output, errors = done.returncode, done.stdout, done.stderr
            except subprocess.TimeoutExpired as hung:
                status, errors = 1, "the reader waits for ever"
                output = hung.stdout.decode(errors="replace") if isinstance(hung.stdout, bytes) else ""
            last: list[str] = []
            for line in output.splitlines():
                kind, _, rest_of_line = line.partition(" ")
                if kind == "tried":
                    last = rest_of_line.split()
                elif kind == "finding":
                    file, _, problem = rest_of_line.partition(" ")
                    result.findings.append(f"{keep(Path(file), one, out)}: {problem}")
            if last:
                result.add(last)
            if status != 0:
                kept = keep(folder / "current", one, out) if (folder / "current").exists() else "at the start"
                result.findings.append(f"{kept}: ended with {status}: {essence(errors)}")
        seed += 1000


def essence(errors: str) -> str:
    """What a sanitizer or the interpreter said last, on one line."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    first = next((n for n, line in enumerate(lines) if "ERROR: " in line or "runtime error" in line), None)
    return " | ".join(lines[first : first + 12] if first is not None else lines[-12:])[:1500]


def keep(file: Path, one: Format, out: Path) -> Path:
    """Copies the file of a finding to where it stays."""
    number = sum(1 for _ in out.glob(f"{one.name}-*"))
    return Path(shutil.copy2(file, out / f"{one.name}-{number}"))


def read_again(one: Format, file: Path) -> int:
    """Reads the file of a finding."""
    with tempfile.TemporaryDirectory() as name:
        path = one.make(Path(name))
        path.write_bytes(file.read_bytes())
        problem = attempt(one, path).problem
    print(problem or f"{file} is read or refused with a message")
    return 0 if problem is None else 1


def run(options: argparse.Namespace) -> int:
    """Rounds over all formats until the time is over; the table after each, so that a stopped campaign has one."""
    options.out.mkdir(parents=True, exist_ok=True)
    results = [Campaign(name) for name in options.only]
    end = monotonic() + options.seconds
    seed = options.seed
    while (rest := end - monotonic()) > 1.0:
        share = max(min(rest, ROUND) * options.jobs / len(results), 5.0)
        with ThreadPoolExecutor(options.jobs) as pool:
            running = [pool.submit(watch, result, seed, share, options.out) for result in results]
            for one in running:
                one.result()
        seed += 1
        (options.out / "table.txt").write_text(table(results), encoding="utf-8")
    print(table(results))
    return 1 if any(result.findings for result in results) else 0


def table(results: list[Campaign]) -> str:
    """All formats, and the findings of each."""
    lines = [HEADINGS, *(result.row() for result in results)]
    total = Campaign("all")
    for result in results:
        total.files += result.files
        total.refused += result.refused
        total.processor_seconds += result.processor_seconds
        total.entries += result.entries
        total.findings += result.findings
    lines.append(total.row())
    for result in results:
        lines += [f"{result.name}: {finding}" for finding in result.findings[:10]]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="in all, on each of the jobs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", nargs="*", choices=sorted(FORMATS), default=sorted(FORMATS))
    parser.add_argument("--out", type=Path, default=Path("build/fuzz"))
    parser.add_argument("--file", type=Path, help="read this file as the one format of --only")
    parser.add_argument("--minimise", type=Path, help="write a smaller file that fails as --file does")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        corpus = options.out / "corpus" / options.worker
        Worker(FORMATS[options.worker], options.folder, options.seed, corpus).run(options.seconds)
        return 0
    if options.minimise:
        options.minimise.write_bytes(minimised(FORMATS[options.only[0]], options.file.read_bytes(), LONGEST))
        return 0
    if options.file:
        return read_again(FORMATS[options.only[0]], options.file)
    return run(options)


if __name__ == "__main__":
    sys.exit(main())

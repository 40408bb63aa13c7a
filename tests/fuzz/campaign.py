# SPDX-License-Identifier: Apache-2.0
"""A fuzzing campaign over every format: `make fuzz SECONDS=600` runs it on a core built with sanitizers.

Each format gets its share of the time in processes of its own, so that a crash, a sanitizer's report or a hang ends
one of them only. The file that did it is kept in `build/fuzz`, and `--only FORMAT --file FILE` reads it again.
What is tried follows from the seed: a campaign with another seed tries other files.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent
FOLDERS = ("", "memory", "gpu", "network", "cpu", "cuda", "cudart", "report")
sys.path[:0] = [str(TESTS / folder) for folder in FOLDERS]

from fuzz.attempt import LONGEST, attempt  # noqa: E402
from fuzz.formats import FORMATS, Format  # noqa: E402

GRACE = 30.0  # seconds that a worker may take to begin and to end


@dataclass
class Campaign:
    """What came of one format."""

    name: str
    files: int = 0
    findings: list[str] = field(default_factory=list)


def work(one: Format, folder: Path, seed: int, seconds: float) -> None:
    """Damages and reads files for a while; a line for each finding, and at the end how many files there were."""
    path = one.make(folder)
    good = path.read_bytes()
    end = time.monotonic() + seconds
    tried = 0
    while time.monotonic() < end:
        content = one.mutate(good, random.Random(f"{one.name} {seed} {tried}"))
        tried += 1
        (folder / "current").write_bytes(content)
        path.write_bytes(content)
        problem = attempt(one, path).problem
        if problem is not None:
            kept = folder / f"finding-{seed}-{tried}"
            kept.write_bytes(content)
            print(f"finding {kept} {problem}", flush=True)
        if tried % 64 == 0:
            print(f"files {tried}", flush=True)
    print(f"files {tried}", flush=True)


def watch(one: Format, seed: int, seconds: float, out: Path) -> Campaign:
    """Runs workers of one format until the time is over."""
    result = Campaign(one.name)
    end = time.monotonic() + seconds
    while (rest := end - time.monotonic()) > 1.0:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            command = [sys.executable, __file__, "--worker", one.name, "--folder", name]
            command += ["--seed", str(seed), "--seconds", str(rest)]
            try:
                done = subprocess.run(
                    command, capture_output=True, text=True, check=False, timeout=rest + LONGEST + GRACE
                )
                status, output, errors = done.returncode, done.stdout, done.stderr
            except subprocess.TimeoutExpired as hung:
                status, errors = 1, "the reader hangs"
                output = hung.stdout.decode() if isinstance(hung.stdout, bytes) else hung.stdout or ""
            counts = [0]
            for line in output.splitlines():
                kind, _, rest_of_line = line.partition(" ")
                if kind == "files":
                    counts.append(int(rest_of_line))
                elif kind == "finding":
                    file, _, problem = rest_of_line.partition(" ")
                    result.findings.append(f"{keep(Path(file), one, out)}: {problem}")
            result.files += counts[-1]
            if status != 0:
                kept = keep(folder / "current", one, out) if (folder / "current").exists() else "at the start"
                last = " | ".join(line for line in errors.splitlines() if line.strip())[-1500:]
                result.findings.append(f"{kept}: ended with {status}: {last}")
        seed += 1
    return result


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
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(FORMATS[options.worker], options.folder, options.seed, options.seconds)
        return 0
    if options.file:
        return read_again(FORMATS[options.only[0]], options.file)
    options.out.mkdir(parents=True, exist_ok=True)
    share = options.seconds * options.jobs / len(options.only)
    with ThreadPoolExecutor(options.jobs) as pool:
        running = [
            pool.submit(watch, FORMATS[name], options.seed, share, options.out) for name in options.only
        ]
        results = [one.result() for one in running]
    for result in results:
        print(f"{result.name}: {result.files:,} files, {len(result.findings)} findings")
        for finding in result.findings[:10]:
            print(f"  {finding}")
    findings = sum(len(result.findings) for result in results)
    print(f"{sum(result.files for result in results):,} files of {len(results)} formats, {findings} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())

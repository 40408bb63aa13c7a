# SPDX-License-Identifier: Apache-2.0
"""One worker of a campaign: damages files of one format, reads them, and goes on from what reached something new."""

from __future__ import annotations

import contextlib
import faulthandler
import hashlib
import random
import signal
import time
from pathlib import Path

from fuzz import mutations
from fuzz.attempt import LONGEST, Outcome, attempt
from fuzz.coverage import Coverage
from fuzz.formats import Format

HANGS = 2 * LONGEST  # seconds of processor time, after which a file ends the worker
LARGEST = 1 << 18  # bytes of a file that others are made from
CORPUS = Path(__file__).resolve().parent / "corpus"


def seeds_of(one: Format, found: Path | None = None) -> list[bytes]:
    """Files of a format that once failed, or reached something new: those of the tree, and of campaigns before."""
    folders = [CORPUS / one.name, *([found] if found else [])]
    return [file.read_bytes() for folder in folders if folder.is_dir() for file in sorted(folder.iterdir())]


def mutated(one: Format, content: bytes, source: random.Random) -> bytes:
    """Another damaged file; one that its format cannot take apart any more is damaged byte by byte."""
    try:
        return one.mutate(content, source)
    except Exception:
        return mutations.of_bytes(content, source)


class Worker:
    """Tries files of one format in a folder, from a seed on."""

    def __init__(self, one: Format, folder: Path, seed: int, corpus: Path) -> None:
        self._format = one
        self._folder = folder
        self._seed = seed
        self._corpus = corpus
        self._coverage = Coverage()
        self._path = one.make(folder)
        self._sample = self._path.read_bytes()
        self._read_whole: list[bytes] = []  # files that were read
        self._refused_late: list[bytes] = []  # files that were refused where none was before
        self._tried = self._refused = 0
        corpus.mkdir(parents=True, exist_ok=True)

    def run(self, seconds: float) -> None:
        """A line for each finding, and lines with what was done so far."""
        faulthandler.register(signal.SIGPROF, chain=True)  # says where it hangs, and ends the process
        end = time.monotonic() + seconds
        self._read_whole += self._format.more()
        for content in [self._sample, *self._read_whole, *seeds_of(self._format, self._corpus)]:
            self._take(content)
        while time.monotonic() < end:
            source = random.Random(f"{self._format.name} {self._seed} {self._tried}")
            self._take(mutated(self._format, self._chosen(source), source))
            if self._tried % 64 == 0:
                self._report()
        self._report()

    def _chosen(self, source: random.Random) -> bytes:
        """The sample itself, or what reached something new: rather what was read, rather the last than the first."""
        what = source.random()
        found = self._read_whole if what < 0.8 else self._refused_late
        if what < 0.2 or not found:
            return self._sample
        return found[max(source.randrange(len(found)) for _ in range(2))]

    def _take(self, content: bytes) -> None:
        self._tried += 1
        (self._folder / "current").write_bytes(content)
        self._path.write_bytes(content)
        signal.setitimer(signal.ITIMER_PROF, HANGS)
        outcome, is_new = self._coverage.adds(self._read)
        signal.setitimer(signal.ITIMER_PROF, 0)
        self._refused += outcome.is_refused
        if outcome.problem is not None:
            kept = self._folder / f"finding-{self._seed}-{self._tried}"
            kept.write_bytes(content)
            print(f"finding {kept} {outcome.problem}", flush=True)
        elif is_new and len(content) <= LARGEST:
            (self._refused_late if outcome.is_refused else self._read_whole).append(content)
            with contextlib.suppress(OSError):
                (self._corpus / hashlib.sha256(content).hexdigest()[:16]).write_bytes(content)

    def _read(self) -> Outcome:
        return attempt(self._format, self._path)

    def _report(self) -> None:
        coverage = self._coverage
        print(
            f"tried {self._tried} {self._refused} {time.process_time():.1f} "
            f"{len(self._read_whole) + len(self._refused_late)} "
            f"{coverage.edges} {coverage.lines}",
            flush=True,
        )

# SPDX-License-Identifier: Apache-2.0
"""Beside other work on the host, two threads cost about the processor time of one, and change no result."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from manyscale import Result, System

pytestmark = [pytest.mark.parallel, pytest.mark.long]

ROUNDS = 5


@contextlib.contextmanager
def competing_load() -> Iterator[None]:
    """A process for each processor, that does nothing but keep it busy."""
    busy = [
        subprocess.Popen(
            [sys.executable, "-c", "print(flush=True)\nwhile True: pass"], stdout=subprocess.PIPE
        )
        for _ in range(os.cpu_count() or 1)
    ]
    try:
        for process in busy:
            assert process.stdout is not None
            process.stdout.readline()
        yield
    finally:
        for process in busy:
            process.kill()
            process.communicate()


def run(jobs: tuple[int, int], latency: str, until: str, threads: int) -> tuple[float, Result]:
    """Processor time of PHOLD on a ring whose two halves have so many jobs for each node."""
    system = System("phold", seed=1)
    nodes = [
        system.add("synthetic.phold", f"node[{i}]", jobs=jobs[i // 8], mean_delay="1ns", remote=0.1)
        for i in range(16)
    ]
    for i, node in enumerate(nodes):
        system.connect(node.peers, nodes[(i + 1) % 16].peers, latency)
    began = time.process_time()
    result = system.run(until=until, threads=threads)
    return time.process_time() - began, result


@pytest.mark.parametrize(
    ("jobs", "latency", "until"),
    [
        pytest.param((10, 10), "500ps", "20us", id="short windows"),
        pytest.param((60, 2), "500ps", "8us", id="one thread waits for the other"),
        pytest.param((100, 100), "5ns", "5us", id="long windows"),
    ],
)
def test_two_threads_take_at_most_1_3_times_the_processor_time(
    jobs: tuple[int, int], latency: str, until: str
) -> None:
    ratios = []
    with competing_load():
        for _ in range(ROUNDS):
            one, first = run(jobs, latency, until, 1)
            two, second = run(jobs, latency, until, 2)
            assert second.columns == first.columns
            assert second.threads == 2
            ratios.append(two / one)
            if ratios[-1] <= 1.3:
                return
    pytest.fail(f"processor time on two threads, to that on one: {', '.join(f'{r:.2f}' for r in ratios)}")

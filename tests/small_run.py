# SPDX-License-Identifier: Apache-2.0
"""A small run for tests of run directories: one component with one statistic."""

from __future__ import annotations

from manyscale.results import RunWriter, load

HEADLINE = {"cycles": {"value": 1200, "unit": "cycles"}, "simulated_seconds": {"value": 1.5e-6, "unit": "s"}}


def columns(value=7):
    return {
        "component": ["gpu"],
        "statistic": ["warps"],
        "kind": ["counter"],
        "unit": ["warps"],
        "description": ["warps that ran"],
        "scope": ["run"],
        "key": [None],
        "value": [value],
    }


def writer(path):
    return RunWriter(path, command=["manyscale", "run"], workload={"name": "saxpy", "n": 10}, seed=3)


def finished(path, headline=HEADLINE):
    with writer(path) as run:
        run.write_machine("cores = 4\n")
        run.write_stats(columns())
        run.finish(headline)
    return load(path)

# SPDX-License-Identifier: Apache-2.0
"""The command line of a benchmark: measure, print, and say which targets were missed."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping


def run_benchmark(
    description: str,
    measure: Callable[[int, float], dict[str, float]],
    targets: Mapping[str, float],
    rounds: int,
) -> int:
    """Prints the numbers that `measure(rounds, scale)` gives; 1 when one is below its target."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--scale", type=float, default=1.0, help="work per round; 0.1 for a quick look")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    return report(measure(options.rounds, options.scale), targets, options.json)


def report(numbers: Mapping[str, float], targets: Mapping[str, float], as_json: bool) -> int:
    """Prints numbers; 1 when one is below its target. Targets of what was not measured do not count."""
    missed = [name for name, target in targets.items() if name in numbers and numbers[name] < target]
    if as_json:
        print(json.dumps(numbers, indent=2))
    else:
        for name, value in numbers.items():
            target = f"  (target: at least {targets[name]:,})" if name in targets else ""
            print(f"{name:42} {value:>16,.2f}{target}")
        print("all targets met" if not missed else f"missed: {', '.join(missed)}")
    return 1 if missed else 0

# SPDX-License-Identifier: Apache-2.0
"""A branch predictor of your own, in Python: one bit for each branch, beside the two-bit counters of `bimodal`.

    python own_predictor.py

Each core has a predictor of its own. A machine names it as it names those of the core. One in C++ is faster: a source
file as those in core/cpu/core/predictors.
"""

from __future__ import annotations

from manyscale import cpu


class LastDirection:
    """A branch goes where it went the last time."""

    def __init__(self) -> None:
        self._taken: dict[int, bool] = {}

    def predict(self, pc: int) -> bool:
        """The direction of the last time; not taken if there was none."""
        return self._taken.get(pc, False)

    def update(self, pc: int, taken: bool) -> None:
        """Remembers where it went."""
        self._taken[pc] = taken


def mispredictions(kind: str) -> float:
    """Mispredicted branches of the sample program with this predictor."""
    program = cpu.Program(cpu.sample("heat"), [1, 16, 2])
    result = cpu.run(program, machine="broadwell", changes=[f'cpu.core.branch.kind="{kind}"'])
    return result.value("core[0]", "mispredicts")


def main() -> None:
    """Runs the program with predictors of the core and with this one."""
    cpu.register_predictor("last_direction", LastDirection)
    found = {}
    for kind in ("static_not_taken", "last_direction", "bimodal", "tage"):
        found[kind] = mispredictions(kind)
        print(f"{kind:17}{found[kind]:8,.0f} mispredictions: {cpu.predictors()[kind]}")
    better = found["last_direction"] < found["static_not_taken"]
    print("one bit for each branch is better than none:", "yes" if better else "no")


if __name__ == "__main__":
    main()

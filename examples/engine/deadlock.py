# SPDX-License-Identifier: Apache-2.0
"""A ring that is too full: nothing can move any more, and the run says who waits for whom.

Each stage starts with as many tokens as the next one has slots. All of them are sent, every slot is taken,
and every stage waits for a credit that its neighbour can give only after a credit from the next. No event is
left, so the engine asks each component what it still waits for, and an answer means deadlock. The ring of
ring.py keeps at least one slot free and never stops.

    python deadlock.py [DIRECTORY]

The failed run is left in the directory, or else in a temporary one that is removed.
"""

import sys
import tempfile
from pathlib import Path

from manyscale import DeadlockError, System, load

STAGES, SLOTS = 4, 2


def main(folder: Path) -> None:
    system = System("full ring")
    stages = [
        system.add("synthetic.relay", f"stage[{i}]", slots=SLOTS, tokens=SLOTS, hops=1_000)
        for i in range(STAGES)
    ]
    for here, after in zip(stages, stages[1:] + stages[:1], strict=True):
        system.connect(here.output, after.input, latency="2ns")

    try:
        system.run(out=folder / "run")
    except DeadlockError as error:
        print(error)
    else:
        sys.exit("the ring was expected to deadlock")

    # The run directory says the same, and keeps the statistics up to that moment.
    run = load(folder / "run")
    print(f"status: {run.status}, partial results: {run.info['partial']}")
    print(f"tokens passed before: {run.stats.filter(statistic='passed')['count'].sum()}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))

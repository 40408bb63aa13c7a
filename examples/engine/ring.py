# SPDX-License-Identifier: Apache-2.0
"""Relays in a ring: how fast tokens go round, limited by credits, against a closed form.

A stage may send a token only when the next stage has given it a credit. A stage has S slots, so it gives S
credits; a slot is taken when the token is sent, and its credit is back after a round trip R. So a stage
passes at most S tokens per R. In a closed ring with T tokens per stage that bound is reached halfway:

    a token needs the latency L to move one stage on      ->  at most T / L tokens per time
    an empty slot needs L to move one stage back          ->  at most (S - T) / L
    together min(T, S - T) / L, which is S / 2L = S / R at T = S / 2, and nothing at all at T = S

and never more than one token per cycle. What happens at T = S is shown in deadlock.py.

    python ring.py [DIRECTORY]

With a directory, a run at the bound leaves its statistics and its timeline there.
"""

import sys

from manyscale import System, load

STAGES = 8
SLOTS = 8
CYCLE_NS = 1  # the relays' clock, 1 GHz
LATENCY_NS = 5  # of each link; a whole number of cycles, so that no time is lost waiting for an edge
WARM_UP_NS, MEASURED_NS = 1_000, 10_000


def make_ring(tokens: int) -> System:
    """A ring whose stages hold that many tokens each at the start."""
    system = System("ring")
    stages = [
        system.add("synthetic.relay", f"stage[{i}]", clock="1GHz", slots=SLOTS, tokens=tokens, hops=10**9)
        for i in range(STAGES)
    ]
    for here, after in zip(stages, stages[1:] + stages[:1], strict=True):
        system.connect(here.output, after.input, latency=f"{LATENCY_NS}ns")
    return system


def simulated(tokens: int) -> float:
    """Tokens that a stage passes per nanosecond, once the ring has settled."""
    system = make_ring(tokens)
    # A run goes on from where the last one ended, so the difference of two leaves the start out.
    before = system.run(until=f"{WARM_UP_NS}ns").value("stage[0]", "passed")
    after = system.run(until=f"{WARM_UP_NS + MEASURED_NS}ns").value("stage[0]", "passed")
    return (after - before) / MEASURED_NS


def expected(tokens: int) -> float:
    """The same by the closed form above."""
    return min(tokens / LATENCY_NS, (SLOTS - tokens) / LATENCY_NS, 1 / CYCLE_NS)


def main() -> None:
    round_trip = 2 * LATENCY_NS
    print(f"{SLOTS} slots, round trip {round_trip} ns: at most {SLOTS / round_trip} tokens per ns")
    print("tokens per stage   simulated   expected   (tokens per ns)")
    worst = 0.0
    for tokens in range(1, SLOTS):
        got, want = simulated(tokens), expected(tokens)
        worst = max(worst, abs(got / want - 1))
        print(f"{tokens:16}   {got:9.3f}   {want:8.3f}")
    print(f"largest deviation: {100 * worst:.2f} %")
    if worst > 0.01:
        sys.exit("the simulation does not agree with the closed form")

    if len(sys.argv) > 1:
        make_ring(SLOTS // 2).run(until="200ns", out=sys.argv[1], timeline=True)
        print(f"{load(sys.argv[1]).status}: {sys.argv[1]} holds the statistics and timeline.pftrace")


if __name__ == "__main__":
    main()

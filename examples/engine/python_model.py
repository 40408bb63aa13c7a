# SPDX-License-Identifier: Apache-2.0
"""A model in Python that talks to a model of the core.

The relay of the core sends tokens: it speaks the protocol 'token' as its producer. The station below is
written in Python and speaks it as the consumer: it takes tokens, keeps each for a while, and gives the credit
back. Messages to and from the core are dictionaries of the protocol's fields: a token has `hops_left` and
`born`, a credit has `slots`.

With S slots a new token can follow only when a credit is back, so S tokens pass per round trip, which is
link + service + link.

    python python_model.py
"""

import sys

from manyscale import Component, Count, Counter, Gauge, Histogram, Port, Spec, System, Time, Timer, parameter

TOKENS = 1_000
SLOTS, SERVICE_NS, LATENCY_NS = 3, 10, 2


class Station(Component):
    """Serves up to `slots` tokens at a time, each for the same time; nothing is lost or reordered."""

    class Spec(Spec):
        slots: Count = parameter(1, doc="tokens that are served at the same time", minimum=1)
        service: Time = parameter("10ns", doc="time that a token takes", minimum="0fs")

    source = Port("token", "consumer", "producer", doc="where tokens come from")
    done = Timer()
    served = Counter("token", doc="tokens served")
    inside = Gauge("token", doc="tokens being served")
    age = Histogram("fs", doc="age of a token when it leaves")

    def start(self) -> None:
        self.busy = 0
        self.source.send({"slots": self.spec.slots})

    @source
    def take(self, token: dict, lane: int) -> None:
        self.busy += 1
        self.inside.set(self.busy)
        self.done.after(self.spec.service, token)

    @done
    def leave(self, token: dict) -> None:
        self.busy -= 1
        self.inside.set(self.busy)
        self.served.add()
        self.age.record(self.now - token["born"])
        self.source.send({"slots": 1})


def main() -> None:
    system = System("station")
    relay = system.add("synthetic.relay", "relay", clock="1GHz", tokens=TOKENS, hops=1)
    station = system.add(Station, "station", slots=SLOTS, service=f"{SERVICE_NS}ns")
    system.connect(relay.output, station.source, latency=f"{LATENCY_NS}ns")
    print(system)

    result = system.run()
    round_trip = LATENCY_NS + SERVICE_NS + LATENCY_NS
    simulated = result.value("station", "served") / (result.now / 1e6)
    expected = SLOTS / round_trip
    print(f"served {result.value('station', 'served')} tokens, at most {station.inside.max:.0f} at a time")
    print(f"simulated {simulated:.4f} tokens per ns, expected {expected:.4f}")
    if abs(simulated / expected - 1) > 0.01:
        sys.exit("the simulation does not agree with the closed form")


if __name__ == "__main__":
    main()

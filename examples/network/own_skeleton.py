# SPDX-License-Identifier: Apache-2.0
"""A skeleton of one's own: a ring of ranks on a single switch, against the closed form.

Each rank computes, then passes a message to its neighbour. A message takes the overheads at both ends, two links, the
switch, and its bytes at the bandwidth of a link; all ranks do so at the same time and meet no one else's traffic.
"""

from manyscale import network

RANKS, ROUNDS, PAYLOAD = 16, 10, 1024
COMPUTE, OVERHEAD, LINK, SWITCH = 5e-6, 200e-9, 90e-9, 100e-9
HEADER, BANDWIDTH = 32, 12.5e9


def ring(mpi, rank, size):
    """What each rank does; called once for each, and folded into one program."""
    with mpi.loop(ROUNDS):
        mpi.compute("5us")
        request = mpi.irecv((rank - 1) % size, PAYLOAD, tag=1)
        mpi.send((rank + 1) % size, PAYLOAD, tag=1)
        mpi.wait(request)


result = network.run(
    ring,
    nodes=RANKS,
    topology="switch",
    fidelity="packet",
    changes=["network.mpi.send_overhead=200ns", "network.mpi.receive_overhead=200ns"],
)
message = OVERHEAD + 2 * LINK + SWITCH + (PAYLOAD + HEADER) / BANDWIDTH + OVERHEAD
expected = ROUNDS * (COMPUTE + message)
deviation = abs(result.simulated_seconds / expected - 1)
print(f"simulated {result.simulated_seconds * 1e6:.3f} us, expected {expected * 1e6:.3f} us")
for name, share in result.shares.items():
    print(f"  {name}: {share:.1%}")
print(f"deviation: {100 * deviation:.2f} %")

# SPDX-License-Identifier: Apache-2.0
"""What faster SMs and faster memory are worth to a hydrodynamics code on a V100: one step at nine pairs of clocks.

The mesh has 8 cells along each edge, or as many as the first argument says; 22 take about a minute.
"""

import itertools
import sys

from manyscale.validation.gpu_clocks import MEMORY_CLOCKS, SM_CLOCKS, step_seconds

edge = int(sys.argv[1]) if len(sys.argv) > 1 else 8
seconds = {
    (sm, memory): step_seconds("v100", sm, memory, edge) for sm in SM_CLOCKS for memory in MEMORY_CLOCKS
}

print(f"microseconds of a step with {edge} x {edge} x {edge} cells")
print("SMs \\ memory" + "".join(f"{memory:>9} MHz" for memory in MEMORY_CLOCKS))
for sm in SM_CLOCKS:
    print(f"{sm:>8} MHz" + "".join(f"{seconds[sm, memory] * 1e6:>13.2f}" for memory in MEMORY_CLOCKS))

slow_memory, fast_memory = MEMORY_CLOCKS[0], MEMORY_CLOCKS[-1]
for slow, fast in itertools.pairwise(SM_CLOCKS):
    gain = seconds[slow, slow_memory] / seconds[fast, slow_memory]
    print(f"SMs from {slow} to {fast} MHz: {gain:.2f} times faster")
gain = max(seconds[sm, slow_memory] / seconds[sm, fast_memory] for sm in SM_CLOCKS)
print(f"memory from {slow_memory} to {fast_memory} MHz: at most {gain:.2f} times faster")
print(f"the SMs decide, not the memory: {'yes' if gain < 1.05 else 'no'}")

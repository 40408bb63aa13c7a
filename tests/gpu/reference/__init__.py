# SPDX-License-Identifier: Apache-2.0
"""A second PTX interpreter, for tests: scalar, in plain Python, written from the text of the PTX ISA.

It shares nothing with the simulator: its own parser, its own memory, its own arithmetic (whole numbers of any size,
rounded once). A register is a Python integer that holds the bits of one thread.

| module | holds |
|---|---|
| `ptx_types` | the types of PTX |
| `rounding` | binary formats, exact values and their correct rounding |
| `operations` | an opcode such as `add.rz.ftz.f32` as a function of bits |
| `integer_operations`, `float_operations`, `convert_operations` | what those functions compute |
| `compare_operations`, `video_operations` | more of them |
| `parser` | PTX text as modules, functions and instructions |
| `memory` | state spaces and generic addresses |
| `machine` | what a thread is |
| `compiler`, `memory_steps`, `warp_steps` | what an instruction does to a thread, alone or with others |
| `interpreter` | kernels: the threads of a CTA in turns |
| `programs`, `program_statements`, `program_opcodes` | random programs |
| `flow_programs`, `memory_programs` | pieces of PTX for tests of control flow and of memory |
"""

HEADER = ".version 8.6\n.target sm_90\n.address_size 64\n"
"""How the modules of the tests begin."""

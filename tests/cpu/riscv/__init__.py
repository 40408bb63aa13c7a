# SPDX-License-Identifier: Apache-2.0
"""Support for tests of the RISC-V front end: encodings, small ELF files, random sequences of instructions."""

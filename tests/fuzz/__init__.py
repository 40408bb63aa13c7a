# SPDX-License-Identifier: Apache-2.0
"""Damaged input files: the formats that commands read, with valid samples, and what can be done to a file."""

# SPDX-License-Identifier: Apache-2.0
"""Projection in three phases: from ranks that were profiled, over a node in detail, to thousands of nodes."""

# SPDX-License-Identifier: Apache-2.0
"""The sections of a report of a run: each adds itself to a page if the run has left what it shows."""

# SPDX-License-Identifier: Apache-2.0
"""Studies: what many runs, or runs at several scales, say together."""

# SPDX-License-Identifier: Apache-2.0
"""Programs that need more memory than the device has: who suffers, beside a GTX 1080 Ti.

    python oversubscription.py [FOLDER] [--full] [--only NAME ...]

Without --full two programs that are quick to simulate, at 100% and 125%; with it all that were measured. A FOLDER gets
a chart, and pictures of the first program's run at 125%: where pages were over time, and what was busy.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from manyscale.results.line_chart import line_chart
from manyscale.validation.managed_programs import PROGRAMS
from manyscale.validation.managed_programs.outcome import measure
from manyscale.validation.uvm_measurements import MEASURED, oversubscription

PERCENT = (100, 125, 150)
QUICK = {"random_access": 1 << 20, "stream_triad": 1 << 19}


def slowdowns(
    sizes: dict[str, int], percents: tuple[int, ...], folder: Path | None
) -> dict[str, list[tuple[float, float]]]:
    """Times relative to 100%."""
    print(
        f"{'':18}"
        + "".join(f"{percent:>12}%" for percent in percents)
        + "   times as long as at 100% (measured)"
    )
    lines = {}
    for name, size in sizes.items():
        times = {}
        counts = []
        line = f"{name:18}"
        for percent in percents:
            drawn = folder if (name, percent) == (next(iter(sizes)), 125) else None
            share = oversubscription(name, percent)
            outcome = measure(name, size, oversubscribed=share, pictures=drawn)
            times[percent] = outcome.kernels_us
            line += f"{outcome.kernels_us:>10,.0f} us"
            counts.append(
                f"{name} at {percent}%: {outcome.batches:,} fault batches, {outcome.to_device_mib:,.1f} MiB migrated"
            )
        lines[name] = [(percent, time / times[100]) for percent, time in times.items()]
        for percent in percents[1:]:
            line += f"   {times[percent] / times[100]:.2f}"
            if size == PROGRAMS[name].full and name in MEASURED:
                line += f" ({MEASURED[name][percent].kernels_us / MEASURED[name][100].kernels_us:.2f})"
        print("\n  ".join([line, *counts]), flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, help="for the chart and the pictures")
    parser.add_argument("--full", action="store_true", help="all programs, in the sizes of the measurements")
    parser.add_argument("--only", nargs="+", choices=list(MEASURED), help="these programs")
    options = parser.parse_args()
    full = {name: PROGRAMS[name].full for name in MEASURED}
    sizes = full if options.full else QUICK
    if options.only:
        sizes = {name: full[name] for name in options.only}
    percents = PERCENT if options.full or options.only else PERCENT[:2]
    lines = slowdowns(sizes, percents, options.folder)
    worst = max(lines, key=lambda name: lines[name][-1][1])
    least = min(lines, key=lambda name: lines[name][-1][1])
    print(f"suffers the most: {worst}, the least: {least}")
    if options.folder:
        options.folder.mkdir(parents=True, exist_ok=True)
        title = "Slowdown by oversubscription"
        chart = line_chart(title, "working set, % of memory", "times", lines, log_x=False, log_y=True)
        (options.folder / "slowdowns.svg").write_text(chart, encoding="utf-8")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Commands on networks: run an MPI job, list the built-in skeletons, write a job as a GOAL schedule."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from manyscale.cli.console import emit_json, say, simulated, tables
from manyscale.cli.listing import print_table
from manyscale.cli.options import Changes, Force, Json, Out, Quiet, Replace, Seed, Threads
from manyscale.cli.run import output_directory
from manyscale.errors import InputError

if TYPE_CHECKING:
    from manyscale.network import JobResult

commands = typer.Typer(name="net", help="Simulate MPI jobs of many nodes on a network.")

_FEMTOSECONDS = 10**15
_MOST_LISTED = 100_000

Work = Annotated[
    str, typer.Argument(metavar="WORK", help="A built-in skeleton (see: manyscale net list) or a file.goal.")
]
Nodes = Annotated[int | None, typer.Option("--nodes", "-n", min=1, metavar="N", help="Nodes of the job.")]
RanksPerNode = Annotated[
    int, typer.Option("--ranks-per-node", min=1, metavar="N", help="Ranks on each node.")
]
NetworkMachine = Annotated[
    str, typer.Option("--machine", "-m", metavar="NAME|FILE", help="A machine with a network section.")
]
Parameters = Annotated[
    list[str] | None,
    typer.Option("--param", "-p", metavar="NAME=VALUE", help="A parameter of the skeleton; may be repeated."),
]


@commands.command()
def run(
    work: Work,
    nodes: Nodes = None,
    ranks_per_node: RanksPerNode = 1,
    ranks: Annotated[
        int | None, typer.Option("--ranks", min=1, metavar="N", help="Ranks, if fewer than the nodes take.")
    ] = None,
    parameters: Parameters = None,
    topology: Annotated[
        str | None,
        typer.Option(
            "--topology",
            metavar="KIND",
            help="One that fits of this kind, such as fat-tree; `manyscale plugins topology` lists them.",
        ),
    ] = None,
    fidelity: Annotated[
        str | None, typer.Option("--fidelity", "-f", metavar="KIND", help="packet, train, flow or ideal.")
    ] = None,
    mapping: Annotated[
        str,
        typer.Option(
            "--mapping", metavar="KIND|FILE", help="block, cyclic, random, or a file: a node in each line."
        ),
    ] = "block",
    machine: NetworkMachine = "omnipath",
    changes: Changes = None,
    threads: Threads = 1,
    seed: Seed = None,
    timeline: Annotated[
        str | None,
        typer.Option(
            "--timeline", metavar="RANKS", help="Record the calls of ranks such as 0,5,8-11 for Perfetto."
        ),
    ] = None,
    load: Annotated[
        str | None,
        typer.Option(
            "--load", metavar="TIME", help="Record load and queues of links in intervals, such as 10us."
        ),
    ] = None,
    out: Out = None,
    force: Replace = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run an MPI job on a network and leave a run directory.

    Example: manyscale net run hpcg --nodes 512 --ranks-per-node 16 --topology fat-tree
    --set network.link.bandwidth=100Gb/s
    """
    from manyscale import network
    from manyscale.cli.forecast import OPERATIONS, warn_if_long
    from manyscale.cli.progress import SimulationProgress

    chosen = _ranks(timeline)
    given = _parameters(parameters or [])
    name = Path(work).stem
    with (
        output_directory(out, f"net-{name}", quiet, force=force) as directory,
        SimulationProgress(name, None, quiet) as progress,
    ):
        result = network.run(
            work,
            machine=machine,
            changes=changes or [],
            nodes=nodes,
            ranks_per_node=ranks_per_node,
            ranks=ranks,
            topology=topology,
            fidelity=fidelity,
            mapping=mapping,
            seed=seed or 0,
            threads=threads,
            out=directory,
            timeline=chosen,
            load=load,
            progress=progress,
            command=["manyscale", *sys.argv[1:]],
            notice=lambda program: warn_if_long(
                program.executed(), "MPI operations", OPERATIONS, "--nodes, --ranks-per-node or --param"
            ),
            **given,
        )
    if json:
        emit_json(_summary(result) | {"directory": str(directory)})
    elif not quiet:
        _print(result, directory)


@commands.command("list")
def list_motifs(json: Json = False) -> None:
    """List the built-in skeletons."""
    from manyscale.network import MOTIFS

    rows = [(name, " ".join((kind.__doc__ or "").split("\n\n")[0].split())) for name, kind in MOTIFS.items()]
    if json:
        emit_json([{"name": name, "description": text} for name, text in rows])
    else:
        print_table("Skeletons", ("name", "what it does"), rows)


@commands.command()
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A built-in skeleton.")], json: Json = False
) -> None:
    """Show the parameters of a built-in skeleton."""
    from manyscale.network import motif
    from manyscale.spec import parameters

    rows = parameters(type(motif(name)))
    if json:
        emit_json([row._asdict() for row in rows])
    else:
        print_table(
            f"Parameters of {name}",
            ("name", "type", "default", "range", "meaning"),
            [(row.path, row.type, row.default, row.range, row.doc) for row in rows],
        )


@commands.command()
def goal(
    work: Work,
    file: Annotated[Path, typer.Argument(metavar="FILE.goal", help="The file to write.")],
    ranks: Annotated[int, typer.Option("--ranks", min=1, metavar="N", help="Ranks of the job.")],
    parameters: Parameters = None,
    ranks_per_node: RanksPerNode = 1,
    machine: NetworkMachine = "omnipath",
    changes: Changes = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Write a job as a GOAL schedule, the input of LogGOPSim: loops unrolled, collectives as messages.

    Messages of collectives are those of the algorithm that a parameter names, or else of the one that the machine's
    MPI library chooses; of the machine nothing else matters.
    """
    from manyscale.network.goal import GOAL, write_goal
    from manyscale.network.goal_export import Library, schedule_of
    from manyscale.network.job import cluster, program_for
    from manyscale.results.files import check_output

    check_output(file, GOAL, force=force)
    mpi: Any = cluster(machine, changes or [], nodes=-(-ranks // ranks_per_node)).network.mpi
    library = Library(mpi.collectives, mpi.segment, ranks_per_node)
    schedule = schedule_of(program_for(work, ranks, _parameters(parameters or [])), library)
    write_goal(schedule, file, force=force)
    say(f"Wrote {schedule.messages:,} messages of {schedule.ranks:,} ranks to {file}", quiet=quiet)


def _parameters(texts: Sequence[str]) -> dict[str, Any]:
    from manyscale.toml_text import toml_value

    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip().isidentifier():
            raise InputError(f"--param {text}: write NAME=VALUE, such as face=32KiB")
        found[name.strip()] = toml_value(value)
    return found


def _ranks(text: str | None) -> list[int]:
    """Ranks such as 0,5,8-11."""
    chosen: list[int] = []
    for part in text.split(",") if text else []:
        first, dash, last = part.partition("-")
        if not first.strip().isdigit() or (dash and not last.strip().isdigit()):
            raise InputError(f"--timeline {text}: write ranks such as 0,5,8-11")
        ends = int(first), int(last) if dash else int(first)
        if ends[1] - ends[0] >= _MOST_LISTED:
            raise InputError(f"--timeline {text}: that is more ranks than a picture can show")
        chosen += range(ends[0], ends[1] + 1)
    return chosen


def _summary(result: JobResult) -> dict[str, Any]:
    from manyscale.results.definitions import plain

    return plain(result.headline) | {"shares": result.shares}


def _print(result: JobResult, directory: Path) -> None:
    from rich.table import Table
    from rich.text import Text

    from manyscale.units import BYTES, COUNT, TIME, humanize

    busiest = result.links.sort("busy", descending=True).head(1)
    shares = ", ".join(f"{name} {share:.1%}" for name, share in result.shares.items())
    speed = humanize(round(result.messages / result.wall_seconds), COUNT) if result.wall_seconds else "?"
    facts = {
        "simulated": simulated(
            humanize(round(result.simulated_seconds * _FEMTOSECONDS), TIME),
            result.wall_seconds,
            result.threads,
            f"{speed} messages/s",
        ),
        "ranks": f"{result.program.ranks:,}",
        "messages": f"{result.messages:,} ({humanize(result.totals['bytes'], BYTES)}), {result.packets:,} packets",
        "time of ranks": shares,
        "busiest link": "-" if busiest.is_empty() else _busy(busiest.row(0, named=True)),
        **_longest_queue(result),
        "directory": str(directory),
    }
    grid = Table.grid(padding=(0, 2))
    for name, fact in facts.items():
        grid.add_row(name, Text(fact, overflow="fold"))
    tables().print(grid)


def _busy(row: dict[str, Any]) -> str:
    from manyscale.network.result import link_name

    return f"{link_name(row)}, busy {row['busy']:.1%} of the time"


def _longest_queue(result: JobResult) -> dict[str, str]:
    """Where most waited, and when; nothing where it was not recorded or nothing waited."""
    from manyscale.network.result import link_name
    from manyscale.units import BYTES, TIME, humanize

    longest = result.load.sort("queue", descending=True).head(1)
    if longest.is_empty() or not longest["queue"][0]:
        return {}
    row = longest.row(0, named=True)
    where = link_name(result.links.row(row["row"], named=True))
    begin = humanize(round(row["begin"] * _FEMTOSECONDS), TIME)
    length = humanize(round(row["seconds"] * _FEMTOSECONDS), TIME)
    return {"longest queue": f"{where}, {humanize(round(row['queue']), BYTES)} in the {length} from {begin}"}

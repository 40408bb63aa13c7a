# SPDX-License-Identifier: Apache-2.0
"""Commands that project a job from one node to many: profile its ranks, simulate nodes, predict."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from manyscale.cli.console import emit_json, say
from manyscale.cli.cpu_options import Arguments, CpuMachine
from manyscale.cli.listing import print_table
from manyscale.cli.options import Changes, Force, Json, Quiet, Seed, Threads
from manyscale.cli.projection_files import check_outputs, prediction_document, write_document, write_network
from manyscale.errors import InputError

if TYPE_CHECKING:
    from manyscale.network.motifs import Motif
    from manyscale.studies.projection.predict import Prediction
    from manyscale.studies.projection.profiling import RankProfile
    from manyscale.studies.projection.recorded_job import RecordedJob

commands = typer.Typer(
    name="project",
    help="Project an MPI job to many nodes: profile its ranks, simulate a node in detail, predict the whole.",
)

Folder = Annotated[
    Path,
    typer.Option("--out", "-o", metavar="DIR", help="The folder of the projection; all phases share it."),
]
Program = Annotated[
    Path | None,
    typer.Option("--program", metavar="FILE", help="The program for RISC-V (manyscale cpu cc --mpi)."),
]
Native = Annotated[
    Path | None,
    typer.Option(
        "--native", metavar="FILE", help="The same program for this machine (manyscale cpu cc --mpi --host)."
    ),
]
RanksPerNode = Annotated[
    int, typer.Option("--ranks-per-node", "-r", min=1, metavar="N", help="Ranks on each node.")
]
Network = Annotated[
    str, typer.Option("--network", metavar="NAME|FILE", help="A machine with a network section.")
]
NetworkChanges = Annotated[
    list[str] | None,
    typer.Option(
        "--set-network", metavar="KEY=VALUE", help="Change one parameter of the network; may be repeated."
    ),
]


@commands.command()
def profile(
    nodes: Annotated[
        int, typer.Option("--nodes", "-n", min=1, metavar="N", help="Nodes of the profiled job.")
    ],
    arguments: Arguments = None,
    program: Program = None,
    native: Native = None,
    ranks_per_node: RanksPerNode = 1,
    mpirun: Annotated[
        str | None,
        typer.Option(
            "--mpirun",
            metavar="COMMAND",
            help="What starts the ranks of --native, such as 'mpirun -n 8', if it is not of this package's MPI.",
        ),
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(
            "--groups", metavar="LIST", help="Groups by hand instead: the group of each rank, 0,1,1,1."
        ),
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option("--tolerance", min=0.0, metavar="SHARE", help="By which ranks of a group may differ."),
    ] = 0.05,
    out: Folder = Path("projection"),
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Phase 1: count what each rank does, group ranks that are alike, and choose nodes that stand for all.

    Ranks run natively under `perf stat` where this machine has counters, else in the functional processor.

    Example: manyscale project profile --native job --program job.riscv --nodes 8 -- 16 16 16
    """
    from manyscale.studies.projection.pages import write_profile_page
    from manyscale.studies.projection.profile_file import FILE, save_profile

    check_outputs(out, force, FILE, "profile.html")
    found = _profiled(
        nodes, arguments or [], program, native, ranks_per_node, mpirun, groups, tolerance, quiet
    )
    save_profile(found, out, force=force)
    title = str(found.facts.get("program", "a job"))
    page = write_profile_page(found, out / "profile.html", Path(title).name, force=force)
    if json:
        emit_json(
            {
                "source": found.source,
                "groups": found.clusters.labels,
                "why": found.clusters.why,
                "nodes": found.nodes,
                "counters": found.counters,
                "report": str(page),
            }
        )
        return
    rows = []
    for group in range(found.clusters.count):
        members = found.clusters.members(group)
        means = [
            f"{sum(values[rank] for rank in members) / len(members):,.4g}"
            for values in found.counters.values()
        ]
        rows.append((str(group), str(len(members)), _ranks_text(members), *means))
    print_table("Groups of ranks", ("group", "ranks", "which", *found.counters), rows)
    typer.echo(found.clusters.why)
    typer.echo(f"nodes to simulate: {', '.join(map(str, found.nodes))}; report: {page}")


def _profiled(
    nodes: int,
    arguments: list[str],
    program: Path | None,
    native: Path | None,
    ranks_per_node: int,
    mpirun: str | None,
    groups: str | None,
    tolerance: float,
    quiet: bool,
) -> RankProfile:
    from manyscale.cli.progress import SimulationProgress
    from manyscale.cpu import Program as CpuProgram
    from manyscale.studies.projection import profiling

    ranks = nodes * ranks_per_node
    if groups is not None:
        labels = _numbers(groups, "--groups")
        if len(labels) != ranks:
            raise InputError(
                f"--groups names {len(labels)} ranks; {nodes} nodes of {ranks_per_node} have {ranks}"
            )
        return profiling.profile_given(labels, ranks_per_node)
    if native is None and program is None:
        raise InputError("give the program to profile: --native FILE, --program FILE or both")
    if native is not None:
        problem = profiling.perf_problem()
        if problem is None:
            say(f"{ranks} ranks under perf stat", quiet=quiet)
            return profiling.profile_native(
                native, ranks, arguments, ranks_per_node=ranks_per_node, launcher=mpirun, tolerance=tolerance
            )
        if program is None:
            raise InputError(
                f"perf cannot count here: {problem}; give the program for RISC-V, too (--program)"
            )
        say(f"perf cannot count here ({problem}); counting in the functional processor", quiet=quiet)
    assert program is not None
    with SimulationProgress(program.name, None, quiet) as progress:
        return profiling.profile_functional(
            CpuProgram(program, arguments),
            ranks,
            ranks_per_node=ranks_per_node,
            tolerance=tolerance,
            progress=progress,
        )


@commands.command()
def node(
    program: Annotated[Path, typer.Argument(metavar="PROG", help="The program for RISC-V.")],
    arguments: Arguments = None,
    native: Native = None,
    nodes: Annotated[
        int | None,
        typer.Option(
            "--nodes", "-n", min=1, metavar="N", help="Nodes of the job; those profiled if not stated."
        ),
    ] = None,
    ranks_per_node: Annotated[
        int | None,
        typer.Option("--ranks-per-node", "-r", min=1, metavar="N", help="Ranks on each node; as profiled."),
    ] = None,
    choose: Annotated[
        str | None,
        typer.Option(
            "--choose", metavar="LIST", help="Nodes to simulate, such as 0,3; those the profile chose."
        ),
    ] = None,
    external: Annotated[
        bool, typer.Option(help="Simulate with native ranks on the other nodes (external ranks).")
    ] = True,
    alone: Annotated[bool, typer.Option(help="Simulate a node alone, too, for comparison.")] = True,
    alone_args: Annotated[
        str | None,
        typer.Option("--alone-args", metavar="TEXT", help="Arguments of a node alone, if they are others."),
    ] = None,
    injection: Annotated[
        bool, typer.Option(help="Messages of other nodes read and write the simulated caches and memory.")
    ] = True,
    threads_per_rank: Annotated[
        int,
        typer.Option(
            "--threads-per-rank",
            min=1,
            metavar="N",
            help="Cores of each rank, and the OpenMP threads that it makes.",
        ),
    ] = 1,
    machine: CpuMachine = "broadwell",
    changes: Changes = None,
    network: Network = "omnipath",
    network_changes: NetworkChanges = None,
    out: Folder = Path("projection"),
    force: Force = False,
    threads: Threads = 1,
    seed: Seed = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Phase 2: simulate the chosen nodes in detail and keep how long their compute phases take.

    Example: manyscale project node job.riscv --native job --nodes 8 -- 16 16 16
    """
    from manyscale.cli.progress import SimulationProgress
    from manyscale.cpu import Program as CpuProgram
    from manyscale.studies.projection.measured_job import FILE, MACHINE, measure_job

    check_outputs(out, force, FILE, MACHINE)
    with SimulationProgress(program.name, None, quiet) as progress:
        measured = measure_job(
            CpuProgram(program, arguments or []),
            native,
            _profile_for(out, nodes, ranks_per_node, choose),
            machine=machine,
            changes=changes or [],
            network=network,
            network_changes=network_changes or [],
            external=external,
            alone=alone,
            alone_args=None if alone_args is None else alone_args.split(),
            injection=injection,
            threads_per_rank=threads_per_rank,
            threads=threads,
            seed=seed or 0,
            say=lambda text: say(text, quiet=quiet),
            progress=progress,
        )
    measured.save(out, force=force)
    found = measured.external or measured.alone
    rows = [
        (group, name, phase.samples, phase.mean, phase.mean * phase.samples)
        for group, timings in enumerate(found)
        for name, phase in timings.phases.items()
    ]
    rows.sort(key=lambda row: -row[4])
    if json:
        names = ("group", "phase", "samples", "mean_seconds", "sum_seconds")
        emit_json({"directory": str(out), "phases": [dict(zip(names, row, strict=True)) for row in rows]})
        return
    from manyscale.studies.projection.pages import seconds_text

    print_table(
        "The longest compute phases",
        ("group", "phase", "samples", "mean", "all together"),
        [(str(g), name, f"{n:,}", seconds_text(m), seconds_text(s)) for g, name, n, m, s in rows[:12]],
    )
    typer.echo(
        f"{len(rows)} phases in {out}/timings; the MPI model is within {measured.costs.largest_error:.0%}"
    )


def _profile_for(
    folder: Path, nodes: int | None, ranks_per_node: int | None, choose: str | None
) -> RankProfile:
    from dataclasses import replace

    from manyscale.studies.projection import profile_file, profiling

    if (folder / profile_file.FILE).is_file() and nodes is None:
        found = profile_file.load_profile(folder)
        if ranks_per_node not in (None, found.ranks_per_node):
            raise InputError(f"the job was profiled with {found.ranks_per_node} ranks on a node")
    elif nodes is None:
        raise InputError(
            f"say how many nodes the job has (--nodes), or profile it first: {folder} has no profile"
        )
    else:
        per_node = ranks_per_node or 1
        found = profiling.profile_given([0] * (nodes * per_node), per_node)
    if choose is None:
        return found
    chosen = _numbers(choose, "--choose")
    last = found.ranks // found.ranks_per_node - 1
    if any(not 0 <= one <= last for one in chosen):
        raise InputError(f"--choose {choose}: the nodes are 0 to {last}")
    return replace(found, nodes=sorted(set(chosen)))


@commands.command()
def predict(
    nodes: Annotated[
        str,
        typer.Option("--nodes", "-n", metavar="LIST", help="Numbers of nodes to predict, such as 2,4,8,16."),
    ],
    arguments: Arguments = None,
    native: Annotated[
        Path | None,
        typer.Option(
            "--native",
            metavar="FILE",
            help="Record this program with as many ranks; that of phase 2 by default.",
        ),
    ] = None,
    skeleton: Annotated[
        str | None,
        typer.Option(
            "--skeleton", metavar="NAME", help="A built-in skeleton instead (see: manyscale net list)."
        ),
    ] = None,
    parameters: Annotated[
        list[str] | None,
        typer.Option(
            "--param", "-p", metavar="NAME=VALUE", help="A parameter of the skeleton; may be repeated."
        ),
    ] = None,
    variant: Annotated[
        str,
        typer.Option(
            "--variant", metavar="NAME", help="ext-var, ext-ct, 'no ext-var', 'no ext-ct' or all four: all."
        ),
    ] = "all",
    network: Annotated[
        str | None,
        typer.Option(
            "--network", metavar="NAME|FILE", help="A machine with a network section; that of phase 2."
        ),
    ] = None,
    network_changes: NetworkChanges = None,
    topology: Annotated[
        str | None,
        typer.Option("--topology", metavar="KIND", help="See `manyscale plugins topology`."),
    ] = None,
    repetitions: Annotated[
        int, typer.Option("--repetitions", min=1, metavar="N", help="Runs, each with new random times.")
    ] = 10,
    what_if: Annotated[bool, typer.Option(help="Try what would help at the largest number of nodes.")] = True,
    out: Folder = Path("projection"),
    force: Force = False,
    threads: Threads = 1,
    seed: Seed = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Phase 3: predict the time of the job on many nodes, its uncertainty and what limits it.

    In arguments, {nodes} and {ranks} stand for their numbers; without any, those of phase 2 are taken.

    Example: manyscale project predict --nodes 2,4,8,16
    """
    from manyscale.cli.progress import PartsProgress, SimulationProgress
    from manyscale.studies.projection import predict as phase
    from manyscale.studies.projection.measured_job import MeasuredJob
    from manyscale.studies.projection.pages import seconds_text, write_prediction_page
    from manyscale.studies.projection.profile_file import FILE, load_profile

    check_outputs(out, force, "predict.json", "network.toml", "report.html")
    measured = MeasuredJob.load(out)
    counts = sorted(set(_numbers(nodes, "--nodes")))
    if not counts or counts[0] < 1:
        raise InputError(f"--nodes {nodes}: give numbers of nodes from 1 on")
    asked = list(phase.VARIANTS) if variant == "all" else [variant]
    usable = [one for one in asked if (measured.external if one.startswith("ext") else measured.alone)]
    if not usable:
        raise InputError(f"phase 2 left no timings for the variant {variant}")
    predictions: dict[str, list[Prediction]] = {name: [] for name in usable}
    told: dict[str, Any] = {"network": network, "network_changes": network_changes, "topology": topology}
    work: RecordedJob | Motif | None = None
    runs = sum(phase.runs_of(name, repetitions) for name in usable)
    with SimulationProgress(str(measured.facts["program"]), None, quiet) as whole:
        progress = PartsProgress(whole, "ranks", runs * measured.ranks_per_node * sum(counts))
        for count in counts:
            say(f"{count} nodes", quiet=quiet)
            ranks = count * measured.ranks_per_node
            progress.size(ranks)
            work = _work(measured.facts, count, ranks, arguments, native, skeleton, parameters or [])
            for name in usable:
                predictions[name].append(
                    phase.predict(
                        work,
                        measured,
                        nodes=count,
                        variant=name,  # type: ignore[arg-type]
                        repetitions=repetitions,
                        seed=seed or 0,
                        threads=threads,
                        progress=progress,
                        **told,
                    )
                )
    best = predictions.get(phase.BEST) or predictions[usable[-1]]
    helps = []
    if what_if:
        assert work is not None
        say("what would help", quiet=quiet)
        helps = phase.improvements(work, measured, best[-1], seed=seed or 0, **told)
    ranks_profile = load_profile(out) if (out / FILE).is_file() else None
    title = str(measured.facts["program"])
    if given := measured.facts.get("arguments"):
        title = f"{title} {' '.join(given)}"
    page = write_prediction_page(
        out / "report.html", title, measured, predictions, helps, ranks_profile, force=force
    )
    document = prediction_document(predictions, helps) | {"report": str(page)}
    write_document(out / "predict.json", document, force)
    write_network(out / "network.toml", phase.cluster_for(measured, counts[-1], **told), force)
    if json:
        emit_json(document)
        return
    rows = [
        (
            str(count),
            *(seconds_text(predictions[name][index].seconds) for name in usable),
            f"± {best[index].half_width / best[index].seconds:.2%}",
            *(f"{best[index].shares[part]:.1%}" for part in phase.PARTS),
        )
        for index, count in enumerate(counts)
    ]
    print_table("Predicted times", ("nodes", *usable, "95%", *phase.PARTS), rows)
    for one in helps:
        typer.echo(f"{one.gain:+7.2%} of the time saved by: {one.name}")
    if best[-1].stand_ins.text:
        typer.echo(f"not measured: {best[-1].stand_ins.text}")
    typer.echo(f"most of the time: {best[-1].limit}; report: {page}")


def _work(
    facts: dict[str, Any],
    nodes: int,
    ranks: int,
    arguments: list[str] | None,
    native: Path | None,
    skeleton: str | None,
    parameters: list[str],
) -> RecordedJob | Motif:
    if skeleton is not None:
        from manyscale.network.motifs import motif

        given = {}
        for text in parameters:
            name, equals, value = text.partition("=")
            if not equals:
                raise InputError(f"--param {text}: write NAME=VALUE")
            given[name] = value
        return motif(skeleton, **given)
    from manyscale.studies.projection.recorded_job import record

    program = native or facts.get("native_program")
    if program is None:
        raise InputError("give the program compiled for this machine (--native), or a skeleton (--skeleton)")
    texts = arguments or facts.get("arguments", [])
    filled = [text.replace("{nodes}", str(nodes)).replace("{ranks}", str(ranks)) for text in texts]
    return record(program, ranks, filled)


def _numbers(text: str, option: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise InputError(
            f"{option} {text}: write whole numbers with commas between them, such as 0,3"
        ) from None


def _ranks_text(ranks: list[int]) -> str:
    """Ranks such as 0-3 5 7, shortened."""
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    parts = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    return " ".join(parts[:12]) + (" …" if len(parts) > 12 else "")

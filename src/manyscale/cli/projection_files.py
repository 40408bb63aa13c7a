# SPDX-License-Identifier: Apache-2.0
"""The files that the phases of a projection leave in its folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyscale.errors import InputError

if TYPE_CHECKING:
    from manyscale.network.job import Cluster
    from manyscale.results.files import FileKind
    from manyscale.studies.projection.predict import Prediction

_DOCUMENTS = {
    "profile.json": "projection-profile",
    "node.json": "projection-node",
    "predict.json": "projection-prediction",
}


def prediction_document(predictions: dict[str, list[Prediction]], helps: list[Any]) -> dict[str, Any]:
    """Predictions as data, for predict.json and --json."""
    return {
        "schema": 1,
        "kind": "projection-prediction",
        "predictions": [
            {
                "nodes": one.nodes,
                "variant": one.variant,
                "seconds": one.seconds,
                "low": one.low,
                "high": one.high,
                "runs": one.runs,
                "shares": one.shares,
                "limit": one.limit,
                "stand_in_share": one.stand_ins.share,
                "stand_ins": [
                    {
                        "phase": phase.phase,
                        "used": phase.used,
                        "ranks": phase.ranks,
                        "occurrences": phase.occurrences,
                        "seconds": phase.seconds,
                    }
                    for phase in one.stand_ins.phases
                ],
            }
            for found in predictions.values()
            for one in found
        ],
        "improvements": [{"name": one.name, "seconds": one.seconds, "gain": one.gain} for one in helps],
    }


def write_document(path: Path, document: dict[str, Any], force: bool) -> None:
    """Writes one of the documents with its checksum."""
    from manyscale.results.files import write_file
    from manyscale.results.integrity import sealed

    write_file(path, lambda file: file.write(sealed(document, indent=1)), _kind(path.name), force=force)


def write_network(path: Path, cluster: Cluster, force: bool) -> None:
    """Writes the network of a prediction, complete, as a machine file."""
    from manyscale.machine import to_toml
    from manyscale.results.files import write_file

    text = to_toml(cluster.machine.machine, cluster.machine.sources)
    write_file(path, lambda file: file.write(text.encode()), _kind(path.name), force=force)


def check_outputs(folder: Path, force: bool, *names: str) -> None:
    """Looks whether what a phase leaves can be written, before the work."""
    from manyscale.results.files import check_output

    if folder.exists() and not folder.is_dir():
        raise InputError(f"--out {folder}: it is a file; give the folder of the projection")
    for name in names if folder.is_dir() else ():
        check_output(folder / name, _kind(name), force=force)


def _kind(name: str) -> FileKind:
    from manyscale.machine.saving import MACHINE_FILE
    from manyscale.report.page import PAGE
    from manyscale.results.files import document_kind

    if name.endswith(".toml"):
        return MACHINE_FILE
    return PAGE if name.endswith(".html") else document_kind(_DOCUMENTS[name])

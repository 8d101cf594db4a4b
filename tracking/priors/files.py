"""Prior files: one .npz per prior, with its version and the rig it was learned on; and the built-in ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from calibration.foundation.arrays import Floats
from calibration.foundation.damaged_files import reading
from calibration.foundation.errors import InputError
from calibration.foundation.files import atomic_path
from calibration.foundation.npz_files import read_npz
from tracking.priors.gplvm import BackMap, GplvmPrior, Kernel, exact_gplvm
from tracking.priors.pose_chart import PoseChart
from tracking.priors.prior import LinearPrior, require_rig

__all__ = ["builtin_prior", "builtin_prior_path", "load_prior", "save_prior"]

PRIOR_VERSION = 1
"""Version of the file; raised whenever a field changes its meaning."""

BUILTIN_PRIORS = ("mouse", "rat", "human")


def save_prior(prior: LinearPrior | GplvmPrior, path: Path, *, notes: Mapping[str, str] | None = None) -> None:
    """Write a prior to an .npz file, atomically; same prior, same bytes.

    ``notes`` are texts for the reader of the file (whose data it was made of, what was held out).
    """
    fields: dict[str, Any] = {
        "version": np.int64(PRIOR_VERSION),
        "rig_name": np.str_(prior.rig_name),
        "quad_names": np.array(prior.quad_names, dtype=np.str_),
        "mean_rotations": prior.chart.mean_rotations,
        "length_scale": np.float64(prior.chart.length_scale),
        "root": np.int64(prior.chart.root),
        "training_poses": prior.training_poses,
        "training_latents": prior.training_latents,
    }
    if isinstance(prior, LinearPrior):
        fields |= {
            "kind": np.str_("linear"),
            "centre": prior.centre,
            "components": prior.components,
            "noise": np.float64(prior.noise),
        }
    else:
        fields |= {
            "kind": np.str_("gplvm"),
            "kernel": np.array([prior.kernel.alpha, prior.kernel.gamma, prior.kernel.noise]),
            "back_weights": prior.back_map.weights,
            "back_gamma": np.float64(prior.back_map.gamma),
        }
        if prior.training_segments is not None:
            fields["training_segments"] = prior.training_segments.astype(np.float32)
        if prior.training_roots is not None:
            fields["training_roots"] = prior.training_roots
        # An exact prior follows from its training latents and poses; a sparse one keeps only some of them.
        if prior.centres is not prior.training_latents:
            fields |= {
                # What it starts from and is carried over with, not what it is evaluated with: half the size will do.
                "training_poses": prior.training_poses.astype(np.float32),
                "training_latents": prior.training_latents.astype(np.float32),
                "centre": prior.centre,
                "centres": prior.centres,
                "weights": prior.weights,
                "precision": prior.precision,
            }
        if prior.back_map.poses is not prior.training_poses:
            fields["back_poses"] = prior.back_map.poses
    fields |= {f"note_{name}": np.str_(text) for name, text in (notes or {}).items()}
    with atomic_path(path) as temporary, open(temporary, "wb") as stream:
        np.savez_compressed(stream, **fields)


def load_prior(
    path: Path | str, *, rig_name: str | None = None, quad_names: Sequence[str] | None = None
) -> LinearPrior | GplvmPrior:
    """Read a prior written by `save_prior`.

    Args:
        path: the .npz file.
        rig_name: name of the rig it must belong to; None accepts any.
        quad_names: the rig's quads, checked with the name.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"prior {path}: no such file; make one with `vivarig train`")
    fields = read_npz(path, "a prior file of `vivarig train`", remedy="train it again")
    if "version" not in fields or "kind" not in fields:
        raise InputError(f"prior {path}: not a prior file of `vivarig train` (it has no version or kind)")
    version = fields["version"].item() if fields["version"].size == 1 else None
    if version != PRIOR_VERSION:
        raise InputError(f"prior {path}: version {version}, this program reads {PRIOR_VERSION}; train it again")
    with reading(path, "a prior file of `vivarig train`", remedy="train it again"):
        try:
            prior = _from_fields(fields)
        except KeyError as error:
            raise InputError(f"prior {path}: field {error} is missing; train it again") from None
        _check_shapes(prior, path)
    if rig_name is not None:
        require_rig(prior, rig_name, prior.quad_names if quad_names is None else quad_names)
    return prior


def _from_fields(fields: dict[str, Any]) -> LinearPrior | GplvmPrior:
    chart = PoseChart(fields["mean_rotations"], float(fields["length_scale"]), int(fields["root"]))
    rig_name = str(fields["rig_name"])
    quad_names = tuple(str(name) for name in fields["quad_names"])
    poses: Floats = fields["training_poses"].astype(np.float64)
    latents: Floats = fields["training_latents"].astype(np.float64)
    if str(fields["kind"]) == "linear":
        noise = float(fields["noise"])
        return LinearPrior(rig_name, quad_names, chart, fields["centre"], fields["components"], noise, poses, latents)
    kernel = Kernel(*(float(value) for value in fields["kernel"]))
    back_map = BackMap(fields.get("back_poses", poses), fields["back_weights"], float(fields["back_gamma"]))
    segments = fields["training_segments"].astype(np.float64) if "training_segments" in fields else None
    roots = fields.get("training_roots")
    if "centres" not in fields:
        exact = exact_gplvm(latents, poses, kernel, back_map, chart, rig_name=rig_name, quad_names=quad_names)
        return replace(exact, training_segments=segments, training_roots=roots)
    return GplvmPrior(
        rig_name,
        quad_names,
        chart,
        kernel,
        fields["centre"],
        fields["centres"],
        fields["weights"],
        fields["precision"],
        back_map,
        poses,
        latents,
        segments,
        roots,
    )


def _check_shapes(prior: LinearPrior | GplvmPrior, path: Path) -> None:
    """Refuse fields that do not fit together: they are multiplied far from here, some by compiled loops."""
    entries, latent = prior.chart.dimension, prior.latent_dim
    wanted: list[tuple[str, Any, tuple[int | None, ...]]] = [
        ("quad_names", np.array(prior.quad_names), (prior.chart.quads,)),
        ("mean_rotations", prior.chart.mean_rotations, (prior.chart.quads, 3, 3)),
        ("training_poses", prior.training_poses, (None, entries)),
        ("training_latents", prior.training_latents, (len(prior.training_poses), latent)),
        ("centre", prior.centre, (entries,)),
    ]
    if isinstance(prior, GplvmPrior):
        count = len(prior.centres)
        wanted += [
            ("centres", prior.centres, (count, latent)),
            ("weights", prior.weights, (count, entries)),
            ("precision", prior.precision, (count, count)),
            ("back_poses", prior.back_map.poses, (None, entries)),
            ("back_weights", prior.back_map.weights, (len(prior.back_map.poses), latent)),
        ]
    else:
        wanted.append(("components", prior.components, (entries, latent)))
    for name, array, shape in wanted:
        fits = np.ndim(array) == len(shape) and all(n in (None, m) for n, m in zip(shape, array.shape, strict=True))
        if not fits or not array.size or (array.dtype.kind != "U" and not np.isfinite(array).all()):
            raise InputError(f"prior {path}: field '{name}' does not fit the others; train it again")


def builtin_prior_path(name: str) -> Path:
    """Path of the prior that ships with a built-in subject."""
    if name not in BUILTIN_PRIORS:
        raise InputError(f"no built-in prior '{name}'; there are {', '.join(BUILTIN_PRIORS)}")
    return Path(__file__).parent / f"{name}.npz"


@cache  # every shape of a body that is tried on takes it over
def builtin_prior(name: str) -> GplvmPrior:
    """Load the prior that ships with a built-in body: mouse, rat or human.

    It was learned on quads of its own; `tracking.priors.scaling.builtin_prior_for` gives it to a subject's.
    """
    prior = load_prior(builtin_prior_path(name))
    if not isinstance(prior, GplvmPrior):
        raise InputError(f"built-in prior '{name}' is not a Gaussian-process prior; make it again")
    return prior

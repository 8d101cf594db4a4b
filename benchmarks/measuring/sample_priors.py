"""The samples tracked with a linear prior in place of the built-in GPLVM: same poses, same dimension, nothing else."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tracking.priors.prior import LinearPrior, fit_linear_prior
from tracking.priors.scaling import builtin_prior_for
from tracking.quads.attachment import QuadAttachment
from tracking.subjects import shaped, subject

__all__ = ["linear_priors"]


def _linear_prior_for(attachment: QuadAttachment) -> LinearPrior:
    """Return principal components of the poses that the built-in prior of these quads was trained on."""
    known = builtin_prior_for(attachment)
    return fit_linear_prior(
        known.training_poses, known.latent_dim, known.chart, rig_name=known.rig_name, quad_names=known.quad_names
    )


@contextlib.contextmanager
def linear_priors() -> Iterator[None]:
    """Give every subject of this process a linear prior while the block runs."""
    before = shaped.builtin_prior_for, subject.builtin_prior_for
    try:
        shaped.builtin_prior_for = subject.builtin_prior_for = _linear_prior_for  # type: ignore[assignment]
        yield
    finally:
        shaped.builtin_prior_for, subject.builtin_prior_for = before

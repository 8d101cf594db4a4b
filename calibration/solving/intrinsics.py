"""One camera from its views of boards: a start without a guess, the adjustment, and how many terms the data bear."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from calibration.boards.sightings import Sightings
from calibration.bundle.adjustment import Bundle, BundleSolution, adjust, leave_out, minimise
from calibration.bundle.parameters import DISTORTIONS, Columns, Freedom, number_columns
from calibration.cameras.camera_row import CX, CY, FISHEYE, FX, FY, K1, LIMIT, MODEL, PINHOLE, R00, R11, R22, ROW
from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.compiled import compiled
from calibration.foundation.errors import SolveError
from calibration.solving.planar_pose import poses_of_views

__all__ = ["FISHEYE_LADDER", "PINHOLE_LADDER", "LensChoice", "LensFit", "choose_lens", "fit_lens", "start_row"]

#: Lens models from simple to rich; each step adds terms to the one before.
PINHOLE_LADDER: tuple[Freedom, ...] = (
    Freedom(1, False, "none"),
    Freedom(1, False, "radial1"),
    Freedom(1, False, "radial2"),
    Freedom(1, True, "radial2"),
    Freedom(2, True, "radial2"),
    Freedom(2, True, "brown4"),
    Freedom(2, True, "brown5"),
)
FISHEYE_LADDER: tuple[Freedom, ...] = (
    Freedom(1, False, "fisheye0"),
    Freedom(1, False, "fisheye1"),
    Freedom(1, True, "fisheye1"),
    Freedom(1, True, "fisheye2"),
    Freedom(2, True, "fisheye2"),
    Freedom(2, True, "fisheye4"),
)
FOLDS = 4


@dataclass(frozen=True, eq=False)
class LensFit:
    """A camera fitted alone (identity pose), and what was free in it."""

    solution: BundleSolution
    freedom: Freedom

    @property
    def row(self) -> Floats:
        """The lens as a camera row (36,)."""
        return np.asarray(self.solution.bundle.rows[0])


@dataclass(frozen=True, eq=False)
class LensChoice:
    """Which lens model the data bear.

    Attributes:
        freedom: the chosen model.
        ladder: the models tried, simple to rich.
        heldout_px: (m,) error of each on views that it was not fitted to, px RMS.
        gain: (m,) how much worse than the best in its own standard errors (0 for the best).
        reason: one sentence for the report.
    """

    freedom: Freedom
    ladder: tuple[Freedom, ...]
    heldout_px: Floats
    gain: Floats
    reason: str


def start_row(sightings: Sightings, *, fisheye: bool) -> Floats:
    """Find a first lens for one camera by trying focal lengths; no distortion, centre in the middle.

    The fields of view tried reach from 8 to 150 degrees; the one whose board poses reproject best wins.
    """
    width, height = sightings.sizes[0]
    row = np.zeros(ROW)
    row[MODEL] = FISHEYE if fisheye else PINHOLE
    row[CX], row[CY] = (width - 1) / 2, (height - 1) / 2
    row[R00] = row[R11] = row[R22] = 1.0
    row[LIMIT] = (np.pi / 2) ** 2 if fisheye else np.inf
    chosen, ends = _informative_views(sightings, 8)
    points, index = sightings.model_points()
    model, pixels, camera = points[index[chosen]] * [1, 1, 0], sightings.pixels[chosen], np.zeros(len(ends), np.int64)
    best, best_error = 0.0, np.inf
    for focal in max(width, height) * np.geomspace(0.2 if fisheye else 0.3, 7.0, 13):
        row[FX] = row[FY] = focal
        error = float(np.median(poses_of_views(row[None], camera, model, pixels, ends)[2][:, 0]))
        if error < best_error:
            best, best_error = float(focal), error
    if not np.isfinite(best_error):
        raise SolveError(f"camera '{sightings.cameras[0]}': no focal length explains any of its {len(ends)} views")
    row[FX] = row[FY] = best
    return row


def _informative_views(sightings: Sightings, count: int) -> tuple[Ints, Ints]:
    """Return the rows of up to ``count`` views, one after the other, and where each ends.

    Those with the strongest perspective are taken, which tell the focal length: the best affine map misses them most.
    """
    points, index = sightings.model_points()
    _, target, ends = sightings.view_runs()
    miss = _affine_misfit(points[index], sightings.pixels, ends)
    size = np.diff(ends, prepend=0)
    whole = np.array([board.corners for board in sightings.boards])[sightings.targets().board[target]]
    usable = np.flatnonzero((size >= 6) | (size >= whole))
    if not len(usable):
        raise SolveError(
            f"camera '{sightings.cameras[0]}': no view with six corners or more; show the board larger or nearer"
        )
    best = usable[np.argsort(-miss[usable], kind="stable")][:count]
    return np.concatenate([np.arange(ends[v] - size[v], ends[v]) for v in best]), np.cumsum(size[best])


@compiled
def _affine_misfit(model: Floats, pixels: Floats, ends: Ints) -> Floats:
    """Return for each view the RMS distance of its corners from the best affine image of the board, px."""
    out = np.zeros(ends.shape[0])
    first = 0
    for v in range(ends.shape[0]):
        last, n = ends[v], ends[v] - first
        mx = my = mu = mv = 0.0
        for i in range(first, last):
            mx += model[i, 0] / n
            my += model[i, 1] / n
            mu += pixels[i, 0] / n
            mv += pixels[i, 1] / n
        xx = xy = yy = xu = yu = xv = yv = 0.0
        for i in range(first, last):
            x, y, u, w = model[i, 0] - mx, model[i, 1] - my, pixels[i, 0] - mu, pixels[i, 1] - mv
            xx += x * x
            xy += x * y
            yy += y * y
            xu += x * u
            yu += y * u
            xv += x * w
            yv += y * w
        det = xx * yy - xy * xy
        if det > 1e-9 * (xx + yy) ** 2:
            a, b = (yy * xu - xy * yu) / det, (xx * yu - xy * xu) / det
            c, d = (yy * xv - xy * yv) / det, (xx * yv - xy * xv) / det
            for i in range(first, last):
                x, y = model[i, 0] - mx, model[i, 1] - my
                out[v] += (pixels[i, 0] - mu - a * x - b * y) ** 2 + (pixels[i, 1] - mv - c * x - d * y) ** 2
            out[v] = math.sqrt(out[v] / n)
        first = last
    return out


def _single_bundle(row: Floats, sightings: Sightings) -> Bundle:
    """Return the bundle of one camera, leaving out views that no pose explains."""
    points, index = sightings.model_points()
    camera, _, ends = sightings.view_runs()
    rotations, translations, rms = poses_of_views(row[None], camera, points[index], sightings.pixels, ends)
    solved = np.isfinite(rms[:, 0])
    if not solved.any():
        raise SolveError(f"camera '{sightings.cameras[0]}': no view of a board gives a pose")
    kept = np.repeat(solved, np.diff(ends, prepend=0))
    number = np.cumsum(solved) - 1
    return Bundle(
        rows=row[None].copy(),
        rotations=rotations[solved, 0],
        translations=translations[solved, 0],
        points=points,
        camera=sightings.camera[kept],
        target=np.repeat(number, np.diff(ends, prepend=0))[kept],
        point=index[kept],
        pixels=sightings.pixels[kept],
    )


def fit_lens(sightings: Sightings, freedom: Freedom, *, start: Floats | None = None) -> LensFit:
    """Fit the lens of one camera to its sightings, from ``start`` (36,) or from nothing.

    Two stages, focal length and first radial term before the rest; then each view's other planar solution is
    tried with the lens found, and the fit repeated where one wins.
    """
    fisheye = freedom.distortion.startswith("fisheye")
    row = start_row(sightings, fisheye=fisheye) if start is None else start
    bundle = _single_bundle(row, sightings)
    first = Freedom(1, False, "fisheye1" if fisheye else "radial1")
    if start is None and freedom.focal:
        columns = number_columns((first,), 0, len(bundle.points))
        bundle, _, _ = minimise(bundle, columns, scale=2.0, iterations=30, tolerance=1e-4)
        # a better lens gives better poses, and may choose the other one of the two
        bundle = _single_bundle(bundle.rows[0], sightings)
    return LensFit(adjust(bundle, (freedom,), reference=0), freedom)


def richest_fit(sightings: Sightings, ladder: tuple[Freedom, ...]) -> LensFit:
    """Fit the richest model of a ladder that the number of corners allows at all."""
    for rung in reversed(range(len(ladder))):
        try:
            return fit_lens(sightings, ladder[rung])
        except SolveError:
            if rung == 0:
                raise
    raise SolveError("an empty ladder of lens models")


def choose_lens(
    sightings: Sightings, ladder: tuple[Freedom, ...], fit: LensFit | None = None
) -> tuple[LensFit, LensChoice]:
    """Choose the simplest model of a ladder that predicts unseen views as well as any, and fit it.

    Views are dealt into folds; each model is fitted without a fold and scored on it, the board poses of that
    fold refitted (see `bundle.leave_out`). A richer model wins only where the mean gain per view exceeds its own
    standard error. ``fit`` is the `richest_fit`, if it was made before.
    """
    name = sightings.cameras[0]
    fit = richest_fit(sightings, ladder) if fit is None else fit
    rung = ladder.index(fit.freedom)
    bundle = fit.solution.bundle.only(fit.solution.inlier)
    targets = np.unique(bundle.target)
    usable = ladder[: rung + 1]
    if len(targets) < FOLDS + 1:
        chosen = usable[min(1, rung)]
        reason = f"camera '{name}': {len(targets)} views are too few to choose by; {_words(chosen)} taken"
        fitted = fit_lens(sightings, chosen, start=neutral_row(fit.row, chosen, sightings.sizes[0]))
        blank = np.full(len(usable), np.nan)
        return fitted, LensChoice(chosen, usable, blank, blank, reason)
    refitted: list[tuple[Bundle, Columns]] = []
    for model in reversed(usable):  # each from the next richer one
        refitted.insert(0, _refit(refitted[0][0] if refitted else bundle, model, sightings.sizes[0]))
    folds = [targets[fold::FOLDS] for fold in range(FOLDS)]
    scores = np.stack([leave_out(*state, folds)[targets] for state in refitted])
    mean = scores.mean(1)
    best = int(np.argmin(mean))
    gain = np.full(len(usable), np.inf)
    for m in np.flatnonzero(np.isfinite(mean)):
        difference = scores[m] - scores[best]
        error = difference.std(ddof=1) / np.sqrt(len(difference))
        gain[m] = difference.mean() / error if error > 0 else 0.0
    pick = int(np.flatnonzero(gain <= 1.0)[0])
    heldout = np.sqrt(mean)
    reason = f"camera '{name}': {_words(usable[pick])} ({heldout[pick]:.3f} px on unseen views)"
    if pick < len(usable) - 1:
        reason += f"; richer models are not supported by the data (best of them {heldout[pick + 1 :].min():.3f} px)"
    if pick != rung:
        start = fit.solution.bundle.at(refitted[pick][0])
        fit = LensFit(adjust(start, (usable[pick],)), usable[pick])
    return fit, LensChoice(usable[pick], usable, heldout, gain, reason)


def _refit(bundle: Bundle, model: Freedom, size: tuple[int, int]) -> tuple[Bundle, Columns]:
    """Return a camera's bundle at its minimum under another lens model, and the numbering of its parameters."""
    columns = number_columns((model,), 0, len(bundle.points))
    start = replace(bundle, rows=neutral_row(bundle.rows[0], model, size)[None])
    return minimise(start, columns, iterations=15, tolerance=1e-6)[0], columns


def neutral_row(row: Floats, model: Freedom, size: tuple[int, int]) -> Floats:
    """Return the row with what the model does not free at its neutral value."""
    out = row.copy()
    kept = DISTORTIONS[model.distortion]
    for k in range(14):
        if k not in kept:
            out[K1 + k] = 0.0
    if not model.centre:
        out[CX], out[CY] = (size[0] - 1) / 2, (size[1] - 1) / 2
    if model.focal == 1:
        out[FX] = out[FY] = (row[FX] + row[FY]) / 2
    return out


def _words(freedom: Freedom) -> str:
    focal = {0: "fixed focal length", 1: "one focal length", 2: "two focal lengths"}[freedom.focal]
    return f"{focal}, {'free' if freedom.centre else 'central'} principal point, {freedom.distortion}"

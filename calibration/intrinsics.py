"""One camera from its views of boards: a start without a guess, the adjustment, and how many terms the data bear."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calibration.arrays import Bools, Floats, Ints
from calibration.bundle import DISTORTIONS, Bundle, BundleSolution, Freedom, adjust, minimise, number_columns
from calibration.errors import SolveError
from calibration.planar_pose import PlanarPose, planar_poses
from calibration.projection import FISHEYE, PINHOLE, ROW
from calibration.sightings import Sightings

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
    """A camera fitted alone: its solution (identity pose) and the candidate poses of each of its views."""

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
    row[0] = FISHEYE if fisheye else PINHOLE
    row[3], row[4] = (width - 1) / 2, (height - 1) / 2
    row[20] = row[24] = row[28] = 1.0
    row[32] = (np.pi / 2) ** 2 if fisheye else np.inf
    views = _informative_views(sightings, 8)
    points, index = sightings.model_points()
    best, best_error = 0.0, np.inf
    for focal in max(width, height) * np.geomspace(0.2 if fisheye else 0.3, 7.0, 13):
        row[1] = row[2] = focal
        errors = []
        for rows in views:
            poses = planar_poses(row, points[index[rows]] * [1, 1, 0], sightings.pixels[rows])
            errors.append(poses[0].rms_px if poses else np.inf)
        error = float(np.median(errors))
        if error < best_error:
            best, best_error = float(focal), error
    if not np.isfinite(best_error):
        raise SolveError(f"camera '{sightings.cameras[0]}': no focal length explains any of its {len(views)} views")
    row[1] = row[2] = best
    return row


def _informative_views(sightings: Sightings, count: int) -> list[Ints]:
    """Return the rows of up to ``count`` views: those with the strongest perspective, which tell the focal length."""
    points, index = sightings.model_points()
    scored = []
    for key, rows in sightings.views().items():
        if len(rows) < 6 and len(rows) < sightings.boards[key[2]].corners:
            continue
        model, pixels = points[index[rows], :2], sightings.pixels[rows]
        # perspective: how far the best affine map misses
        design = np.column_stack([model, np.ones(len(model))])
        left = pixels - design @ np.linalg.lstsq(design, pixels, rcond=None)[0]
        scored.append((-float(np.sqrt((left**2).sum(1).mean())), key, rows))
    if not scored:
        raise SolveError(
            f"camera '{sightings.cameras[0]}': no view with six corners or more; show the board larger or nearer"
        )
    scored.sort(key=lambda entry: entry[:2])
    return [rows for _, _, rows in scored[:count]]


def view_poses(row: Floats, sightings: Sightings) -> list[tuple[PlanarPose, ...]]:
    """Return the candidate poses of every target of a single camera's sightings."""
    targets = sightings.targets()
    points, index = sightings.model_points()
    order = np.argsort(targets.of_row, kind="stable")
    ends = np.cumsum(np.bincount(targets.of_row, minlength=len(targets)))
    return [planar_poses(row, points[index[rows]], sightings.pixels[rows]) for rows in np.split(order, ends[:-1])]


def _single_bundle(row: Floats, sightings: Sightings) -> tuple[Bundle, Sightings, list[tuple[PlanarPose, ...]]]:
    """Return the bundle of one camera, leaving out views that no pose explains."""
    poses = view_poses(row, sightings)
    solved = np.array([len(p) > 0 for p in poses])
    kept = sightings.where(solved[sightings.targets().of_row])
    poses = [p for p in poses if p]
    if not poses:
        raise SolveError(f"camera '{sightings.cameras[0]}': no view of a board gives a pose")
    targets = kept.targets()
    points, index = kept.model_points()
    bundle = Bundle(
        rows=row[None].copy(),
        rotations=np.stack([p[0].camera_from_board.rotation for p in poses]),
        translations=np.stack([p[0].camera_from_board.translation for p in poses]),
        points=points,
        camera=np.zeros(len(kept), np.int64),
        target=targets.of_row,
        point=index,
        pixels=kept.pixels,
    )
    return bundle, kept, poses


def fit_lens(sightings: Sightings, freedom: Freedom, *, start: Floats | None = None) -> LensFit:
    """Fit the lens of one camera to its sightings, from ``start`` (36,) or from nothing.

    Two stages, focal length and first radial term before the rest; then each view's other planar solution is
    tried with the lens found, and the fit repeated where one wins.
    """
    fisheye = freedom.distortion.startswith("fisheye")
    row = start_row(sightings, fisheye=fisheye) if start is None else start
    bundle, _, _ = _single_bundle(row, sightings)
    first = Freedom(1, False, "fisheye1" if fisheye else "radial1")
    if start is None and freedom.focal:
        columns = number_columns((first,), 0, len(bundle.points))
        bundle, _, _ = minimise(bundle, columns, scale=2.0, iterations=30, tolerance=1e-4)
        # a better lens gives better poses, and may choose the other one of the two
        bundle, _, _ = _single_bundle(bundle.rows[0], sightings)
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
    fold refitted. A richer model wins only where the mean gain per view exceeds its own standard error. ``fit`` is
    the `richest_fit`, if it was made before.
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
    scores = np.stack([_cross_validate(bundle, model, targets, sightings.sizes[0]) for model in usable])
    mean = scores.mean(1)
    best = int(np.argmin(mean))
    gain = np.zeros(len(usable))
    for m in range(len(usable)):
        difference = scores[m] - scores[best]
        error = difference.std(ddof=1) / np.sqrt(len(difference))
        gain[m] = difference.mean() / error if error > 0 else 0.0
    pick = int(np.flatnonzero(gain <= 1.0)[0])
    heldout = np.sqrt(mean)
    reason = f"camera '{name}': {_words(usable[pick])} ({heldout[pick]:.3f} px on unseen views)"
    if pick < len(usable) - 1:
        reason += f"; richer models are not supported by the data (best of them {heldout[pick + 1 :].min():.3f} px)"
    if pick != rung:
        fit = fit_lens(sightings, usable[pick], start=neutral_row(fit.row, usable[pick], sightings.sizes[0]))
    return fit, LensChoice(usable[pick], usable, heldout, gain, reason)


def _cross_validate(bundle: Bundle, model: Freedom, targets: Ints, size: tuple[int, int]) -> Floats:
    """Return the mean squared error per coordinate pair of each target, predicted by a lens not fitted to it."""
    score = np.empty(len(targets))
    columns = number_columns((model,), 0, len(bundle.points))
    nothing = number_columns((Freedom(0, False, "none"),), 0, len(bundle.points))
    start = neutral_row(bundle.rows[0], model, size)
    for fold in range(FOLDS):
        out = np.isin(bundle.target, targets[fold::FOLDS])
        trained, _, _ = minimise(replace(bundle.only(~out), rows=start[None]), columns, iterations=15, tolerance=1e-4)
        tested = replace(bundle.only(out), rows=trained.rows)
        posed, _, _ = minimise(tested, nothing, iterations=15, tolerance=1e-4)
        square = (posed.residuals() ** 2).sum(1)
        for i in range(fold, len(targets), FOLDS):
            score[i] = square[posed.target == targets[i]].mean()
    return score


def neutral_row(row: Floats, model: Freedom, size: tuple[int, int]) -> Floats:
    """Return the row with what the model does not free at its neutral value."""
    out = row.copy()
    kept = DISTORTIONS[model.distortion]
    for k in range(14):
        if k not in kept:
            out[6 + k] = 0.0
    if not model.centre:
        out[3], out[4] = (size[0] - 1) / 2, (size[1] - 1) / 2
    if model.focal == 1:
        out[1] = out[2] = (row[1] + row[2]) / 2
    return out


def _words(freedom: Freedom) -> str:
    focal = {0: "fixed focal length", 1: "one focal length", 2: "two focal lengths"}[freedom.focal]
    return f"{focal}, {'free' if freedom.centre else 'central'} principal point, {freedom.distortion}"


def supported(choice: LensChoice) -> Bools:
    """Return for each rung of the ladder whether the data bear it (it is not richer than the chosen one)."""
    return np.array([i <= choice.ladder.index(choice.freedom) for i in range(len(choice.ladder))])

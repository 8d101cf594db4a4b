"""From sightings of boards to a rig: lenses, first poses, bundle adjustment, and a look at the other solution."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from calibration.boards.co_visibility import co_visibility, require_connected
from calibration.boards.sightings import Sightings
from calibration.bundle.adjustment import Bundle, BundleSolution, adjust, corner_noise, minimise
from calibration.bundle.parameters import DISTORTIONS, Freedom, LensPrior, number_columns
from calibration.cameras.camera import LensCamera
from calibration.cameras.camera_row import DISTORTION, FOCAL, FX, K1, K2, K3, LENS_PARAMETERS, PRINCIPAL_POINT
from calibration.cameras.lens import FisheyeLens, Lens
from calibration.cameras.rig import Rig, duplicate_cameras
from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.errors import InputError, SolveError
from calibration.solving.intrinsics import (
    FISHEYE_LADDER,
    PINHOLE_LADDER,
    LensChoice,
    LensFit,
    choose_lens,
    fit_lens,
    neutral_row,
    richest_fit,
)
from calibration.solving.lenses_together import richer_together
from calibration.solving.planar_pose import camera_from_row
from calibration.solving.pose_graph import first_rig
from calibration.solving.target_poses import place_targets

__all__ = ["RigSolution", "SolveOptions", "StartLenses", "single_camera_priors", "solve_rig", "start_lenses"]

LENSES = ("auto", "pinhole", "fisheye")
LEAST_VIEWS = 3  # two tilted planes leave the focal length open, three do not


@dataclass(frozen=True)
class SolveOptions:
    """What the user wants solved.

    Attributes:
        lens: ``pinhole``, ``fisheye``, or ``auto``: fisheye where it predicts unseen views clearly better.
        distortion: a name in `DISTORTIONS`, or ``auto``: as many terms as the data bear.
        fixed: lenses that are known, by camera name; they are held.
        refine_fixed: use the known lenses as a start only, and free what ``distortion`` says.
        clocks: estimate how late each camera is against the first, from the board's motion; ``auto`` does so
            where the frames beside show that the board moved.
        board_shape: let the corners of the boards move (a board that is bent or printed unevenly).
    """

    lens: str = "auto"
    distortion: str = "auto"
    fixed: dict[str, Lens] = field(default_factory=dict)
    refine_fixed: bool = False
    clocks: str = "auto"
    board_shape: bool = False

    def __post_init__(self) -> None:
        if self.lens not in LENSES:
            raise InputError(f"unknown lens '{self.lens}'; valid are {', '.join(LENSES)}")
        if self.clocks not in ("auto", "on", "off"):
            raise InputError(f"clocks must be auto, on or off, got '{self.clocks}'")
        if self.distortion != "auto" and self.distortion not in DISTORTIONS:
            raise InputError(f"unknown distortion '{self.distortion}'; valid are auto, {', '.join(DISTORTIONS)}")
        fish = self.distortion.startswith("fisheye")
        if self.distortion != "auto" and self.lens != "auto" and fish != (self.lens == "fisheye"):
            raise InputError(f"distortion '{self.distortion}' does not belong to a {self.lens} lens")


@dataclass(frozen=True, eq=False)
class RigSolution:
    """A solved rig, in the frame of its first camera.

    Attributes:
        rig: the cameras.
        bundle: the solution with its covariance.
        sightings: the corners it was solved from, in the order of the bundle's observations.
        freedoms: what was free in each camera.
        choices: how each camera's lens model was chosen (None where it was given).
        notes: what a user should know, one sentence each.
        in_step: False where each lens was taken mainly from its own camera's views (see `single_camera_priors`).
    """

    rig: Rig
    bundle: BundleSolution
    sightings: Sightings
    freedoms: tuple[Freedom, ...]
    choices: tuple[LensChoice | None, ...]
    notes: tuple[str, ...]
    in_step: bool = True


def reversed_share(sightings: Sightings) -> Floats:
    """Return for each camera (c,) the share of its views in which the corners turn the other way round.

    Seen from its printed side a board keeps its sense of rotation in every image; seen from behind, or in a
    mirrored video, it is reversed. NaN for a camera without views.
    """
    points, index = sightings.model_points()
    key = np.stack([sightings.camera, sightings.frame, sightings.board], 1)
    views, which = np.unique(key, axis=0, return_inverse=True)
    which = which.ravel()
    size = np.bincount(which)

    def centred(values: Floats) -> Floats:
        mean = np.stack([np.bincount(which, weights=v) / size for v in values.T], 1)
        return np.asarray(values - mean[which])

    # det of the covariance of board and image coordinates has the sign of the affine map between them
    a, b = centred(points[index, :2]), centred(sightings.pixels)
    cross = [[np.bincount(which, weights=a[:, i] * b[:, j]) for j in range(2)] for i in range(2)]
    reverse = cross[0][0] * cross[1][1] - cross[0][1] * cross[1][0] < 0
    count = np.zeros((2, len(sightings.cameras)))
    np.add.at(count, (reverse.astype(int), views[:, 0]), 1)
    with np.errstate(invalid="ignore"):
        return np.asarray(count[1] / count.sum(0))


def refuse_mirrored(sightings: Sightings) -> None:
    """Raise an error if all cameras see the boards reversed: their world would be mirrored at the same pixel error."""
    share = reversed_share(sightings)
    if len(sightings) and np.nanmin(share) > 0.5:
        raise InputError(
            f"mirrored world: every camera shows the board reversed left to right ({np.nanmin(share):.0%} of the views "
            "or more); the videos were flipped, or the corner order of board.toml is; record them unmirrored"
        )


def refuse_mirrored_camera(bundle: Bundle, used: Sightings, *, limit: float = 5.0) -> list[str]:
    """Tell cameras that look at the back of a see-through board from those whose video was mirrored.

    A mirrored video contradicts the other cameras as soon as the board turns; a view from behind does not.
    Return a note for each camera that looks from behind; raise an error for one whose video was mirrored: its
    corners are off by more than ``limit`` px, and twice as far as those of the others.
    """
    share, notes = reversed_share(used), []
    residual = np.nan_to_num(np.linalg.norm(bundle.residuals(), axis=1), nan=1e3)
    typical = np.array([np.median(residual[used.camera == c]) for c in range(len(used.cameras))])
    for c, name in enumerate(used.cameras):
        if not share[c] > 0.5:
            continue
        others = np.delete(typical, c)
        if typical[c] > limit and typical[c] > 2 * np.median(others):
            raise SolveError(
                f"mirrored camera: '{name}' shows the board reversed and contradicts the other cameras by "
                f"{typical[c]:.0f} px; its video was flipped left to right: record it unmirrored",
                bundle,
            )
        notes.append(f"camera '{name}' sees the board from behind, through its sheet, in {share[c]:.0%} of its views")
    return notes


@dataclass(frozen=True, eq=False)
class StartLenses:
    """First lenses of all cameras, each fitted alone.

    Attributes:
        rows: (c, 36) lenses, their poses without meaning.
        freedoms: what may move in the bundle.
        choices: how the model was chosen, None where it was given.
        singles: the fit of each camera alone, None where its lens was given.
    """

    rows: Floats
    freedoms: tuple[Freedom, ...]
    choices: tuple[LensChoice | None, ...]
    singles: tuple[BundleSolution | None, ...]


def start_lenses(sightings: Sightings, options: SolveOptions) -> StartLenses:
    """Find a lens for each camera alone."""
    rows, freedoms, choices, singles = [], [], [], []
    for c, name in enumerate(sightings.cameras):
        mine = sightings.of_camera(c)
        known = options.fixed.get(name)
        choice: LensChoice | None = None
        single: BundleSolution | None = None
        if known is not None:
            if known.size != sightings.sizes[c]:
                raise InputError(
                    f"camera '{name}': the known lens is for {known.size[0]}x{known.size[1]} px, the footage has "
                    f"{sightings.sizes[c][0]}x{sightings.sizes[c][1]}"
                )
            row, freedom = known.packed(), Freedom(0, False, "none")
            if options.refine_fixed:
                terms = options.distortion
                if terms == "auto":
                    terms = "fisheye4" if isinstance(known, FisheyeLens) else "brown5"
                freedom = Freedom(2, True, terms)
        else:
            views = len(mine.targets())
            if views < LEAST_VIEWS:
                raise InputError(
                    f"camera '{name}': {views} different views of a board cannot give its lens; show at least "
                    f"{LEAST_VIEWS} tilted ones, or give the lens with --intrinsics"
                )
            fit, choice = _fit_lens(mine, options)
            row, freedom, single = fit.row, fit.freedom, fit.solution
        rows.append(row)
        freedoms.append(freedom)
        choices.append(choice)
        singles.append(single)
    return StartLenses(np.stack(rows), tuple(freedoms), tuple(choices), tuple(singles))


#: Where cameras disagree with each other this many times more than with themselves, their own views decide the lens.
OUT_OF_STEP = 2.0


def single_camera_priors(sigma_px: float, singles: tuple[BundleSolution | None, ...]) -> tuple[LensPrior, ...]:
    """Return what each camera's own views say of its lens, where the joint noise ``sigma_px`` is far above its own.

    A board that moves while cameras are out of step misplaces a whole view; within the view the corners stay
    exact. The joint bundle takes that misplacement for noise and would bend the lenses to absorb it. The
    information of the views themselves is added with its own, smaller noise; that it is counted once more with
    the joint noise matters by the square of their ratio only, below a quarter.
    """
    known = [s.sigma_px for s in singles if s is not None]
    if len(singles) < 2 or not known or sigma_px < OUT_OF_STEP * float(np.median(known)):
        return ()
    priors = []
    for c, single in enumerate(singles):
        if single is None:
            continue
        index = single.columns.camera[0, :LENS_PARAMETERS]
        slots = np.array([k for k in range(LENS_PARAMETERS) if index[k] >= 0 and index[k] not in index[:k]], np.int64)
        if not len(slots):
            continue
        covariance = single.covariance[np.ix_(index[slots], index[slots])]
        scale = 1 / np.sqrt(np.diag(covariance))
        inverse = np.linalg.inv(covariance * scale[:, None] * scale) * scale[:, None] * scale
        mean = single.bundle.rows[0, FX + slots]
        priors.append(LensPrior(c, slots, mean, sigma_px**2 * (inverse + inverse.T) / 2))
    return tuple(priors)


def _fit_lens(mine: Sightings, options: SolveOptions) -> tuple[LensFit, LensChoice | None]:
    if options.distortion != "auto":
        return fit_lens(mine, Freedom(2, True, options.distortion)), None
    if options.lens == "fisheye":
        return choose_lens(mine, FISHEYE_LADDER)
    straight = richest_fit(mine, PINHOLE_LADDER)
    pinhole = choose_lens(mine, PINHOLE_LADDER, straight)
    if options.lens == "pinhole" or _bend(straight.row, mine) > -0.05:
        return pinhole  # only a lens that pulls its corners in by a twentieth can be a fisheye
    try:
        bent = richest_fit(mine, FISHEYE_LADDER)
        if bent.solution.sigma_px > 0.95 * straight.solution.sigma_px:
            return pinhole
        fisheye = choose_lens(mine, FISHEYE_LADDER, bent)
    except SolveError:
        return pinhole
    a = pinhole[1].heldout_px[list(pinhole[1].ladder).index(pinhole[1].freedom)]
    b = fisheye[1].heldout_px[list(fisheye[1].ladder).index(fisheye[1].freedom)]
    # clearly better: by a tenth, with no more parameters
    return fisheye if b < 0.9 * a else pinhole


def _bend(row: Floats, mine: Sightings) -> float:
    """Return how far distortion moves the outermost corners of a camera, as a share of their radius; < 0: inwards."""
    radius = np.linalg.norm((mine.pixels - row[PRINCIPAL_POINT]) / row[FOCAL], axis=1)
    rim = float(np.percentile(radius, 95))
    r = rim
    for _ in range(20):  # r (1 + k1 r^2 + ...) = rim, by iteration
        r = rim / max(1 + r * r * (row[K1] + r * r * (row[K2] + r * r * row[K3])), 0.2)
    return rim / r - 1


def solve_rig(
    sightings: Sightings,
    options: SolveOptions | None = None,
    *,
    lenses: StartLenses | None = None,
) -> RigSolution:
    """Solve lenses and poses of all cameras from sightings of boards.

    ``lenses`` (from `start_lenses`) saves finding them again.
    """
    options = options or SolveOptions()
    refuse_mirrored(sightings)
    require_connected(co_visibility(sightings), sightings)
    found = start_lenses(sightings, options) if lenses is None else lenses
    rows, freedoms, choices, singles = found.rows.copy(), found.freedoms, found.choices, found.singles
    for c, freedom in enumerate(freedoms):
        rows[c] = neutral_row(rows[c], freedom, sightings.sizes[c]) if freedom.focal else rows[c]
    if options.clocks == "on" or (options.clocks == "auto" and _board_moves(sightings)):
        freedoms = tuple(replace(freedom, clock=True) for freedom in freedoms)
    bundle, used = first_rig(rows, sightings)
    refuse_mirrored_camera(bundle, used, limit=20.0)
    shape = _shape_freedom(used) if options.board_shape else None
    # the poses first, with the lenses held: a better start, and it shows whether the cameras are in step
    held = tuple(Freedom(0, False, "none", pose=freedom.pose) for freedom in freedoms)
    columns = number_columns(held, 0, len(bundle.points))
    bundle, _, _ = minimise(bundle, columns, scale=2.0, iterations=40, tolerance=1e-4)
    priors = single_camera_priors(corner_noise(bundle), singles)
    solution = adjust(bundle, freedoms, priors=priors)
    solution, used, swapped = _try_other_solutions(solution, used, freedoms, priors)
    again = single_camera_priors(solution.sigma_px, singles)
    if bool(priors) != bool(again):
        priors = again
        solution = adjust(solution.bundle, freedoms, priors=priors, start_px=None)
    told: list[str] = []
    if options.distortion == "auto" and not priors and len(freedoms) > 1:
        solution, freedoms, told = richer_together(solution, freedoms, choices)
    if shape is not None:
        solution = adjust(solution.bundle, freedoms, shape=shape, priors=priors, start_px=None)
    notes = [choice.reason for choice in choices if choice is not None] + told
    if priors:
        notes.append(
            f"the cameras agree with each other ({solution.sigma_px:.2f} px) less than each with itself "
            f"({np.median([s.sigma_px for s in singles if s is not None]):.2f} px): not quite in step, or a "
            "rolling shutter; each lens is therefore taken mainly from its own views"
        )
    notes += refuse_mirrored_camera(solution.bundle, used)
    if swapped:
        notes.append(f"{swapped} board poses were moved to their other planar solution")
    notes += _warnings(solution, used, freedoms)
    return RigSolution(
        rig_of_rows(solution.bundle.rows, used, freedoms), solution, used, freedoms, choices, tuple(notes), not priors
    )


def _board_moves(sightings: Sightings) -> bool:
    """Whether every camera saw enough motion to tell its clock: 20 views or more at half a pixel per frame."""
    if len(sightings.cameras) < 2:
        return False
    for c in range(len(sightings.cameras)):
        mine = sightings.camera == c
        speed = np.linalg.norm(sightings.velocity[mine], axis=1)
        if len(np.unique(sightings.frame[mine][speed > 0.5])) < 20:
            return False
    return True


def _try_other_solutions(
    solution: BundleSolution, used: Sightings, freedoms: tuple[Freedom, ...], priors: tuple[LensPrior, ...]
) -> tuple[BundleSolution, Sightings, int]:
    """Pose every board afresh in the solved rig; where that fits better, take it and solve again."""
    rows = solution.bundle.rows.copy()
    targets = used.targets()
    old = _target_cost(solution.bundle, len(targets))
    if old.max() < 4 * np.median(old):
        return solution, used, 0  # no board fits markedly worse than the others
    rotations, translations, reordered = place_targets(rows, used)
    _, index = reordered.model_points()
    fresh = replace(
        solution.bundle,
        rotations=rotations,
        translations=translations,
        point=index,
    )
    new = _target_cost(fresh, len(targets))
    better = new < 0.5 * old
    if not better.any():
        return solution, used, 0
    row_better = better[targets.of_row]
    mixed = replace(
        solution.bundle,
        rotations=np.where(better[:, None, None], fresh.rotations, solution.bundle.rotations),
        translations=np.where(better[:, None], fresh.translations, solution.bundle.translations),
        point=np.where(row_better, index, solution.bundle.point),
    )
    used = replace(used, corner=np.where(row_better, reordered.corner, used.corner))
    return adjust(mixed, freedoms, priors=priors), used, int(better.sum())


def _target_cost(bundle: Bundle, count: int) -> Floats:
    square = (bundle.residuals() ** 2).sum(1)
    capped = np.where(np.isfinite(square), np.minimum(square, 64.0), 64.0)
    total = np.bincount(bundle.target, weights=capped, minlength=count)
    return np.asarray(total / np.maximum(np.bincount(bundle.target, minlength=count), 1))


def _shape_freedom(sightings: Sightings) -> Floats:
    """Return (p, 3) 1 where a corner may move: all but what fixes each board's frame and scale."""
    free, start = [], 0
    seen = np.unique(sightings.model_points()[1])
    for board in sightings.boards:
        mask = np.ones((board.corners, 3))
        across, down = board.grid
        first, right, below = 0, across - 1, across * (down - 1)
        if board.kind == "aprilgrid":
            first, right, below = 0, 4 * (board.columns - 1) + 1, 4 * board.columns * (board.rows - 1) + 3
        mask[first] = mask[right] = 0.0  # origin, direction of x, and the scale
        mask[right, 2] = 0.0
        mask[below, 2] = 0.0
        unseen = ~np.isin(np.arange(start, start + board.corners), seen)
        mask[unseen] = 0.0
        free.append(mask)
        start += board.corners
    return np.concatenate(free)


def rig_of_rows(rows: Floats, sightings: Sightings, freedoms: tuple[Freedom, ...]) -> Rig:
    """Return the rig of solved camera rows."""
    cameras: list[LensCamera] = []
    for c, name in enumerate(sightings.cameras):
        used = np.flatnonzero(rows[c, DISTORTION])
        least = int(used.max()) + 1 if len(used) else 0
        cameras.append(
            camera_from_row(rows[c], sightings.sizes[c], name, next(n for n in (5, 8, 12, 14) if n >= least))
        )
    return Rig(tuple(cameras))


def _warnings(solution: BundleSolution, used: Sightings, freedoms: tuple[Freedom, ...]) -> list[str]:
    """Return what looks wrong with a solved rig although its pixel error may be low."""
    notes = []
    bundle = solution.bundle
    rig = rig_of_rows(bundle.rows, used, freedoms)
    for c, camera in enumerate(rig):
        assert isinstance(camera, LensCamera)
        width, height = camera.size
        corner = np.array([[0.0, 0.0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]])
        if not np.isfinite(camera.undistort_points(corner)).all():
            notes.append(
                f"camera '{camera.name}': its distortion folds over before the image corners, where no board was "
                "shown; nothing can be measured there"
            )
        out = 1 - solution.inlier[bundle.camera == c].mean()
        if out > 0.1:
            notes.append(f"camera '{camera.name}': {out:.0%} of its corners were left out as outliers")
        centre = camera.lens.intrinsics[:2, 2]
        if (np.abs(centre - (np.array(camera.size) - 1) / 2) > 0.15 * np.array(camera.size)).any():
            notes.append(
                f"camera '{camera.name}': principal point ({centre[0]:.0f}, {centre[1]:.0f}) lies far from the image "
                "centre; the views may not determine it"
            )
    duplicates = duplicate_cameras(rig)
    notes += [f"cameras '{a}' and '{b}' have the same pose: one is a copy of the other" for a, b in duplicates]
    return notes


def frames_seen_together(sightings: Sightings) -> Ints:
    """Return the frames in which at least two cameras saw the same board, ascending."""
    targets = sightings.targets()
    seen = np.zeros((len(targets), len(sightings.cameras)), np.bool_)
    seen[targets.of_row, sightings.camera] = True
    return np.unique(targets.frame[seen.sum(1) >= 2])

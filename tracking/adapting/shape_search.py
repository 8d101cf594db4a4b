"""Lengths and girths of a subject from the silhouettes of a few frames, together with its poses in them.

The same outline energy as in tracking is minimised over the logarithms of the lengths and girths of a few parts of the
built-in body (`tracking.subjects.shape`) and over the poses of all frames. In each round the poses are fitted to the
body as it is; then one Gauss-Newton step is taken in the shape, the poses eliminated (Schur complement): a longer limb
moves the quads beyond it, a thicker one moves the surface around them. Outlines of one body err together, so that the
numbers are held to what is known of bodies (`tracking.adapting.proportions`), the more the less the frames say.
Then the skin is moved to the outlines, vertex by vertex (`tracking.adapting.skin_search`). Frames that the steps never
saw decide whether the new body is kept, and its skin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError
from calibration.foundation.once import once
from tracking.adapting.adaptation import Adaptation
from tracking.adapting.garment_search import find_skirt, measured_skirt
from tracking.adapting.looseness import outline_looseness
from tracking.adapting.proportions import known_of_bodies, known_of_stout_bodies
from tracking.adapting.scale_search import Found, make_solver, refined_scale
from tracking.adapting.shape_poses import found_anew, keeping_up, mean_overlap, plain_fits, refitted, settled
from tracking.adapting.skin_search import fit_skin
from tracking.fitting.settings import COMMON, Settings
from tracking.fitting.solver import FrameFit, FrameSolver
from tracking.observations.contours import Observation
from tracking.quads.oriented_quads import QuadPose, QuadRig
from tracking.quads.template import body_unit
from tracking.subjects.garments import WEARERS, Skirt, dressed
from tracking.subjects.motion_transfer import transferred
from tracking.subjects.shape import BodyShape
from tracking.subjects.shaped import Shaped, Shaper
from tracking.subjects.skin import SkinMover, loosened
from tracking.subjects.subject import Subject, scaled_subject

__all__ = ["Adaptation", "adapt_shape", "adapt_to_clothes"]

ROUNDS = ((90.0, 60.0, 60.0), (60.0, 45.0, 45.0), (60.0, 32.0, 32.0), (45.0, 24.0, 24.0), (32.0, 20.0, 20.0))
"""Robust scales of the poses' fits in each round, and (the last) of the step in shape; thousandths of the size."""
FEWER = ROUNDS[::2]
"""The same where the body is built like the built-in one: there is less to go."""
SETTLED = 0.02
"""A largest step of a logarithm that makes the next round the last."""
MOST = 0.15
"""Largest step of a logarithm in one round."""
LONGER = 1e-3
"""Growth of a length's logarithm for its derivative."""
FEWEST = 4
"""Frames without which nothing is estimated."""
POOR, STOUT_POOR = 0.82, 0.70
"""Overlap below which a frame says nothing of the shape, however few there are; and with one of several builds, whose
girths are not the animal's yet: the cylinder's mouse has 0.72 to 0.80 with its build where it stands right."""
GAIN, SKIN_GAIN = 0.003, 0.006
"""Rise of the overlap in held-out frames below which the plain body stays, and below which the shaped body keeps its
own skin: a person who is built like the body gains nothing by it, and its joints wander a little."""
DRESSINGS, WORN = 3, 0.01
"""How often poses and measures of a skirt take turns, and rise of the overlap below which none is worn."""


# Thirteen parameters: a recording, a body, and keywords of what else is known of it.
def adapt_shape(
    builtin: Subject,
    rig: Rig,
    observe: Callable[[int], Observation],
    frames: Sequence[int],
    *,
    scale: float,
    up: Floats,
    known: Sequence[Found] = (),
    fixed_lengths: bool = False,
    settings: Settings | None = None,
    build: BodyShape | None = None,
    skirt: Skirt | None = None,
    more: Sequence[int] = (),
    thorough: bool = False,
) -> Adaptation:
    """Estimate the shape of a subject.

    Args:
        builtin: built-in subject of its own size.
        rig: cameras.
        observe: gives the silhouettes of a frame.
        frames: frames to look at, well spread; those in which the plain body fits badly are left out.
        scale: size of the subject against the built-in body.
        up: vertical, world axes.
        known: where the subject was found already.
        fixed_lengths: lengths are known to be those of ``scale``: only girths are estimated.
        settings: of the solver.
        build: shape to begin with, ``scale`` in it; None for the built-in body.
        skirt: that the subject wears, roughly; None to look whether it wears one.
        more: frames that are looked at too where ``frames`` show too little: in a skirt, where some fit badly.
        thorough: all rounds are gone through, as for a body of another build: there is further to go.
    """
    # Lengths are what is asked for: bones keep theirs in all frames, in the units of an energy that counts outlines too
    # often. In a track they do so as loosely as the cage carries joints.
    settings = replace(settings or Settings(), bone_weight=COMMON**2)
    looks = {int(frame): observe(int(frame)) for frame in frames}
    start = BodyShape.uniform(builtin.body, scale) if build is None else build
    shaper = Shaper(builtin)
    begun = None if build is None else shaper.make(build).subject
    body = begun or scaled_subject(builtin, scale)
    starts = plain_fits(make_solver(dressed(body, skirt), rig, settings), rig, looks, known, up)
    if skirt is None:
        skirt, starts = _worn(body, rig, looks, starts, up, settings)
    else:
        skirt, starts = _measured_on(body, skirt, rig, looks, starts, settings)
    if skirt is not None and not fixed_lengths and build is None:
        scale, skirt, starts = _resized(builtin, skirt, scale, rig, looks, starts, settings)
        start, body = BodyShape.uniform(builtin.body, scale), scaled_subject(builtin, scale)
    if skirt is not None:
        begun = dressed(body, skirt)
    poor = POOR if build is None else STOUT_POOR
    if _too_few(starts, skirt, poor):
        others = {int(frame): observe(int(frame)) for frame in more if int(frame) not in looks}
        looks |= others
        starts |= plain_fits(make_solver(dressed(body, skirt), rig, settings), rig, others, (), up)
    bare_person = builtin.body in WEARERS and skirt is None and build is None
    if bare_person and len(starts) >= FEWEST and not fixed_lengths and _too_few(starts, None, poor):
        scale, starts = _resized_bare(builtin, scale, rig, looks, starts, settings)
        start = BodyShape.uniform(builtin.body, scale)
    fitted, held = _chosen(starts, poor)
    few = f"only {len(fitted)} frames show it well enough, {FEWEST} are needed"
    unknown = np.full(len(start.logs), np.nan)
    # Of a size that was given nothing is known yet but these fits; where no shape comes of them they still tell where
    # the subject is, and what else the silhouettes may hold.
    seen = tuple(known) or tuple(Found(f, fit.pose, fit.latent, np.nan, fit.agreement) for f, fit in starts.items())
    nothing = Adaptation(start, begun, fitted, held, np.nan, np.nan, few, seen, unknown, skirt=skirt)
    if len(fitted) < FEWEST or not held:
        return nothing
    try:
        poses = {frame: starts[frame] for frame in fitted}
        stiffness = known_of_bodies(builtin.body)
        if build is not None:
            expected = settings.contour_sigma * body_unit(body.outline_template)
            stiffness = known_of_stout_bodies(builtin.body, [fit.residual for fit in poses.values()], expected)
        held_to = partial(_search, start=start, stiffness=stiffness, fixed_lengths=fixed_lengths, settings=settings)
        rounds = ROUNDS if thorough or build is not None else FEWER
        search = partial(held_to, shaper, rig, looks, rounds=rounds, along=build is not None)
        shaped, sigma, skirt = search(poses, skirt)
        wear, wanted = partial(dressed, skirt=skirt), {*fitted, *held, *(item.frame for item in known)} & set(starts)
        before = mean_overlap(starts, held)
        starts = {frame: starts[frame] for frame in sorted(wanted)}
        plain = refitted(wear(shaped.subject), rig, looks, starts, settings)
        if bare_person:
            again = found_anew(shaped.subject, rig, looks, plain, up, settings)
            enough = keeping_up(again, fitted)
            if again != plain and len(enough) >= FEWEST:
                fitted = enough
                shaped, sigma, _ = search({frame: again[frame] for frame in fitted}, None, begun=shaped)
                plain = refitted(shaped.subject, rig, looks, again, settings)
    except InputError as error:  # so far from the built-in body that its cage cannot hold the shape
        return replace(nothing, why=str(error))
    if extreme := shaped.shape.extremes:
        why = f"the silhouettes ask for the impossible ({', '.join(extreme)} at the limit); they may hold more than it"
        return replace(nothing, why=why)
    mover = SkinMover(shaped.subject)
    skin, fleshed = _with_skin(mover, rig, looks, plain, fitted, settings, wear)
    overlaps = [mean_overlap(ends, held) for ends in (plain, fleshed)]
    with_skin = _keeps_skin(*overlaps, stout=build is not None)
    after, out, ends = (overlaps[1], skin, fleshed) if with_skin else (overlaps[0], None, plain)
    if after < before + GAIN:
        return replace(nothing, before=before, after=after, why="the overlap in frames held out would not rise")
    subject, spread = shaped.subject if out is None else mover.moved(out), None
    if builtin.body in WEARERS and replace(nothing, shape=shaped.shape).loosely_dressed:
        spread = outline_looseness(make_solver(wear(subject), rig, settings), looks, ends)
        subject = loosened(subject, spread)
    leads = {item.frame: item.lead for item in known}
    found = [Found(f, fit.pose, fit.latent, leads.get(f, np.nan), fit.agreement) for f, fit in ends.items()]
    return Adaptation(
        shaped.shape, wear(subject), fitted, held, before, after, "", tuple(found), sigma, out, skirt, spread
    )


def adapt_to_clothes(
    adapt: Callable[..., Adaptation], observe: Callable[[int], Observation], frames: Sequence[int], more: Sequence[int]
) -> Adaptation:
    """Estimate the shape of a subject from some frames, and of one who turns out loosely dressed from more of them.

    Args:
        adapt: `adapt_shape` with all else that it needs.
        observe: gives the silhouettes of a frame.
        frames: frames to look at.
        more: these and others; nothing for animals.
    """
    adapted = adapt(observe, frames, more=more)
    if len(more) <= len(frames) or not adapted.loosely_dressed:
        return adapted
    with_all = adapt(observe, more, thorough=True)
    return adapted if with_all.why else with_all


def _keeps_skin(plain: float, fleshed: float, *, stout: bool) -> bool:
    """Return whether a skin of its own is kept, by the overlap in held-out frames without it and with it.

    An animal of another build than the body has another skin too: two frames need not gain by it, only not lose.
    """
    return fleshed >= plain + (0.0 if stout else SKIN_GAIN)


def _too_few(starts: dict[int, FrameFit], skirt: Skirt | None, poor: float) -> bool:
    """Return whether more frames are wanted.

    Of a body that fits most frames more of them tell no more; cloth hides it in some, and then all are wanted.
    """
    fitted, held = _chosen(starts, poor)
    if skirt is not None:
        return len(fitted) + len(held) < len(starts)
    return len(fitted) < FEWEST or not held


def _worn(
    body: Subject, rig: Rig, looks: dict[int, Observation], bare: dict[int, FrameFit], up: Floats, settings: Settings
) -> tuple[Skirt | None, dict[int, FrameFit]]:
    """Find the skirt that a body wears, if any, and where the body is with it; ``bare`` is where it is without."""
    skirt = find_skirt(body, rig, looks, bare)
    if skirt is None:
        return None, bare
    skirt, fits = _measured_on(body, skirt, rig, looks, bare, settings)
    # Without the skirt the body may have been found anywhere, turned round or with crossed legs.
    anew = plain_fits(make_solver(dressed(body, skirt), rig, settings), rig, looks, (), up)
    fits = {frame: max(fit, anew.get(frame, fit), key=lambda one: one.score) for frame, fit in fits.items()}
    skirt = measured_skirt(body, skirt, rig, looks, fits, settings)
    gain = np.median([fits[frame].agreement - bare[frame].agreement for frame in fits])
    return (skirt, fits) if gain > WORN else (None, bare)


def _measured_on(
    body: Subject,
    skirt: Skirt,
    rig: Rig,
    looks: dict[int, Observation],
    fits: dict[int, FrameFit],
    settings: Settings,
) -> tuple[Skirt, dict[int, FrameFit]]:
    """Let poses and measures of a skirt take turns."""
    for _ in range(DRESSINGS):
        fits = refitted(dressed(body, skirt), rig, looks, fits, settings)
        skirt = measured_skirt(body, skirt, rig, looks, fits, settings)
    return skirt, refitted(dressed(body, skirt), rig, looks, fits, settings)


def _resized(
    builtin: Subject,
    skirt: Skirt,
    scale: float,
    rig: Rig,
    looks: dict[int, Observation],
    fits: dict[int, FrameFit],
    settings: Settings,
) -> tuple[float, Skirt, dict[int, FrameFit]]:
    """Find the size once more: bare, or in a skirt of other measures, it came out too large or too small."""
    seen = [looks[frame] for frame in fits]
    scale, found = refined_scale(dressed(builtin, skirt), rig, seen, list(fits.values()), scale, 0.05)
    body = scaled_subject(builtin, scale)
    return scale, *_measured_on(body, skirt, rig, looks, dict(zip(fits, found, strict=True)), settings)


def _resized_bare(
    builtin: Subject,
    scale: float,
    rig: Rig,
    looks: dict[int, Observation],
    fits: dict[int, FrameFit],
    settings: Settings,
) -> tuple[float, dict[int, FrameFit]]:
    """Find the size once more in all frames: that of two may be far off where they show a body bent double."""
    seen = [looks[frame] for frame in fits]
    scale, found = refined_scale(builtin, rig, seen, list(fits.values()), scale, 0.05)
    again = dict(zip(fits, found, strict=True))
    return scale, refitted(scaled_subject(builtin, scale), rig, looks, again, settings)


def _with_skin(
    mover: SkinMover,
    rig: Rig,
    looks: dict[int, Observation],
    fits: dict[int, FrameFit],
    fitted: Sequence[int],
    settings: Settings,
    wear: Callable[[Subject], Subject],
) -> tuple[Floats, dict[int, FrameFit]]:
    """Learn the skin from the frames to estimate from, and fit all frames with it; ``wear`` dresses the body."""
    learn = partial(fit_skin, mover, rig, looks, {frame: fits[frame] for frame in fitted}, settings, wear=wear)
    skin, _ = once("skin", learn)
    return skin, refitted(wear(mover.moved(skin, whole=False)), rig, looks, fits, settings)


def _chosen(fits: dict[int, FrameFit], poor: float) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Frames to estimate from, and every third to decide by: those that fit about as well as the best.

    Lively motion fits unevenly: as many frames as are needed are taken, the best ones, if they fit at all.
    """
    if not fits:
        return (), ()
    best = max(fit.agreement for fit in fits.values())
    order = sorted(fits, key=lambda frame: -fits[frame].agreement)
    needed = set(order[: FEWEST + FEWEST // 2])
    good = sorted(
        frame
        for frame, fit in fits.items()
        if fit.agreement > best - 0.06 or (frame in needed and fit.agreement > poor)
    )
    return tuple(f for k, f in enumerate(good) if k % 3 != 1), tuple(good[1::3])


# Eleven parameters: a recording, a body, and keywords of what holds it.
def _search(
    shaper: Shaper,
    rig: Rig,
    looks: dict[int, Observation],
    fits: dict[int, FrameFit],
    skirt: Skirt | None,
    *,
    start: BodyShape,
    stiffness: Floats,
    fixed_lengths: bool,
    settings: Settings,
    rounds: Sequence[tuple[float, ...]],
    along: bool,
    begun: Shaped | None = None,
) -> tuple[Shaped, Floats, Skirt | None]:
    """Alternate fits of the poses and steps in shape, and in the skirt's; ``stiffness`` (K, K) holds to ``start``.

    An animal of another build is no longer where it was found as its shape changes: a larger one stands otherwise, and
    would stay as large. So its poses are looked for ``along`` the manifold too.
    ``begun`` is what a search in other poses came to, and where this one begins.
    """
    body, count = start.body, len(start.lengths)
    middle = start.logs
    free = np.arange(count if fixed_lengths else 0, len(middle))
    fields = shaper.girth_fields(start)
    shaped = shaper.make(start if begun is None else begun.shape, whole=False)
    covariance = np.full((len(middle), len(middle)), np.nan)
    turn, final = 0, len(rounds) - 1
    while turn <= final:
        robust = rounds[turn]
        solver = make_solver(dressed(shaped.subject, skirt), rig, replace(settings, robust=robust))
        logs = shaped.shape.logs
        # The flesh grows with the factor, so its derivative by the logarithm does too.
        grown = np.exp(logs - middle)[count:, None, None] * fields
        longer = [shaper.lengthened(shaped, part, step=LONGER) for part in start.lengths]
        anew = along and 0 < turn < final
        measure = partial(_measured, solver, looks, fits, shaped, grown, longer, anew)
        fits, more_hessian, more_gradient = once("shape", measure)
        if skirt is not None:
            skirt = measured_skirt(shaped.subject, skirt, rig, looks, fits, settings)
        hessian, gradient = stiffness + more_hessian, stiffness @ (logs - middle) + more_gradient
        step = np.zeros(len(logs))
        covariance = np.linalg.inv(hessian[np.ix_(free, free)])
        step[free] = np.clip(-covariance @ gradient[free], -MOST, MOST)
        last = turn == final
        shaped = shaper.make(BodyShape.from_logs(body, logs + step), whole=last)
        turn = turn + 1 if last or np.abs(step).max() > SETTLED else max(turn + 1, final)
    sigma = np.zeros(len(middle))
    sigma[free] = COMMON * np.sqrt(np.diag(covariance))
    return shaped, sigma, skirt


def _measured(
    solver: FrameSolver,
    looks: dict[int, Observation],
    fits: dict[int, FrameFit],
    shaped: Shaped,
    grown: Floats,
    longer: list[QuadRig],
    anew: bool,
) -> tuple[dict[int, FrameFit], Floats, Floats]:
    """Fit the poses once more, ``anew`` along the manifold too, and sum what they say of the shape.

    Returns:
        The fits, and Hessian and gradient of the shape.
    """
    moved: dict[int, FrameFit] = {}
    hessian, gradient = np.zeros(()), np.zeros(())
    vertices = len(solver.template.vertices)
    for frame, before in fits.items():
        if anew:
            before = settled(solver, looks[frame], before.pose, before.latent)
        moved[frame] = solver.fit(looks[frame], before.pose, before.latent, latent_steps=False)
    shifts = _shifts(shaped.subject.cage_rig.quads, longer, [fit.pose for fit in moved.values()])
    for (frame, fit), shift in zip(moved.items(), shifts, strict=True):
        more = solver.shape_system(looks[frame], fit, *_effects(shaped, fit.pose, grown, shift, vertices))
        hessian, gradient = hessian + more[0], gradient + more[1]
    return moved, hessian, gradient


def _effects(shaped: Shaped, pose: QuadPose, grown: Floats, shifts: Floats, vertices: int) -> tuple[Floats, Floats]:
    """How each number of the shape moves the outline template (K, V, 3) and the quads (6 Q, K) of a posed body.

    Args:
        shaped: the body. pose: its quads.
        grown: (K_girth, V, 3) derivative of the template at rest by the girths' logarithms.
        shifts: (K_length, Q, 3) derivative of the quads' centres by the lengths' logarithms.
        vertices: of the template with what the body wears, which goes with the quads alone.
    """
    subject = shaped.subject
    rig = subject.cage_rig.quads
    carriers = subject.cage_rig.carriers(pose)
    local = shaped.gradients @ carriers  # (3, V, 3): where the rest axes go
    by_girth = np.einsum("kvi,ivj->kvj", grown, local)
    count = len(shifts)
    fields = np.zeros((count + len(by_girth), vertices, 3))
    fields[count:, : by_girth.shape[1]] = by_girth
    moves = np.zeros((len(rig), 6, len(fields)))
    moves[:, 3:, :count] = shifts.transpose(1, 2, 0)
    return fields, moves.reshape(-1, len(fields))


def _shifts(rig: QuadRig, longer: Sequence[QuadRig], poses: Sequence[QuadPose]) -> Floats:
    """(T, K, Q, 3) how the quads' centres move in each pose with the logarithm of each length, the root in its place.

    ``longer`` are the quads at rest with each part lengthened.
    """
    rotations, centres = (np.stack([getattr(pose, name) for pose in poses]) for name in ("rotations", "centres"))
    shifts = np.empty((len(poses), len(longer), len(rig), 3))
    for index, other in enumerate(longer):
        moved = transferred(rig, other, rotations, centres).centres
        root = centres[:, rig.root] - moved[:, rig.root]
        shifts[:, index] = (moved + root[:, None] - centres) / LONGER
    return shifts

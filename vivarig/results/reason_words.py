"""What each reason for doubt means and what to do about it, in words for people; report and viewer say the same."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ReasonWords", "reason_words"]


@dataclass(frozen=True)
class ReasonWords:
    """One reason.

    Attributes:
        means: what is the matter.
        do: what to try first.
    """

    means: str
    do: str


_WORDS = {
    "too few views": ReasonWords(
        "fewer than two cameras see the subject",
        "Look at the silhouettes of this stretch; paint what is missing, or say that it is lost here.",
    ),
    "low agreement": ReasonWords(
        "the outline of the tracked surface and the silhouettes differ",
        "If the silhouettes are wrong, mend them; if they are right, set a key pose here.",
    ),
    "one view disagrees": ReasonWords(
        "one camera's silhouette does not fit what the others show",
        "Mend that camera's silhouettes or drop the camera in this stretch; if it is so everywhere, see Cameras.",
    ),
    "far from prior": ReasonWords(
        "a pose unlike any that the body is known to take",
        "True if the picture shows it; else set a key pose here.",
    ),
    "jump": ReasonWords(
        "the body moved much farther than usual from one frame to the next",
        "Look for missing video frames; else set a key pose after the jump.",
    ),
    "ambiguous start": ReasonWords(
        "another pose explains the frame that tracking started from as well",
        "Set a key pose there, or start elsewhere: --set track.start=FRAME.",
    ),
    "not tracked": ReasonWords(
        "no pose was found", "Look at the silhouettes of this stretch: is the subject in them, and in two cameras?"
    ),
    "parts disagree": ReasonWords(
        "two parts that were tracked for themselves do not meet",
        "Set a key pose on the side that the picture shows wrong.",
    ),
    "implausible body": ReasonWords(
        "the fitted size is none that such a body has",
        "Check the subject's name and the unit of the calibration; something else in the silhouettes (a chair)?",
    ),
    "a limb": ReasonWords("a limb is not trusted", "See that limb."),
    "in empty air": ReasonWords(
        "it lies where the cameras see no subject",
        "If the silhouette is cut off, paint it; if the limb is elsewhere, set a key pose.",
    ),
    "unexplained near": ReasonWords(
        "the silhouettes show something beside it that the body does not explain",
        "Erase it if it is not the subject; else set a key pose.",
    ),
    "outline off": ReasonWords(
        "its outline runs beside the silhouettes'",
        "Look whether the silhouettes' edge is right; if so, the subject's shape may not be (vivarig subject).",
    ),
    "ambiguous limb": ReasonWords(
        "another place of it explains the images as well",
        "Set a key pose if you can tell; else treat it as unknown.",
    ),
    "hidden": ReasonWords(
        "fewer than two views show it apart from the rest", "Treat it as unknown; a camera from another side helps."
    ),
    "one sided": ReasonWords(
        "it is seen from one side only, so its depth is not known",
        "Treat its depth as unknown; a camera from another side helps.",
    ),
    "said by hand": ReasonWords(
        "somebody who looked said so (edits.toml)", "Nothing; take the edit back if it is wrong."
    ),
    "loose clothes": ReasonWords(
        "a skirt covers it, or it is far thicker than the rest of the body: loose clothes hide where its joints are",
        "Treat its joints as unknown, or film in close clothes.",
    ),
    "turn untold": ReasonWords(
        "rolled, or nodded, in place it explains the images as well",
        "Treat its roll, or the nod of the head, as unknown; set a key pose if you can tell.",
    ),
    "foot unseen": ReasonWords(
        "fewer than two views show its foot, which stands where feet of such a body stand as a rule",
        "Treat the foot as unknown; a camera that sees under the animal helps.",
    ),
    "facing untold": ReasonWords(
        "neither head nor tail is seen where the body has them: it may face the other way",
        "Look which way the animal faces; set a key pose if it is wrong.",
    ),
}


def reason_words(reason: str) -> ReasonWords:
    """Return what a reason of ``track.h5`` means; of one that is not known here, its own words."""
    return _WORDS.get(reason, ReasonWords(reason, "Look at the picture; set a key pose or say that it is lost here."))

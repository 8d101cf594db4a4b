"""Which of the looks that a place has over a recording is the ground, by movement and by neighbours seen together.

A subject may rest on a place for most of the time, so neither the commonest nor the brightest look is the ground.
Images are looked at in cells of a few pixels. Each cell has a few looks that last (modes). Two things tell them apart:
a look of the subject comes together with movement nearby (a resting animal breathes, grooms and turns), the ground's
look with movement elsewhere; and looks of neighbouring cells seen in the same image without an edge between them belong
together. With s = +1 for the ground and -1 for the subject the labels minimise

    sum_t sum_(a, b) w_t(a, b) (s_a - s_b)^2 + sum_a u_a (s_a - m_a)^2,   s = 1 on ground that never changes

over neighbouring looks a, b seen at time t (a random walker, Grady 2006, on looks instead of pixels): w falls with the
contrast between them, m is the look's movement against the cell's other looks. It is one sparse linear system.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.ndimage import label
from scipy.sparse.linalg import cg

from calibration.foundation.arrays import Bools, Bytes, Floats, Singles
from calibration.foundation.compiled import compiled
from capture.backgrounds.background import NoiseCurve
from capture.backgrounds.medians import median_and_spread

__all__ = ["CellLooks", "cell_looks", "cells_of", "labelled_ground", "steady_outside", "tolerance_of"]

#: Cells along the image's longer side, at most.
_CELLS = 256
_LOOKS = 5
#: Values belong together within this many standard deviations of the noise.
_BELONGS = 4.0
#: A look must have been seen in this share of the images, and as often at least.
_LASTING, _LEAST = 0.04, 2
#: A cell never changes if it is near its median in this share of the images.
_STEADY = 0.95
#: Contrast, in standard deviations of the noise, over which two looks cease to belong together.
_CONTRAST = 2.0
#: Noise of a cell is not taken for less than this, grey levels: a codec rounds it away.
_LEAST_SIGMA = 1.5
#: Movement, in standard deviations; its weight. It is felt as far as this share of the side of a square as large as
#: what changes in an image, within these limits, cells; less on-the-spot movement than this share is none.
_MOVES = 6.0
_MOVEMENT = 0.1
_FELT = 0.3
_NEVER_STOPS = 0.25
_LEAST_FELT, _MOST_FELT = 4.0, 30.0
#: A look that a cell has in more than this share of the images, and how much that weighs.
_NEARLY_ALWAYS = 0.75
_USUALLY = 0.3
#: Labels of subject and ground in one cell differ by this at least; cells that must have had both.
_APART = 0.3
_CELLS_WITH_BOTH = 20
#: A look that is darker than another of the ground by a factor in this range, the same in all channels, is its shade.
_SHADE = (0.4, 0.97)
_SHADE_TINT = 0.06


@dataclass(frozen=True, eq=False)
class CellLooks:
    """The looks of an image's cells over a recording.

    Attributes:
        means: (K, h, w, C) grey levels, the commonest first.
        counts: (K, h, w) images in which it was seen; 0 where a cell has fewer looks.
        which: (n, h, w) which look a cell has in each image; -1: one that does not last.
    """

    means: Singles
    counts: NDArray[np.int32]
    which: NDArray[np.int8]


def cells_of(image: Bytes) -> Bytes:
    """Return (h, w, C) the cells of an image (H, W, C), averaged."""
    height, width, channels = image.shape
    side = max(1, -(-max(height, width) // _CELLS))
    size = (-(-width // side), -(-height // side))
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA).reshape(size[1], size[0], channels))


def tolerance_of(noise: NoiseCurve) -> Singles:
    """Return (256,) how far from a look a cell of each brightness may be to have it, grey levels."""
    sigma = np.maximum(noise.at(np.arange(256, dtype=np.float32)), np.float32(1.0))
    return np.asarray(np.float32(_BELONGS) * sigma)


def cell_looks(cells: Bytes, noise: NoiseCurve) -> CellLooks:
    """Return the looks that last of cells (n, h, w, C) in images under one light."""
    count, height, width, channels = cells.shape
    means = np.zeros((_LOOKS, height, width, channels), np.float32)
    counts = np.zeros((_LOOKS, height, width), np.int32)
    which = np.empty((count, height, width), np.int8)
    _gather(cells, tolerance_of(noise), means, counts, which)
    fleeting = counts < max(_LEAST, _LASTING * count)
    fleeting[0] = False
    counts[fleeting] = 0
    for k in range(_LOOKS):
        which[(which == k) & fleeting[k]] = -1
    return CellLooks(means, counts, which)


@compiled
def _gather(
    cells: Bytes, tolerance: Singles, means: Singles, counts: NDArray[np.int32], which: NDArray[np.int8]
) -> None:
    """Take the value with the most others near it as a look, with those near; again among what is left."""
    images, height, width, channels = cells.shape
    near = np.empty((images, images), np.bool_)
    left = np.empty(images, np.bool_)
    for y in range(height):
        for x in range(width):
            for i in range(images):
                left[i] = True
                which[i, y, x] = -1
                for j in range(i, images):
                    alike = True
                    for c in range(channels):
                        a, b = np.int32(cells[i, y, x, c]), np.int32(cells[j, y, x, c])
                        if abs(a - b) > tolerance[max(a, b)]:
                            alike = False
                            break
                    near[i, j] = alike
                    near[j, i] = alike
            for k in range(means.shape[0]):
                best, most = -1, 0
                for i in range(images):
                    if left[i]:
                        others = 0
                        for j in range(images):
                            if left[j] and near[i, j]:
                                others += 1
                        if others > most:
                            best, most = i, others
                if best < 0:
                    break
                counts[k, y, x] = most
                for j in range(images):
                    if left[j] and near[best, j]:
                        left[j] = False
                        which[j, y, x] = k
                        for c in range(channels):
                            means[k, y, x, c] += np.float32(cells[j, y, x, c]) / np.float32(most)


def _movement(cells: Singles, sigma: Singles) -> Singles:
    """Return (n, h, w) how much moves near each cell in each image.

    What differs from the images before *and* after moves on its place; what a subject left or came to differs from one
    of them only. A subject that never stops shows the latter alone.
    """
    change = np.abs(np.diff(cells, axis=0)).max(axis=3) > np.float32(_MOVES) * sigma[1:]
    change = np.concatenate([change[:1], change, change[-1:]])
    both, either = change[:-1] & change[1:], change[:-1] | change[1:]
    amount = float(np.median(np.count_nonzero(either, axis=(1, 2))))
    felt = min(max(_FELT * np.sqrt(amount), _LEAST_FELT), _MOST_FELT)
    moves = either if both.sum() < _NEVER_STOPS * either.sum() else both
    return np.stack([cv2.GaussianBlur(m.astype(np.float32), (0, 0), felt) for m in moves])


def _texture(cells: Singles) -> np.float32:
    """Return the scene's usual contrast between neighbouring cells, grey levels: texture is no edge."""
    scene = cells[len(cells) // 2]
    return np.float32(np.median(np.sqrt(np.square(np.diff(scene, axis=1)).mean(axis=2))))


def _neighbours(cells: Singles, sigma: Singles, which: NDArray[np.int8], node: NDArray[np.int64]) -> sparse.csr_matrix:
    """Return the symmetric weights between the looks of neighbouring cells seen together."""
    images, height, width, _ = cells.shape
    total = int(node.max()) + 1
    weights = sparse.csr_matrix((total, total))
    rows, columns = np.mgrid[:height, :width]
    for down, right in ((0, 1), (1, 0)):
        here = (slice(0, height - down), slice(0, width - right))
        there = (slice(down, height), slice(right, width))
        both = sparse.csr_matrix((total, total))
        # Image by image: the ends of all at once would be the largest thing held while a camera is learnt.
        for image, look in zip(cells, which, strict=True):
            contrast = np.sqrt(np.square(image[here] - image[there]).mean(axis=2)) / (_CONTRAST * sigma[here])
            seen = (look[here] >= 0) & (look[there] >= 0)
            first = node[look[here], rows[here], columns[here]][seen]
            second = node[look[there], rows[there], columns[there]][seen]
            values = (np.exp(-0.5 * contrast[seen] ** 2) + 1e-3) / images
            both = both + sparse.coo_matrix((values, (first, second)), shape=(total, total)).tocsr()
        weights = weights + both
    return weights + weights.T


def _labels(cells: Bytes, looks: CellLooks, scene: Bools, noise: NoiseCurve) -> Floats:
    """Return (K, h, w) the labels s of all looks, -inf where there is none."""
    count = len(cells)
    level: Singles = cells.astype(np.float32)
    sigma = np.maximum(noise.at(level.max(axis=3)), np.float32(_LEAST_SIGMA))
    moves = _movement(level, sigma)
    lasting = looks.counts > 0
    near = np.zeros(lasting.shape)
    for k in range(len(near)):
        near[k] = (moves * (looks.which == k)).sum(axis=0) / np.maximum(looks.counts[k], 1)
    least = np.where(lasting, near, np.inf).min(axis=0)
    most = np.where(lasting, near, -np.inf).max(axis=0)
    wanted = 1.0 - 2.0 * (near - least) / np.maximum(most - least, 1e-6)
    several = np.count_nonzero(lasting, axis=0) > 1
    share = looks.counts / count
    weight = _MOVEMENT * several * (most - least) / (most + least + 0.02) * share
    # Besides, what a cell shows nearly always is more likely its ground.
    usual = _USUALLY * share * (several & (share[0] > _NEARLY_ALWAYS))
    wanted = (weight * wanted + usual * np.where(share > _NEARLY_ALWAYS, 1.0, -1.0)) / (weight + usual + 1e-9)
    weight = weight + usual
    node = np.zeros(lasting.shape, dtype=np.int64)
    node[lasting] = np.arange(np.count_nonzero(lasting))
    links = _neighbours(level, np.maximum(np.median(sigma, axis=0), _texture(level)), looks.which, node)
    fixed = np.zeros(lasting.shape)
    # What never changes and is not surrounded by what does belongs to the scene.
    fixed[0] = 10.0 * scene
    diagonal = np.asarray(links.sum(axis=1)).ravel() + (weight + fixed)[lasting] + 1e-6
    system = (sparse.diags(diagonal) - links).tocsr()
    solution, _ = cg(
        system, (weight * wanted + fixed)[lasting], rtol=1e-4, maxiter=1000, M=sparse.diags(1.0 / diagonal)
    )
    labels = np.full(lasting.shape, -np.inf)
    labels[lasting] = solution
    return labels


def _in_full_light(looks: CellLooks, labels: Floats) -> NDArray[np.int64]:
    """Return (h, w) the look of the ground: the likeliest, or a lighter likely one of which that is the shade."""
    best = labels.argmax(axis=0)
    for k in range(len(labels)):
        chosen = np.take_along_axis(looks.means, best[None, :, :, None], axis=0)[0]
        ratio = chosen / np.maximum(looks.means[k], np.float32(1.0))
        even = ratio.max(axis=2) - ratio.min(axis=2) < _SHADE_TINT
        shade = even & (ratio.min(axis=2) > _SHADE[0]) & (ratio.max(axis=2) < _SHADE[1])
        best = np.where(shade & (labels[k] > 0), k, best)
    return np.asarray(best)


def _between(labels: Floats) -> float:
    """Return the label between subject and ground: half-way between the looks of cells that had both."""
    least = np.where(np.isfinite(labels), labels, np.inf).min(axis=0)
    most = labels.max(axis=0)
    both = most - least > _APART
    return float(np.median((most + least)[both]) / 2) if np.count_nonzero(both) >= _CELLS_WITH_BOTH else 0.0


def steady_outside(cells: Bytes, noise: NoiseCurve) -> Bools:
    """Return (h, w) the cells of images (n, h, w, C) that never change, connected to the image's border.

    ``noise``: that of cells. With the larger one of pixels the outline of a subject that hardly stirs would not change
    either, and what is inside of it would be connected to the border.
    """
    centre, _, _ = median_and_spread(cells)
    tolerance = tolerance_of(noise)[np.rint(centre).astype(np.uint8)]
    usual = sum((np.abs(cell - centre) <= tolerance).all(axis=2).astype(np.int32) for cell in cells)
    steady = np.asarray(usual >= _STEADY * len(cells))
    # A gap of a cell between what is steady inside and outside of a place that changes is no connection.
    steady = cv2.erode(steady.view(np.uint8), np.ones((3, 3), np.uint8)).view(np.bool_)
    parts, _ = label(steady)
    outer = np.unique(np.concatenate([parts[0], parts[-1], parts[:, 0], parts[:, -1]]))
    return np.asarray(steady & np.isin(parts, outer[outer > 0]))


def labelled_ground(cells: Bytes, looks: CellLooks, scene: Bools, noise: NoiseCurve) -> tuple[Singles, Bools]:
    """Return (h, w, C) the ground of cells (n, h, w, C) in images of one camera under one light, and where it shows.

    ``scene``: (h, w) cells that are sure to be ground (`steady_outside`).
    """
    labels = _labels(cells, looks, scene, noise)
    best = _in_full_light(looks, labels)
    shows = np.take_along_axis(labels, best[None], axis=0)[0] > _between(labels)
    return np.take_along_axis(looks.means, best[None, :, :, None], axis=0)[0], np.asarray(shows)

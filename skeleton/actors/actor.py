"""Actors: a body with skin, flesh and bones, for the studio and for templates.

The skin of a built-in body is a shipped mesh in its bind pose; a subject with other lengths and girths is
the same mesh moved onto its own flesh, so that all actors of a body share faces, weights and marker vertices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.errors import InputError
from calibration.geometry.meshes import vertex_normals
from skeleton.actors.bones import Bone, build_bones
from skeleton.actors.meshing import project, relax
from skeleton.actors.shapes import (
    Flesh,
    Shapes,
    bind_pose,
    field,
    field_and_gradient,
    load_flesh,
    nearest_shape,
    shapes_from_tables,
)
from skeleton.actors.shipped_meshes import shipped_mesh
from skeleton.actors.skinning import dual_quaternions, heat_weights, skin_frames, strongest, vertex_areas
from skeleton.actors.tissue import Tissue, add_tissue, build_tissue, inflate, tissue_drives, volumes
from skeleton.bodies import load_body
from skeleton.tree.joint_tree import Pose, Skeleton

__all__ = ["Actor", "Beads", "build_actor", "sample_actor", "thickened"]

#: Segments that may move one skin vertex.
INFLUENCES = 6


@dataclass(frozen=True, eq=False)
class Beads:
    """Metal beads implanted in bones: ``names``, ``segments`` (B,) and ``offsets`` (B, 3) in those frames, mm."""

    names: tuple[str, ...]
    segments: Ints
    offsets: Floats

    def positions(self, pose: Pose) -> Floats:
        """Return world positions (T, B, 3), mm."""
        return pose.points(self.segments, self.offsets)


@dataclass(frozen=True, eq=False)
class Actor:
    """A body that can be posed.

    Attributes:
        body: "mouse", "rat" or "human".
        skeleton: the subject's own joint tree.
        faces: (F, 3) closed skin, outward, the same for all actors of a body.
        bind_vertices: (V, 3) skin in the bind pose, mm.
        bind: pose in which it was built.
        segments, weights: (V, K) what moves each vertex, strongest first.
        tissue: soft tissue model.
        length: (J,) length factors against the built-in body; girth: (J,) thickness factors.
        marker_names, marker_vertices: virtual markers on the skin.
        implanted_beads: metal beads in the bones.
    """

    body: str
    skeleton: Skeleton
    faces: Ints
    bind_vertices: Floats
    bind: Pose
    segments: Ints
    weights: Floats
    tissue: Tissue
    length: Floats
    girth: Floats
    marker_names: tuple[str, ...]
    marker_vertices: Ints
    implanted_beads: Beads

    @property
    def virtual_markers(self) -> tuple[tuple[str, ...], Ints]:
        """Marker names and their skin vertices (M,)."""
        return self.marker_names, self.marker_vertices

    @cached_property
    def bones(self) -> tuple[Bone, ...]:
        """Closed bone meshes, each rigid on one segment."""
        return build_bones(self.body, self.skeleton, self.length)

    @cached_property
    def bind_normals(self) -> Floats:
        return vertex_normals(self.bind_vertices, self.faces)

    @cached_property
    def rest_vertices(self) -> Floats:
        """(V, 3) skin in the rest pose, without breath, mm."""
        return np.asarray(self.skin(self.skeleton.forward(self.skeleton.rest()))[0])

    @cached_property
    def _rest_volume(self) -> float:
        skin, _ = self._skinned(self.skeleton.forward(self.skeleton.rest()))
        return float(volumes(skin, self.faces)[0])

    def _skinned(self, pose: Pose) -> tuple[Floats, Floats]:
        """Return dual-quaternion skin and turned normals (T, V, 3)."""
        if pose.positions.shape[1] != len(self.skeleton.joints):
            raise InputError(
                f"actor '{self.body}' has {len(self.skeleton.joints)} joints, the pose has "
                f"{pose.positions.shape[1]}: this is the motion of another skeleton"
            )
        turn = pose.rotations @ np.swapaxes(self.bind.rotations, -1, -2)
        shift = pose.positions - np.einsum(
            "tjik,tjk->tji", turn, np.broadcast_to(self.bind.positions, pose.positions.shape)
        )
        motions = dual_quaternions(turn, shift)
        shape = (len(pose), len(self.bind_vertices), 3)
        out, turned = np.empty(shape), np.empty(shape)
        skin_frames(self.bind_vertices[None], self.bind_normals, self.segments, self.weights, motions, out, turned)
        return out, turned

    def skin(self, pose: Pose, time_s: Floats | None = None) -> Floats:
        """Return the skin (T, V, 3) of a pose, mm; ``time_s`` (T,) drives the breath, none if absent."""
        out, normals = self._skinned(pose)
        tissue = self.tissue
        bulge, slide = tissue_drives(tissue, self.skeleton, pose)
        add_tissue(out, normals, tissue.bulge_masks, bulge, tissue.slide_masks, slide)
        # What folds and bulges took or added is given back where the flesh is soft: tissue is nearly incompressible.
        missing = self._rest_volume - volumes(out, self.faces)
        height = tissue.soft_share * missing / tissue.soft_area
        inflate(out, normals, tissue.soft_mask, tissue.soft_limit * np.tanh(height / tissue.soft_limit))
        if time_s is not None:
            phase = 2 * np.pi * tissue.breath_hz * np.asarray(time_s, dtype=np.float64)
            if phase.shape != (len(pose),):
                raise InputError(f"time_s must be ({len(pose)},), got {phase.shape}")
            for mask, lag in zip(tissue.breath_masks, (0.0, 0.6), strict=True):
                inflate(out, normals, mask, 0.5 * tissue.breath_mm * np.sin(phase - lag))
        return out


@dataclass(frozen=True, eq=False)
class _Nominal:
    """The mesh of a built-in body: bind pose vertices, faces, dense weights (V, J), marker vertices."""

    vertices: Floats
    faces: Ints
    weights: Floats
    marker_names: tuple[str, ...]
    marker_vertices: Ints


def _depths(vertices: Floats, owner: Ints, shapes: Shapes, packed: Floats) -> Floats:
    """Return each vertex's distance (V,) to the axis or centre of the shape that owns it, mm."""
    start, end = packed[owner, 2:5], packed[owner, 5:8]
    axis = end - start
    share = np.einsum("vi,vi->v", vertices - start, axis) / np.maximum((axis**2).sum(1), 1e-12)
    foot = start + np.clip(share, 0.0, 1.0)[:, None] * axis
    return np.asarray(np.linalg.norm(vertices - foot, axis=1))


@cache
def _nominal(body: str) -> _Nominal:
    skeleton, flesh = load_body(body), load_flesh(body)
    ones = np.ones(len(skeleton.joints))
    shapes = shapes_from_tables(flesh.skin, skeleton, ones, np.ones(len(flesh.skin)))
    bind = bind_pose(skeleton, flesh)
    packed = shapes.posed(bind)
    vertices, faces = shipped_mesh(body)
    owner = nearest_shape(vertices, packed)
    depth = _depths(vertices, owner, shapes, packed)
    weights = heat_weights(
        vertices, faces, shapes.segments[owner], depth, len(skeleton.joints), float(flesh.tissue["heat"])
    )
    names, chosen = [], []
    normals = vertex_normals(vertices, faces)
    for marker in flesh.markers:
        s = skeleton.index(marker["segment"])
        origin = bind.positions[0, s] + bind.rotations[0, s] @ np.array(marker.get("offset", [0, 0, 0]), float)
        direction = bind.rotations[0, s] @ np.array(marker["direction"], float)
        direction /= np.linalg.norm(direction)
        away = vertices - origin
        along = away @ direction
        aside = np.linalg.norm(away - along[:, None] * direction, axis=1)
        # The vertex nearest to the ray, on the side that looks along it, the nearer of two crossings.
        cost = aside + 0.05 * along + np.where((along < 0) | (normals @ direction < 0.1), 1e6, 0.0)
        names.append(str(marker["name"]))
        chosen.append(int(cost.argmin()))
    return _Nominal(vertices, faces, weights, tuple(names), np.array(chosen, dtype=np.int64))


def build_actor(
    body: str,
    *,
    lengths: Mapping[str, float] | float = 1.0,
    girth: Mapping[str, float] | float = 1.0,
    asymmetry: float = 0.0,
    seed: int = 0,
    near: float = 0.0,
) -> Actor:
    """Build an actor of a built-in body.

    Args:
        body: "mouse", "rat" or "human".
        lengths: length factor of all segments, or per joint name (others 1).
        girth: thickness factor of all flesh, or per joint name (others 1).
        asymmetry: standard deviation of the relative thickness of single shapes (0.02: 2 %), seeded.
        seed: of the asymmetry.
        near: how near to its surface the skin of another shape comes, in cells of its mesh; 0: to the last digit.
    """
    nominal, flesh, base = _nominal(body), load_flesh(body), load_body(body)
    skeleton = base.scaled(lengths)
    length = _factors(base, lengths, "lengths")
    thick = _factors(base, girth, "girth")
    rng = np.random.default_rng([seed, 77])
    wobble = np.exp(asymmetry * np.clip(rng.normal(size=len(flesh.skin)), -2, 2))
    owners = np.array([base.index(table["segment"]) for table in flesh.skin])
    shapes = shapes_from_tables(flesh.skin, skeleton, length, thick[owners] * wobble)
    bind = bind_pose(skeleton, flesh)
    vertices = nominal.vertices
    if not (np.allclose(length, 1) and np.allclose(thick, 1) and asymmetry == 0):
        vertices = _morphed(nominal, base, flesh, length, bind, shapes.posed(bind), near)
    segments, weights = strongest(nominal.weights, INFLUENCES)
    tissue = build_tissue(
        flesh.tissue,
        skeleton,
        bind,
        vertices,
        vertex_areas(vertices, nominal.faces),
        nominal.weights,
        float(length.mean()),
    )
    carriers = np.array([skeleton.index(table["segment"]) for table in flesh.beads], dtype=np.int64)
    offsets = np.array([table["offset"] for table in flesh.beads], dtype=np.float64)
    beads = Beads(tuple(t["name"] for t in flesh.beads), carriers, offsets * length[carriers][:, None])
    return Actor(
        body=body,
        skeleton=skeleton,
        faces=nominal.faces,
        bind_vertices=vertices,
        bind=bind,
        segments=segments,
        weights=weights,
        tissue=tissue,
        length=length,
        girth=thick,
        marker_names=nominal.marker_names,
        marker_vertices=nominal.marker_vertices,
        implanted_beads=beads,
    )


def _morphed(
    nominal: _Nominal, base: Skeleton, flesh: Flesh, length: Floats, bind: Pose, packed: Floats, near: float
) -> Floats:
    """Move the built-in mesh onto a subject's flesh: with its segments, stretched, then onto the new surface."""
    old = bind_pose(base, flesh)
    vertices = np.zeros_like(nominal.vertices)
    for j in range(len(base.joints)):
        w = nominal.weights[:, j]
        moved = bind.positions[0, j] + length[j] * (nominal.vertices - old.positions[0, j])
        vertices += w[:, None] * moved
    vertices = project(vertices, packed, flesh.voxel_mm, steps=8, near=near)
    vertices = relax(vertices, nominal.faces, packed, flesh.voxel_mm, rounds=2)
    return project(vertices, packed, flesh.voxel_mm, near=near)


def thickened(actor: Actor, girths: Iterable[Mapping[str, float]]) -> list[Actor]:
    """Return actors with girths a little different from one's own, in a fraction of the time that building them takes.

    Their skin moves along its normals as far as the surface of the flesh does there, to first order; tissue stays.

    Args:
        actor: built without asymmetry.
        girths: thickness factors per joint name (others 1), of each of the actors.
    """
    base, flesh = load_body(actor.body), load_flesh(actor.body)
    owners = np.array([base.index(table["segment"]) for table in flesh.skin])

    def packed(thick: Floats) -> Floats:
        return shapes_from_tables(flesh.skin, actor.skeleton, actor.length, thick[owners]).posed(actor.bind)

    now, slope = field_and_gradient(actor.bind_vertices, packed(actor.girth), 0.02 * flesh.voxel_mm)
    steepness = np.maximum((slope**2).sum(axis=1), 0.05)[:, None]
    others = []
    for girth in girths:
        thick = _factors(base, girth, "girth")
        rise = now - field(actor.bind_vertices, packed(thick))
        moved = rise[:, None] * slope / steepness
        others.append(replace(actor, bind_vertices=actor.bind_vertices + moved, girth=thick))
    return others


def _factors(skeleton: Skeleton, value: Mapping[str, float] | float, what: str) -> Floats:
    if isinstance(value, Mapping):
        out = np.ones(len(skeleton.joints))
        for name, factor in value.items():
            out[skeleton.index(name)] = factor
    else:
        out = np.full(len(skeleton.joints), float(value))
    # A stout animal of a large strain is 1.9 times as thick for its size, and twice the size.
    if not (np.isfinite(out) & (out > 0.2) & (out < 4.0)).all():
        raise InputError(f"{what}: factors must be between 0.2 and 4, got {out.min():g} to {out.max():g}")
    return out


def sample_actor(body: str, seed: int) -> Actor:
    """Return an actor that deviates from the built-in body: lengths +-8 %, girth +-10 %, left unlike right.

    One overall factor, one per part of the body and a small one per segment and side; clipped to those bounds.
    """
    skeleton = load_body(body)
    rng = np.random.default_rng([seed, 3])
    whole, part = rng.uniform(-0.04, 0.04), {}
    thick_whole, lengths, girth = rng.uniform(-0.06, 0.06), {}, {}
    for name in skeleton.joint_names:
        key = name.removeprefix("left_").removeprefix("right_").rstrip("_0123456789")
        if key not in part:
            part[key] = (rng.uniform(-0.03, 0.03), rng.uniform(-0.03, 0.03))
        lengths[name] = 1 + float(np.clip(whole + part[key][0] + rng.normal(0, 0.006), -0.08, 0.08))
        girth[name] = 1 + float(np.clip(thick_whole + part[key][1] + rng.normal(0, 0.008), -0.10, 0.10))
    return build_actor(body, lengths=lengths, girth=girth, asymmetry=0.015, seed=seed)

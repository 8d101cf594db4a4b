"""USD (.usd, .usda, .usdc): a surface that changes from frame to frame, and a skeleton in motion.

The surface is a mesh whose points are sampled once per frame, or one that the skeleton carries; the skeleton a
`UsdSkel` skeleton with its animation. Millimetres and z up, as here: a stage says its own unit and axis. One time code
is one frame of the recording.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.errors import InputError
from calibration.foundation.files import written_by_library
from calibration.geometry.transforms import rotation_from_quaternion
from skeleton.motion_files.motions import JointMotion
from skeleton.motion_files.optional import optional_package
from vivarig.export.skinning import Skin

__all__ = ["USD_SUFFIXES", "write_usd"]

USD_SUFFIXES = (".usd", ".usda", ".usdc")


def write_usd(
    path: Path,
    frames: Ints,
    surface: tuple[Iterator[Floats] | Skin, Ints],
    motion: JointMotion | None,
    *,
    rate_hz: float,
    name: str,
    limbs: tuple[tuple[str, ...], Ints] | None = None,
) -> None:
    """Write a moving surface, with a moving skeleton if there is one.

    Args:
        path: file to write.
        frames: (T,) frame numbers, rising.
        surface: T vertices (V, 3), mm, z up, all finite, or a skin on the skeleton; and faces (F, 3).
        motion: skeleton in motion of the same frames, mm, z up.
        rate_hz: frames per second.
        name: of the scene.
        limbs: names (L,) and trust (T, L) of limbs, 0 to 2.
    """
    usd = {part: optional_package(f"pxr.{part}", "USD", extra="usd") for part in ("Usd", "UsdGeom", "Vt", "Tf")}
    geometry, array = usd["UsdGeom"], usd["Vt"]
    stage = usd["Usd"].Stage.CreateInMemory()
    geometry.SetStageMetersPerUnit(stage, 0.001)
    geometry.SetStageUpAxis(stage, geometry.Tokens.z)
    stage.SetTimeCodesPerSecond(rate_hz)
    stage.SetFramesPerSecond(rate_hz)
    stage.SetStartTimeCode(float(frames[0]))
    stage.SetEndTimeCode(float(frames[-1]))
    top = f"/{usd['Tf'].MakeValidIdentifier(name or 'recording')}"
    stage.SetDefaultPrim(geometry.Xform.Define(stage, top).GetPrim())
    vertices, faces = surface
    skinned = isinstance(vertices, Skin)
    # What a skeleton carries must lie under its root.
    mesh = geometry.Mesh.Define(stage, f"{top}/skeleton/surface" if skinned else f"{top}/surface")
    mesh.CreateSubdivisionSchemeAttr(geometry.Tokens.none)
    mesh.CreateFaceVertexCountsAttr(array.IntArray.FromNumpy(np.full(len(faces), 3, np.int32)))
    mesh.CreateFaceVertexIndicesAttr(array.IntArray.FromNumpy(np.ascontiguousarray(faces, np.int32).ravel()))
    points, extent = mesh.CreatePointsAttr(), mesh.CreateExtentAttr()
    if isinstance(vertices, Skin):
        points.Set(array.Vec3fArray.FromNumpy(np.ascontiguousarray(vertices.vertices, np.float32)))
    for frame, here in () if isinstance(vertices, Skin) else zip(frames, vertices, strict=True):
        values = np.ascontiguousarray(here, np.float32)
        points.Set(array.Vec3fArray.FromNumpy(values), float(frame))
        extent.Set(array.Vec3fArray.FromNumpy(np.stack([values.min(axis=0), values.max(axis=0)])), float(frame))
    if motion is not None:
        _add_skeleton(stage, top, frames, motion, (mesh.GetPrim(), vertices) if isinstance(vertices, Skin) else None)
    if limbs is not None:
        _add_trust(stage, frames, *limbs)
    with written_by_library(path) as temporary:
        if not stage.GetRootLayer().Export(str(temporary)):
            raise InputError(f"{path}: could not be written; is there room on the disk?")


def _add_trust(stage: Any, frames: Ints, names: tuple[str, ...], trust: Ints) -> None:
    """Say of every frame which limbs are trusted (0), doubtful (1) or lost (2)."""
    types = optional_package("pxr.Sdf", "USD", extra="usd").ValueTypeNames
    prim = stage.GetDefaultPrim()
    prim.CreateAttribute("vivarig:limbs", types.TokenArray).Set(list(names))
    attribute = prim.CreateAttribute("vivarig:limbTrust", types.IntArray)
    for row, frame in enumerate(frames):
        attribute.Set([int(value) for value in trust[row]], float(frame))


def _add_skeleton(stage: object, top: str, frames: Ints, motion: JointMotion, carried: tuple[Any, Skin] | None) -> None:
    bones = optional_package("pxr.UsdSkel", "USD", extra="usd")
    array = optional_package("pxr.Vt", "USD", extra="usd")
    root = bones.Root.Define(stage, f"{top}/skeleton")
    skeleton = bones.Skeleton.Define(stage, f"{top}/skeleton/bones")
    animation = bones.Animation.Define(stage, f"{top}/skeleton/motion")
    paths: list[str] = []
    for joint, parent in enumerate(motion.parents):
        paths.append(motion.names[joint] if parent < 0 else f"{paths[parent]}/{motion.names[joint]}")
    places = motion.offsets[None] + motion.shifts
    local = np.tile(np.eye(4), (len(paths), 1, 1))  # rows are vectors: USD multiplies from the left
    local[:, :3, :3] = rotation_from_quaternion(motion.rotations[0]).transpose(0, 2, 1)
    local[:, 3, :3] = places[0]
    world = local.copy()
    for joint, parent in enumerate(motion.parents):
        if parent >= 0:
            world[joint] = local[joint] @ world[parent]
    skeleton.CreateJointsAttr(paths)
    skeleton.CreateRestTransformsAttr(array.Matrix4dArray.FromNumpy(local))
    if carried is not None:
        world = np.ascontiguousarray(carried[1].bones.transpose(0, 2, 1))
    skeleton.CreateBindTransformsAttr(array.Matrix4dArray.FromNumpy(world))
    animation.CreateJointsAttr(paths)
    shifts, turns = animation.CreateTranslationsAttr(), animation.CreateRotationsAttr()
    animation.CreateScalesAttr(array.Vec3hArray.FromNumpy(np.ones((len(paths), 3), np.float16)))
    imaginary_first = motion.rotations[..., [1, 2, 3, 0]].astype(np.float32)
    for row, frame in enumerate(frames):
        shifts.Set(array.Vec3fArray.FromNumpy(np.ascontiguousarray(places[row], np.float32)), float(frame))
        turns.Set(array.QuatfArray.FromNumpy(np.ascontiguousarray(imaginary_first[row])), float(frame))
    binding = bones.BindingAPI.Apply(skeleton.GetPrim())
    binding.CreateAnimationSourceRel().SetTargets([animation.GetPath()])
    bones.BindingAPI.Apply(root.GetPrim())
    if carried is not None:
        prim, skin = carried
        held = bones.BindingAPI.Apply(prim)
        held.CreateSkeletonRel().SetTargets([skeleton.GetPath()])
        held.CreateJointIndicesPrimvar(False, 4).Set(array.IntArray.FromNumpy(skin.joints.astype(np.int32).ravel()))
        held.CreateJointWeightsPrimvar(False, 4).Set(
            array.FloatArray.FromNumpy(skin.weights.astype(np.float32).ravel())
        )

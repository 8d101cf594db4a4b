"""netCDF data sets in the convention of the `movement` package: position (time, space, keypoints,
individuals)."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from calibration.foundation.errors import InputError
from calibration.foundation.files import write_bytes
from calibration.foundation.hdf5_files import open_hdf5
from skeleton.motion_files.motions import MarkerSeries, millimetres_per
from skeleton.motion_files.optional import optional_package
from skeleton.motion_files.rates import rate_from_times

__all__ = ["read_movement", "write_movement"]

_LARGEST_CLASSIC = 1 << 29


def dataset_from_markers(series: MarkerSeries, *, individual: str = "individual_0") -> Any:
    """Return an xarray.Dataset in the movement convention (units and vertical axis as attributes)."""
    xarray = optional_package("xarray", "netCDF in the movement convention")
    space = ["x", "y", "z"] if series.unit == "mm" else ["x", "y"]
    confidence = series.confidence
    if confidence is None:
        confidence = np.full(series.positions.shape[:2], np.nan)
    beside = {}
    if series.sigma is not None:
        beside["sigma"] = (("time", "keypoints", "individuals"), np.asarray(series.sigma[..., None]), {"units": "mm"})
    return xarray.Dataset(
        data_vars={
            "position": (
                ("time", "space", "keypoints", "individuals"),
                np.asarray(series.positions.transpose(0, 2, 1)[..., None]),
                {"units": series.unit},
            ),
            "confidence": (("time", "keypoints", "individuals"), np.asarray(confidence[..., None])),
            **beside,
        },
        coords={
            "time": series.times(), "space": space, "keypoints": list(series.names), "individuals":
            [individual],
        },
        attrs={
            "ds_type": "poses", "fps": series.rate_hz, "time_unit": "seconds", "source_software": "vivarig",
            "space_unit": series.unit, "up_axis": series.up,
        },
    )  # fmt: skip


def markers_from_dataset(
    dataset: Any,
    who: str,
    *,
    individual: str | None = None,
    unit_mm: float | None = None,
    rate_hz: float | None = None,
) -> MarkerSeries:
    """Return the points of one animal of a movement poses data set."""
    if "position" not in dataset or not {"time", "space", "keypoints"} <= set(dataset["position"].dims):
        raise InputError(f"{who}: not a movement poses data set (no position over time, space, keypoints)")
    position, scores, stated = dataset["position"], dataset.get("confidence", None), dataset.get("sigma", None)
    if "individuals" in position.dims:
        animals = [str(name) for name in dataset["individuals"].values]
        if individual is None and len(animals) > 1:
            raise InputError(f"{who}: holds several animals ({', '.join(animals)}); pass individual")
        chosen = animals[0] if individual is None else individual
        if chosen not in animals:
            raise InputError(f"{who}: no animal '{chosen}'; the data set has {', '.join(animals)}")
        position = position.isel(individuals=animals.index(chosen))
        scores = None if scores is None else scores.isel(individuals=animals.index(chosen))
        stated = None if stated is None else stated.isel(individuals=animals.index(chosen))
    values = np.asarray(position.transpose("time", "keypoints", "space").values, dtype=np.float64)
    flat = values.shape[-1] == 2
    if not flat:
        unit = str(position.attrs.get("units", dataset.attrs.get("space_unit", "")))
        if not unit and unit_mm is None:
            raise InputError(f"{who}: 3D positions without a unit; pass unit_mm")
        values = values * (millimetres_per(unit, who) if unit_mm is None else unit_mm)
    times = np.asarray(dataset["time"].values, dtype=np.float64)
    if rate_hz is None:
        if "fps" in dataset.attrs and dataset.attrs["fps"] is not None:
            rate_hz = float(dataset.attrs["fps"])
        elif dataset.attrs.get("time_unit") == "frames":
            raise InputError(f"{who}: time is in frames and no fps is stored; pass rate_hz")
        else:
            rate_hz = rate_from_times(times, who)
    confidence = None if scores is None else np.asarray(scores.transpose("time", "keypoints").values, dtype=np.float64)
    sigma = None if stated is None else np.asarray(stated.transpose("time", "keypoints").values, dtype=np.float64)
    in_frames = dataset.attrs.get("time_unit") == "frames"
    start = float(times[0]) / (rate_hz if in_frames else 1.0) if len(times) else 0.0
    return MarkerSeries(
        tuple(str(name) for name in dataset["keypoints"].values), values, rate_hz, unit="px" if flat else
        "mm",
        up="" if flat else str(dataset.attrs.get("up_axis", "")), start_s=start, sigma=sigma,
        confidence=None if confidence is None or np.isnan(confidence).all() else confidence,
    )  # fmt: skip


def read_movement(
    path: Path | str,
    *,
    individual: str | None = None,
    unit_mm: float | None = None,
    rate_hz: float | None = None,
) -> MarkerSeries:
    """Read a netCDF file saved by movement or by `write_movement`."""
    if not Path(path).is_file():
        raise InputError(f"{path}: no such file")
    xarray = optional_package("xarray", "reading netCDF")
    if _is_hdf5(Path(path)):
        with open_hdf5(path, "a netCDF file"):  # looked through before xarray believes it
            pass
    elif Path(path).stat().st_size > _LARGEST_CLASSIC:
        raise InputError(f"{path}: a netCDF 3 file of more than {_LARGEST_CLASSIC >> 20} MB; save it as netCDF 4")
    with xarray.open_dataset(path, decode_times=False) as dataset:
        return markers_from_dataset(dataset.load(), str(path), individual=individual, unit_mm=unit_mm, rate_hz=rate_hz)


def _is_hdf5(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(8) == b"\x89HDF\r\n\x1a\n"


def write_movement(series: MarkerSeries, path: Path | str, *, individual: str = "individual_0") -> None:
    """Write a netCDF file that movement loads with ``xarray.open_dataset``."""
    optional_package("h5netcdf", "writing netCDF")
    stream = io.BytesIO()  # in memory: HDF5 crashes the process when a full disk meets its closing
    dataset_from_markers(series, individual=individual).to_netcdf(stream, engine="h5netcdf")
    write_bytes(path, stream.getvalue())

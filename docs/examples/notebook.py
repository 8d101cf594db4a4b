"""From videos to numbers in Python: run cell by cell (``# %%``) in an editor or notebook, or as a whole:

python docs/examples/notebook.py mouse_07
"""

# %% Open a recording: the folder with recording.toml
import sys
from pathlib import Path

import numpy as np
from matplotlib import pyplot

import vivarig

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "demo/mouse")
recording = vivarig.open_recording(folder)
print(f"{recording.name}: {len(recording.footage)} cameras at {recording.rate_hz:g} Hz, subject {recording.subject}")

# %% Run all stages; what is done already is kept
for outcome in vivarig.run(folder):
    print(f"{outcome.name}: {outcome.status}, {outcome.seconds:.1f} s of work")

# %% Look at the arrays: millimetres, seconds, NaN = not observed
results = vivarig.load_results(folder)
assert results.skeleton is not None and results.track is not None and results.hull is not None
positions = results.skeleton.positions  # (T, J, 3)
sigma = results.skeleton.sigma  # (T, J), 1 sigma, mm
trusted = results.track.trust == 0  # (T,)
print(f"{len(positions)} frames, {positions.shape[1]} joints, {100 * trusted.mean():.0f} % of frames trusted")
print(f"a joint is known to {np.nanmedian(sigma):.2f} mm (median 1 sigma, by the fit itself)")
print(f"hull: median volume {np.median(results.hull.volume) / 1000:.1f} ml")

# %% Speed of the root joint, over trusted frames alone
steps = np.linalg.norm(np.diff(positions[:, 0], axis=0), axis=1) * recording.rate_hz
both = trusted[1:] & trusted[:-1]
print(f"root: {np.nanmean(steps[both]):.0f} mm/s on average" if both.any() else "root: no two trusted frames in a row")

# %% Curves over the gait cycle: left and right, slow strides and fast ones apart (the numbers: results/gait_cycles.csv)
knees = [curve for curve in vivarig.gait_curves(folder) if "knee" in curve.name]
for curve in knees:
    words = f"{curve.name}: {curve.strides} strides at {curve.speed_mm_s:.0f} mm/s"
    print(f"{words}, {curve.mean.min():.0f} to {curve.mean.max():.0f} degrees")
    pyplot.plot(np.arange(101), curve.mean, label=words)
    pyplot.fill_between(np.arange(101), curve.mean - curve.spread, curve.mean + curve.spread, alpha=0.2)
if knees:
    pyplot.xlabel("cycle (%)")
    pyplot.legend()
    pyplot.savefig(folder / "knees.png")

# %% One stage again with another option: only what depends on it is done anew (uncomment to try)
# vivarig.run(folder, hull=vivarig.HullOptions(voxel_mm=1.5))

# %% Against the truth, where there is one
if (folder / "truth.h5").is_file():
    scores = vivarig.evaluate(folder)
    worst = scores.names[int(np.nanargmax(scores.per_joint))]
    print(f"mean joint error {scores.mean:.2f} mm over {int(scores.valid.sum())} frames; worst joint: {worst}")

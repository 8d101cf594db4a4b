# %% [markdown]
# # From recordings to group statistics
# Joint angles over the gait cycle and stride lengths of two groups, from finished recordings. The cells run as a
# script, too: `python docs/examples/statistics.py day1/* day2/*`. Groups are the folders that hold the recordings.

# %%
import sys
from pathlib import Path

import numpy as np

from vivarig.cli import main
from vivarig.statistics.comparing import compare_cycles, compare_values
from vivarig.statistics.group_plots import draw_comparison
from vivarig.statistics.table_files import read_table

recordings = sys.argv[1:] or sorted(map(str, Path(".").glob("day*/*")))

# %% [markdown]
# One tidy table of joints (a row is a joint in a frame) and one of strides. With pandas: `pandas.read_csv("all.csv")`.

# %%
main(["table", *recordings, "-o", "all.csv"])
main(["table", *recordings, "-o", "strides.csv", "--rows", "strides"])

# %% [markdown]
# The left knee over its gait cycle. Strides that are not trusted in every frame are left out, an animal counts once.

# %%
columns = ("group", "recording", "animal", "joint", "trust", "stride", "phase", "inner_deg")
knee = compare_cycles(read_table(Path("all.csv"), columns), "left_knee", "inner_deg", "group")
draw_comparison(knee, Path("knee.png"))
for group, rows in knee.groups.items():
    print(f"{group}: knee bends to {rows.mean(axis=0).min():.0f} degrees ({len(rows)} animals)")

# %% [markdown]
# Stride lengths, with a permutation test between the groups.

# %%
strides = read_table(Path("strides.csv"), ("group", "animal", "length_mm"))
length = compare_values(strides, "length_mm", "group")
draw_comparison(length, Path("stride_length.png"))
for group, rows in length.groups.items():
    print(f"{group}: {np.mean(rows):.0f} mm ({len(rows)} animals)")
print(f"p = {length.p:.3g}")

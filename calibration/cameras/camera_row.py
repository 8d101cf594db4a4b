"""The `ROW` numbers of a packed camera by name: a camera is one row, so that compiled code takes a rig as one array.

Places are plain integers, which compiled code freezes into its instructions; slices are for the code around it.
The distortion is OpenCV's: Brown-Conrady, rational, thin prism and tilted sensor; fisheye is Kannala-Brandt in
OpenCV's form.
"""

from __future__ import annotations

ROW = 36

#: What the first number says: a lens with a pose, of either kind, or a bare 3x4 matrix.
MODEL = 0
PINHOLE, FISHEYE, MATRIX = 0, 1, 2

# The lens: focal lengths, principal point and skew, px, and 14 coefficients (a fisheye has four).
FX, FY, CX, CY, SKEW = range(1, 6)
K1, K2, P1, P2, K3, K4, K5, K6, S1, S2, S3, S4, TAU_X, TAU_Y = range(6, 20)
F1, F2, F3, F4 = range(6, 10)
FOCAL, PRINCIPAL_POINT, DISTORTION = slice(FX, CX), slice(CX, SKEW), slice(K1, TAU_Y + 1)
LENS = slice(FX, TAU_Y + 1)
LENS_PARAMETERS = 19  # as many as `LENS` holds

# The pose of a lens: x_camera = R x_world + t, mm.
R00, R01, R02, R10, R11, R12, R20, R21, R22 = range(20, 29)
TX, TY, TZ = range(29, 32)
ROTATION, TRANSLATION = slice(R00, R22 + 1), slice(TX, TZ + 1)

# The 3x4 matrix of a `MATRIX` camera, in the same place.
M00, M01, M02, M03, M10, M11, M12, M13, M20, M21, M22, M23 = range(20, 32)
MATRIX_ENTRIES = slice(M00, M23 + 1)

#: Square of the largest undistorted radius (fisheye: angle) at which the lens is invertible.
LIMIT = 32

# The centre of projection, world mm.
CENTRE_X, CENTRE_Y, CENTRE_Z = range(33, 36)
CENTRE = slice(CENTRE_X, CENTRE_Z + 1)

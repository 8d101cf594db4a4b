"""How kernels are compiled and kept; `calibration.foundation.compiled` is the door."""

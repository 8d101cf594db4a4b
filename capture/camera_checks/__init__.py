"""Which camera is wrong: late, turned, moved, mirrored or swapped, told by the outlines of the subject alone."""

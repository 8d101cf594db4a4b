"""Visual hulls: the largest shape that a set of silhouettes allows, by two engines with one interface."""

from capture.hull.agreement import mesh_silhouette, overlap, silhouette_agreement
from capture.hull.bounds import Box, bounding_box
from capture.hull.distance import DistanceImage, Extent, Outside, distance_image
from capture.hull.exact import exact_hull
from capture.hull.implicit import hull_field, implicit_hull
from capture.hull.result import Hull, HullFlag, SignedField, flag_words

__all__ = [
    "Box",
    "DistanceImage",
    "Extent",
    "Hull",
    "HullFlag",
    "Outside",
    "SignedField",
    "bounding_box",
    "distance_image",
    "exact_hull",
    "flag_words",
    "hull_field",
    "implicit_hull",
    "mesh_silhouette",
    "overlap",
    "silhouette_agreement",
]

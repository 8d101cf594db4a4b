"""Silhouettes: the subject cut out of each camera's images."""

from capture.silhouettes.cleanup import Cleaning
from capture.silhouettes.models import MODELS, ModelOptions
from capture.silhouettes.segment import SilhouetteReport, segment_recording

__all__ = ["MODELS", "Cleaning", "ModelOptions", "SilhouetteReport", "segment_recording"]

"""The viewer: a recording in 3D in the browser, and a page to mend it by hand."""

from vivarig.viewer.scene import Viewer

__all__ = ["Viewer"]

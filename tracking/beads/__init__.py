"""Radio-opaque beads: detection, tracking through a clip, triangulation with covariance, rigid bones, filtering."""

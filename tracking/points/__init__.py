"""2D points of another program as evidence: read, named, believed or not."""

"""Recordings, video, silhouettes, visual hulls and the studio that films synthetic ones."""

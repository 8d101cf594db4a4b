"""A second round of the silhouettes with the help of the tracked subject: learnt, judged, and done in parts."""

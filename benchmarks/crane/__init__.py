"""The captured person `crane`: data, runs, ablations, drill and speed, for `benchmarks.tracking`."""

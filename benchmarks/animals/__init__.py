"""Animals that are not built in, with the truth of their skin: for ``python -m benchmarks.any_body``."""

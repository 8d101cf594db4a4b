"""The priors that ship with the built-in bodies, and the script that makes them (`python -m tracking.priors.make`)."""

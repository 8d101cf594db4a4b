"""Soft parts of the built-in bodies, one TOML file each (a package so that the files are installed)."""

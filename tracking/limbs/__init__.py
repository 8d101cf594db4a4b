"""Limbs: what the silhouettes say of each, how a lost one is found, whether it may be believed."""

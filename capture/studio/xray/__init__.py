"""Images by X-ray: attenuation, image intensifier, phantoms.

Imports `scene` and `light`.
"""

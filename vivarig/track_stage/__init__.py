"""Tracking as the application does it: subject found once, parts tracked and mended, put together and judged."""

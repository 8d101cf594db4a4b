"""People of other builds in captured motion, and the cloth they wear."""

"""Motion in few bytes: whole numbers in a metric of millimetres, a range coder, the .vpg file."""

"""The command line, one module per verb: declares arguments, makes typed options of them, calls what does the work.

Imports everything else of `vivarig`; only `cli` imports it.
"""

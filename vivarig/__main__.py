"""``python -m vivarig``: the command line where the script ``vivarig`` is not on the path."""

import sys

from vivarig.cli import main

if __name__ == "__main__":
    sys.exit(main())

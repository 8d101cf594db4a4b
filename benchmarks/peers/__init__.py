"""Other programs, run beside ours in an environment of their own."""

"""Parts of the benchmark of pose spaces: one measured claim each."""

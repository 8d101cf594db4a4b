"""One script per measured claim, peers run beside it."""

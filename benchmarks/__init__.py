"""One script per measured claim: `python -m benchmarks.NAME`, last line JSON. What they share lies in the folders."""

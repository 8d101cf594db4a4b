"""What `benchmarks.gait` measures: contacts, rhythm and clean feet against force plates, studio truth and captures."""

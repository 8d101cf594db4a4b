"""What people mended by hand: ``edits.toml`` beside recording.toml."""

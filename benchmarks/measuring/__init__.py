"""Memory, cut recordings, a reference kernel for the machine's speed, studio boards."""

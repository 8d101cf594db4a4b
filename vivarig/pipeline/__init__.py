"""All stages of a recording, each done once: resumable, and redone only where something it rests on changed."""

from vivarig.pipeline.runner import RunOptions, StageOutcome, run_recording, workers_here
from vivarig.pipeline.stages import STAGES, Stage

__all__ = ["STAGES", "RunOptions", "Stage", "StageOutcome", "run_recording", "workers_here"]

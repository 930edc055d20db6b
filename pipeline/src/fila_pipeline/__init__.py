"""Jobs on Spark over a broker's recorded history: see docs/pipeline.md and docs/history.md."""

__version__ = "0.1.0"

"""A recorded run followed again, and its checkpoints: tests and backtests come here, a server does not."""

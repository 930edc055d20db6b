"""Who tells the core the time: passes, their write, the engine as Python sees it, its threads."""

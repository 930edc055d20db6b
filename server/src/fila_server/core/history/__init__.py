"""What the history is told: decisions as they are made, and all that a pass takes in. Nothing, where there is none."""

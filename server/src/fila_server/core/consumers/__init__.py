"""Who takes messages: streams, sessions and pulls, as they come, speak and go."""

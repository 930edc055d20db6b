"""The log that the copies of a broker would share, from outside: its settings, and what a whole log holds."""

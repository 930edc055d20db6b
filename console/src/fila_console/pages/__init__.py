"""The pages: each asks the broker, and says what it shows. They know nothing of each other."""

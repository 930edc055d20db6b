"""What the broker does for itself: recovery, retention, rewriting, queues that nobody uses."""

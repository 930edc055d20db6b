"""What the broker does by itself: retention, frames written anew, queues that nobody uses."""

"""One message's life: enqueue, building, reveal, deliver, sending, settle, failure, redrive."""

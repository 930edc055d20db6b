"""A request's way in: the one parse, the sender's rights, the mailbox."""

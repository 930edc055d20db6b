"""From thread to thread: the mailbox in, the outbox out, the reader, the history's blocks and spans beside."""

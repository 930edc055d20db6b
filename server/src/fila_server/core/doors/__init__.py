"""How anything gets from thread to thread: submit and the mailbox in, the outbox out, the reader beside."""

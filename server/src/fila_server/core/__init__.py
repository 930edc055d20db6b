"""The compiled core: everything a message passes through between an edge and the disk."""

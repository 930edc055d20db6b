"""Hand a frame over, await its answer: what every edge does, whatever its protocol. Start reading at calls.py."""

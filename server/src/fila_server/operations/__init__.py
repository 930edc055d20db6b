"""What an operator may ask, whatever the protocol: protobuf in, protobuf out.

rules.py     what a queue may be called and how it may be set up
requests.py  what every other request must look like
queues.py    the calls that are more than one command with its check
redrive.py   dead letters back to where they failed
scripts.py   the hooks stage, put between edges and core and kept told
"""

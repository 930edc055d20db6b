"""What another policy would have done: what a recording took in, through the core again, under other settings.

    policy.py    what to change: a TOML file with settings of queues and limits
    handling.py  how long each recorded delivery was worked on, and how it ended
    course.py    the core on its other course, told the time, served by the recorded consumers
    routings.py  what hooks had decided, without the tenants' keys
    served.py    what came of it by queue and key, counted the same way for what was recorded
    arrivals.py  the log of another system as a recording

A model, not a proof: history_files/replaying.py is the proof that the core decides the same under the same settings.
"""

"""User code between edge and mailbox: Lua scripts that route messages and judge failures.

    stage.py        all queues' scripts; what the broker talks to
      on_enqueue.py   many messages, one crossing into Lua, one Routing each
      on_failure.py   one failed message, one decision
      slices.py       when a queue's script may run
      breaker.py      stops asking a script that keeps failing
        sandbox.py      one Lua runtime a script, and its limits
          *.lua           the side of the fence the script lives on; meter.lua first

Nothing here knows gRPC or the core. A script never fails a message: whatever it does, the
answer is a decision or a HookFailure, and the caller falls back to the declarative policy.
"""

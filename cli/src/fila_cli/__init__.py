"""The command line `fila`: one page of flags between a person and the wire contract.

    main.py          the tree of commands, exit codes, errors in one line
    session.py       --addr and --output, and the stubs behind them
    failures.py      a broker's error → what happened and what to do next
    values.py        30s, 16mb, acme=3, exponential:1s..60s, @file
    settings.py      every setting of a queue as a flag
    output.py        table, json, yaml
    commands/        one module a noun

gRPC and rich are imported inside commands only: `fila --help` and completion answer at once.
"""

"""How many examples a test takes whose examples are long: hypothesis makes some hundred steps for each.

`make test` asks for a quarter of what other properties are tried with, the long runs for a thousand (FILA_SOAK).
"""

import os

LONG_SCRIPTS = 1_000 if os.environ.get("FILA_SOAK") else 25

"""The settings of `fila.toml`: schema.py says what there is, load.py where each value comes from."""

"""Importing this package registers every benchmark."""

import importlib
import pkgutil


def register_all() -> None:
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")

"""`fila top`: what is looked at (looks), what is seen of it (views), what keys do (cockpit), the terminal."""

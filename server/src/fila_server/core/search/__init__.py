"""Messages that a call names, one by one: found, told about, taken back."""

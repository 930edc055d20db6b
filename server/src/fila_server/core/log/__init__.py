"""The log that copies of a broker share: its records, the rule by which all read it, and what holds it."""

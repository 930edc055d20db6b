"""What bytes on the wire mean: commands, fields, refusals, packed routings. Nothing is kept here."""

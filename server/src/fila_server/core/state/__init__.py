"""What there is, as structs and tables, and the ways through them; no decision."""

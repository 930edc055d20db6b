"""Who may do what: keys, grants, quotas. Start reading at door.py; docs/security.md says what is promised."""

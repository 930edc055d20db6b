"""Who may do what: keys, grants, quotas. Start reading at admission.py; docs/security.md says what is promised."""

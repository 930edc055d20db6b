"""gRPC's services but FilaService, whose calls never come to Python. Start reading at handlers.py."""

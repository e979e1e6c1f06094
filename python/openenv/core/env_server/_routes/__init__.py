"""The server's routes: ``/ws``, the HTTP ones, and what describes the environment."""

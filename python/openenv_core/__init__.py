"""Deprecated name of ``openenv.core``."""

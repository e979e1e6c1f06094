"""OpenEnv: agents reach execution environments over one WebSocket."""

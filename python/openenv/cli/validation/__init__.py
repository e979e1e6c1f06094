"""What `openenv validate` checks: tables of small checks, and what runs them.

`package` looks at files; `imports` and `contract` run the environment's own code, in a
child process (`probe`) with a time limit; `running` looks at a server by its URL.
"""

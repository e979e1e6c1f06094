"""Drivers of the client: they bring bytes, loops and threads to the Rust machine.

========== =====================================================================
dial       where to: URL rules, TLS, DNS and TCP
aio        one connection: an `asyncio.Protocol` over `openenv._rust.ClientEndpoint`
timers     one timer an event loop, shared by all its connections
link       one client's session: which connection, when it is lost, who waits
home       on which event loop a link lives, for blocking and for awaiting callers
io_thread  the process's one background loop, for blocking callers
codec      what a client class exchanges, read off its type arguments
provider   a container or process that the client starts and stops
========== =====================================================================
"""

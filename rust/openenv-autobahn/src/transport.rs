//! Blocking TCP under a machine.

use core::{net::Ipv4Addr, time::Duration};
use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    thread,
};

use crate::machine::Machine;

/// One read; the suite's chop sizes are far below.
const READ_BYTES: usize = 64 << 10;
/// How long the peer may take to end the stream after we have: the suite's own limit is 1 s.
const LINGER: Duration = Duration::from_secs(2);

/// Listens on a free port of the loopback, tells it on standard output, and gives each connection
/// to `answer` on a thread of its own. Never returns while the listener lives.
///
/// # Errors
/// The port cannot be bound or a connection cannot be accepted.
pub fn serve(answer: fn(TcpStream) -> io::Result<()>) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    writeln!(io::stdout(), "{port}")?;
    for stream in listener.incoming() {
        let stream = stream?;
        stream.set_nodelay(true)?;
        thread::spawn(move || {
            if let Err(error) = answer(stream) {
                // Standard error may be closed; there is nobody else to tell.
                let _ = writeln!(io::stderr(), "{error}");
            }
        });
    }
    Ok(())
}

/// Drives `machine` until it is over or the peer has ended the stream; `early` was read already.
///
/// # Errors
/// The socket failed, otherwise than by the peer's going away.
pub fn pump(stream: &mut TcpStream, machine: &mut dyn Machine, early: &[u8]) -> io::Result<()> {
    match exchange(stream, machine, early) {
        Err(error) if is_departure(error.kind()) => Ok(()),
        outcome => outcome,
    }
}

fn exchange(stream: &mut TcpStream, machine: &mut dyn Machine, early: &[u8]) -> io::Result<()> {
    let mut buffer = vec![0; READ_BYTES];
    let mut answer = machine.take(early);
    loop {
        stream.write_all(&answer)?;
        if machine.is_over() {
            return finish(stream, &mut buffer);
        }
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        answer = machine.take(buffer.get(..count).unwrap_or_default());
    }
}

/// Ends our direction first and reads the rest: closing a socket with unread bytes would reset it
/// and could take the Close frame with it.
fn finish(stream: &mut TcpStream, buffer: &mut [u8]) -> io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    stream.set_read_timeout(Some(LINGER))?;
    while stream.read(buffer)? > 0 {}
    Ok(())
}

/// Some cases end by a reset, and a peer may leave without ending the stream.
fn is_departure(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{
        BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, TimedOut, WouldBlock,
    };
    matches!(
        kind,
        BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected | TimedOut | WouldBlock
    )
}

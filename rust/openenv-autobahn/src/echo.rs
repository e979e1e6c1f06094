//! Both sides of `openenv-ws` as an echo.

use core::net::Ipv4Addr;
use std::{
    io::{self, Read, Write},
    net::TcpStream,
};

use openenv_sim::Random;
use openenv_ws::{
    ClientHandshake, Connection, Event, Limits, MaskSource, MessageKind, Role, ServerHandshake,
    State,
};

use crate::{machine::Machine, transport::pump};

/// Room for one read of a handshake.
const HEAD_BYTES: usize = 4 << 10;

/// Serves one connection: the upgrade, then an echo.
///
/// # Errors
/// The socket failed.
pub fn accept(mut stream: TcpStream) -> io::Result<()> {
    let mut handshake = ServerHandshake::new(Limits::default());
    let mut buffer = [0; HEAD_BYTES];
    loop {
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        match handshake.receive(buffer.get(..count).unwrap_or_default()) {
            Ok(None) => {}
            Ok(Some(request)) => {
                let answer = ServerHandshake::accept(&request, None, &[]);
                stream.write_all(&answer.map_err(io::Error::other)?)?;
                return pump(&mut stream, &mut Echo::new(Role::Server), &request.rest);
            }
            Err(error) => return stream.write_all(&ServerHandshake::refusal(&error)),
        }
    }
}

/// Connects to the suite at `port` and echoes until it closes.
///
/// # Errors
/// The socket or the upgrade failed.
pub fn run(port: u16, target: &str) -> io::Result<()> {
    converse(port, target, &mut Echo::new(Role::Client))
}

/// Connects to the suite at `port`, says nothing, and gives the last message that it sent.
///
/// # Errors
/// The socket or the upgrade failed.
pub fn ask(port: u16, target: &str) -> io::Result<Vec<u8>> {
    let mut silent = Echo { is_silent: true, ..Echo::new(Role::Client) };
    converse(port, target, &mut silent)?;
    Ok(silent.last)
}

fn converse(port: u16, target: &str, machine: &mut Echo) -> io::Result<()> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_nodelay(true)?;
    let early = upgrade(&mut stream, port, target)?;
    pump(&mut stream, machine, &early)
}

fn upgrade(stream: &mut TcpStream, port: u16, target: &str) -> io::Result<Vec<u8>> {
    let (host, nonce) = (format!("127.0.0.1:{port}"), *b"openenv-autobahn");
    let mut handshake = ClientHandshake::new(&host, target, &[], &[], nonce, Limits::default())
        .map_err(io::Error::other)?;
    stream.write_all(&handshake.request())?;
    let mut buffer = [0; HEAD_BYTES];
    loop {
        let count = stream.read(&mut buffer)?;
        let input = buffer.get(..count).unwrap_or_default();
        if let Some(upgraded) = handshake.receive(input).map_err(io::Error::other)? {
            return Ok(upgraded.rest);
        }
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// Sends each message back as it came, or nothing.
struct Echo {
    is_silent: bool,
    connection: Connection,
    masks: Masks,
    last: Vec<u8>,
}

impl Echo {
    fn new(role: Role) -> Self {
        let connection = Connection::new(role, Limits::default());
        Self { is_silent: false, connection, masks: Masks(Random::new(1)), last: Vec::new() }
    }

    fn reply(&mut self, kind: MessageKind, out: &mut Vec<u8>) {
        // Pongs asked for before this message are written before it.
        out.append(self.connection.output());
        let frame_at = out.len();
        let start = self.connection.begin(out);
        out.extend_from_slice(&self.last);
        match self.connection.seal(start, kind, out, &mut self.masks) {
            Ok(frame) => drop(out.drain(frame_at..frame.start)),
            // Closing: the message has no answer.
            Err(_) => out.truncate(frame_at),
        }
    }
}

impl Machine for Echo {
    fn take(&mut self, mut input: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        // A failure ends the loop as the end of input does: its Close frame is in the output.
        while let Ok(Some(event)) = self.connection.receive(&mut input, &mut self.masks) {
            if let Event::Message { kind, payload } = event {
                self.last = payload.into_owned();
                if !self.is_silent {
                    self.reply(kind, &mut out);
                }
            }
        }
        out.append(self.connection.output());
        out
    }

    fn is_over(&self) -> bool {
        self.connection.state() == State::Closed
    }
}

/// Repeatable masks, so that a failing case can be run again byte by byte.
struct Masks(Random);

impl MaskSource for Masks {
    fn next_mask(&mut self) -> [u8; 4] {
        let mut mask = [0; 4];
        self.0.fill(&mut mask);
        mask
    }
}

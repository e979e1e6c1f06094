//! A connected socket that never blocks.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

/// Room that is kept between messages.
const KEPT_BYTES: usize = 1024;

/// What reading a socket gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "what `recv` can say, besides an error")]
pub enum Received {
    /// So many bytes.
    Bytes(usize),
    /// The peer sends no more.
    End,
    /// Nothing has come.
    Nothing,
}

/// A connected socket in non-blocking mode, and what it has not taken yet.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    unsent: Vec<u8>,
    sent: usize,
}

impl Socket {
    /// Takes a connected socket, which must be in non-blocking mode.
    pub fn new(fd: OwnedFd) -> Self {
        Self { fd, unsent: Vec::new(), sent: 0 }
    }

    /// Reads once.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn receive(&self, into: &mut [u8]) -> io::Result<Received> {
        match recv(&self.fd, into, RecvFlags::empty()) {
            Ok((0, _)) => Ok(Received::End),
            Ok((count, _)) => Ok(Received::Bytes(count)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(Received::Nothing),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends, behind what is unsent, and keeps what the socket does not take.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn send(&mut self, data: &[u8]) -> io::Result<()> {
        let taken = if self.unsent.is_empty() { self.offer(data)? } else { 0 };
        self.unsent.extend_from_slice(data.get(taken..).unwrap_or_default());
        Ok(())
    }

    /// Keeps data to be sent by the next [`flush`](Self::flush).
    pub fn queue(&mut self, data: &[u8]) {
        self.unsent.extend_from_slice(data);
    }

    /// Sends what is unsent, as far as the socket takes it.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn flush(&mut self) -> io::Result<()> {
        while self.unsent_bytes() > 0 {
            let taken = self.offer(self.unsent.get(self.sent..).unwrap_or_default())?;
            if taken == 0 {
                return Ok(());
            }
            self.sent += taken;
        }
        self.unsent.clear();
        self.unsent.shrink_to(KEPT_BYTES); // a long message's room is given back
        self.sent = 0;
        Ok(())
    }

    /// Gives up what is unsent.
    pub fn discard(&mut self) {
        self.unsent = Vec::new();
        self.sent = 0;
    }

    /// How much is unsent.
    pub fn unsent_bytes(&self) -> usize {
        self.unsent.len() - self.sent
    }

    fn offer(&self, data: &[u8]) -> io::Result<usize> {
        match send(&self.fd, data, SendFlags::NOSIGNAL) {
            Ok(count) => Ok(count),
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

//! Control frames that wait for the caller to write them, bounded.
//!
//! A peer that floods pings and reads nothing must not fill memory: beyond the bound only the
//! latest pong is kept, which RFC 6455 §5.5.3 allows. A Close frame is always taken, once.

use alloc::vec::Vec;

use crate::{
    error::Error,
    frame::{self, Opcode},
};

/// The queue of finished control frames.
#[derive(Debug)]
pub(crate) struct Outbox {
    frames: Vec<u8>,
    deferred_pong: Option<Vec<u8>>,
    max_bytes: usize,
}

impl Outbox {
    pub(crate) const fn new(max_bytes: usize) -> Self {
        Self { frames: Vec::new(), deferred_pong: None, max_bytes }
    }

    /// Queues an answer to a ping; beyond the bound it replaces the pong that waits there.
    pub(crate) fn pong(&mut self, payload: &[u8], key: Option<[u8; 4]>) {
        if self.frames.len() < self.max_bytes {
            self.deferred_pong = None; // The newer pong answers for it.
            frame::append_frame(&mut self.frames, Opcode::Pong, payload, key);
        } else {
            let deferred = self.deferred_pong.get_or_insert_default();
            deferred.clear();
            frame::append_frame(deferred, Opcode::Pong, payload, key);
        }
    }

    /// Queues a ping.
    ///
    /// # Errors
    /// [`Error::PendingControlFull`] beyond the bound.
    pub(crate) fn ping(&mut self, payload: &[u8], key: Option<[u8; 4]>) -> Result<(), Error> {
        if self.frames.len() >= self.max_bytes {
            return Err(Error::PendingControlFull);
        }
        frame::append_frame(&mut self.frames, Opcode::Ping, payload, key);
        Ok(())
    }

    /// Queues the one Close frame; nothing is sent after it, so a pong that waits is dropped.
    pub(crate) fn close(&mut self, body: &[u8], key: Option<[u8; 4]>) {
        self.deferred_pong = None;
        frame::append_frame(&mut self.frames, Opcode::Close, body, key);
    }

    /// The frames to write now, for the caller to drain.
    pub(crate) fn frames(&mut self) -> &mut Vec<u8> {
        if self.frames.len() < self.max_bytes
            && let Some(pong) = self.deferred_pong.take()
        {
            self.frames.extend_from_slice(&pong);
        }
        &mut self.frames
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_the_bound_only_the_latest_pong_is_kept() {
        let mut outbox = Outbox::new(4);
        for payload in [b"aa", b"bb", b"cc"] {
            outbox.pong(payload, None);
        }

        assert_eq!(b"\x8A\x02aa".as_slice(), outbox.frames());

        outbox.frames().clear();

        assert_eq!(b"\x8A\x02cc".as_slice(), outbox.frames());
    }

    #[test]
    fn a_pong_within_the_bound_answers_for_the_one_that_waited() {
        let mut outbox = Outbox::new(4);
        outbox.pong(b"aa", None);
        outbox.pong(b"bb", None);
        outbox.frames.clear();
        outbox.pong(b"cc", None);

        assert_eq!(b"\x8A\x02cc".as_slice(), outbox.frames());
        assert_eq!(None, outbox.deferred_pong);
    }

    #[test]
    fn ping_beyond_the_bound_is_refused() {
        let mut outbox = Outbox::new(3);

        assert_eq!(Ok(()), outbox.ping(b"x", None));
        assert_eq!(Err(Error::PendingControlFull), outbox.ping(b"x", None));
    }

    #[test]
    fn close_is_taken_beyond_the_bound_and_nothing_follows_it() {
        let mut outbox = Outbox::new(2);
        outbox.pong(b"", None);
        outbox.pong(b"late", None);
        outbox.close(b"", None);

        assert_eq!(b"\x8A\x00\x88\x00".as_slice(), outbox.frames());

        outbox.frames().clear();

        assert!(outbox.frames().is_empty());
    }
}

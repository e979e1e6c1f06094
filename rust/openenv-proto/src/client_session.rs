//! The client's half of a classic session: which request an answer belongs to.
//!
//! Replies carry no id, so order is all there is. One request is in flight at a time, others wait
//! here; an answer always belongs to the one in flight. A request whose caller gave up (timeout,
//! cancellation) stays in flight, *owed*, until its answer has come and was dropped, so that no
//! answer reaches a later request. A waiting request whose caller gave up is never sent.
//!
//! ```text
//!                    submit, nothing before it
//!          ┌─────────────────────────────────────────────┐
//!          │                                             v
//!   submit ──> queued ──next_frame──> in flight ──answer──> Deliver(tag)
//!                │                        │
//!         abandon, expire          abandon, expire
//!                v                        v
//!              gone                     owed ──answer──> Late
//!
//!   fail_all from anywhere: every undelivered tag is handed back, the session is closed.
//! ```

use alloc::{collections::VecDeque, vec::Vec};
use core::mem;

use crate::{error::SessionError, message::Op};

/// Bounds of a client session.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ClientLimits {
    /// Requests that may wait behind the one in flight.
    ///
    /// 1,024: far above any sensible `gather` on one environment, and it turns a loop that forgets
    /// to await into an error before it fills the memory.
    pub max_queued_requests: usize,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self { max_queued_requests: 1024 }
    }
}

/// Names one submitted request of one session.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RequestId(u64);

/// Whom a reply belongs to.
#[derive(Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a reply is waited for or it is not")]
pub enum Answer<T> {
    /// To the caller who waits with this tag.
    Deliver(T, Op),
    /// To a request that was given up: drop it.
    Late(Op),
}

/// The machine. `T` is what the caller keeps with a request: its future.
#[derive(Debug)]
pub struct ClientSession<T> {
    limits: ClientLimits,
    last_id: u64,
    phase: Phase<T>,
    queue: VecDeque<Queued<T>>,
    /// Earliest deadline of any request still waited for; exact.
    earliest_ns: Option<u64>,
}

#[derive(Debug)]
enum Phase<T> {
    /// Nothing sent is unanswered.
    Free,
    InFlight(Waiting<T>),
    /// Sent, unanswered, and nobody waits.
    Owed(Op),
    Closed,
}

#[derive(Debug)]
struct Waiting<T> {
    id: RequestId,
    op: Op,
    deadline_ns: Option<u64>,
    tag: T,
}

#[derive(Debug)]
struct Queued<T> {
    request: Waiting<T>,
    frame: Vec<u8>,
}

impl<T> ClientSession<T> {
    /// An idle session on a fresh connection.
    pub fn new(limits: ClientLimits) -> Self {
        Self { limits, last_id: 0, phase: Phase::Free, queue: VecDeque::new(), earliest_ns: None }
    }

    /// Takes a request. `Some(frame)` is to be written now; `None` means that it waits and comes
    /// out of [`Self::next_frame`] later.
    ///
    /// # Errors
    /// Local faults: `CloseSubmitted`, `QueueFull`, `SessionClosed`. Nothing was taken.
    pub fn submit(
        &mut self,
        op: Op,
        frame: Vec<u8>,
        deadline_ns: Option<u64>,
        tag: T,
    ) -> Result<(RequestId, Option<Vec<u8>>), SessionError> {
        self.check_submit(op)?;
        self.last_id += 1;
        let id = RequestId(self.last_id);
        let request = Waiting { id, op, deadline_ns, tag };
        self.earliest_ns = earlier(self.earliest_ns, deadline_ns);
        if matches!(self.phase, Phase::Free) && self.queue.is_empty() {
            self.phase = Phase::InFlight(request);
            return Ok((id, Some(frame)));
        }
        self.queue.push_back(Queued { request, frame });
        Ok((id, None))
    }

    /// One reply has arrived: whose is it? Then call [`Self::next_frame`].
    ///
    /// # Errors
    /// Remote fault `UnsolicitedAnswer` when no answer is owed; local fault `SessionClosed`.
    pub fn answer(&mut self) -> Result<Answer<T>, SessionError> {
        match mem::replace(&mut self.phase, Phase::Free) {
            Phase::Free => Err(SessionError::UnsolicitedAnswer),
            Phase::InFlight(request) => {
                self.forget_deadline(request.deadline_ns);
                Ok(Answer::Deliver(request.tag, request.op))
            }
            Phase::Owed(op) => Ok(Answer::Late(op)),
            Phase::Closed => {
                self.phase = Phase::Closed;
                Err(SessionError::SessionClosed)
            }
        }
    }

    /// The next waiting request, if it may be sent now. It is in flight from here on.
    pub fn next_frame(&mut self) -> Option<Vec<u8>> {
        if !matches!(self.phase, Phase::Free) {
            return None;
        }
        let Queued { request, frame } = self.queue.pop_front()?;
        self.phase = Phase::InFlight(request);
        Some(frame)
    }

    /// The caller of `id` gave up. Gives its tag back; `None` when it was already answered,
    /// abandoned or expired.
    pub fn abandon(&mut self, id: RequestId) -> Option<T> {
        let request = match &self.phase {
            Phase::InFlight(request) if request.id == id => self.disown()?,
            _ => {
                let place = self.queue.iter().position(|queued| queued.request.id == id)?;
                self.queue.remove(place)?.request
            }
        };
        self.forget_deadline(request.deadline_ns);
        Some(request.tag)
    }

    /// Gives up every request whose deadline is `now_ns` or earlier; appends their tags to
    /// `expired` in the order of submission.
    pub fn expire(&mut self, now_ns: u64, expired: &mut Vec<(T, Op)>) {
        if self.earliest_ns.is_none_or(|deadline_ns| deadline_ns > now_ns) {
            return;
        }
        let is_due = |deadline_ns: Option<u64>| deadline_ns.is_some_and(|due| due <= now_ns);
        if matches!(&self.phase, Phase::InFlight(request) if is_due(request.deadline_ns)) {
            expired.extend(self.disown().map(|request| (request.tag, request.op)));
        }
        for queued in mem::take(&mut self.queue) {
            if is_due(queued.request.deadline_ns) {
                expired.push((queued.request.tag, queued.request.op));
            } else {
                self.queue.push_back(queued);
            }
        }
        self.earliest_ns = self.find_earliest();
    }

    /// The connection is gone: closes the session and hands back every request that is still
    /// waited for, in the order of submission.
    pub fn fail_all(&mut self) -> Vec<(T, Op)> {
        let in_flight = match mem::replace(&mut self.phase, Phase::Closed) {
            Phase::InFlight(request) => Some(request),
            Phase::Free | Phase::Owed(_) | Phase::Closed => None,
        };
        self.earliest_ns = None;
        let queued = mem::take(&mut self.queue).into_iter().map(|queued| queued.request);
        in_flight.into_iter().chain(queued).map(|request| (request.tag, request.op)).collect()
    }

    /// What is kept with the requests that are still waited for, in the order of submission.
    pub fn tags(&self) -> impl Iterator<Item = &T> {
        let in_flight = match &self.phase {
            Phase::InFlight(request) => Some(request),
            Phase::Free | Phase::Owed(_) | Phase::Closed => None,
        };
        let queued = self.queue.iter().map(|queued| &queued.request);
        in_flight.into_iter().chain(queued).map(|request| &request.tag)
    }

    /// Earliest deadline of a request that is still waited for.
    pub fn next_deadline(&self) -> Option<u64> {
        self.earliest_ns
    }

    /// Requests that nobody waits for and the server has yet to answer: 0 or 1.
    pub fn owed(&self) -> usize {
        usize::from(matches!(self.phase, Phase::Owed(_)))
    }

    /// Nothing in flight, nothing owed, nothing waiting. A closed session is idle.
    pub fn is_idle(&self) -> bool {
        matches!(self.phase, Phase::Free | Phase::Closed) && self.queue.is_empty()
    }

    fn check_submit(&self, op: Op) -> Result<(), SessionError> {
        if matches!(self.phase, Phase::Closed) {
            return Err(SessionError::SessionClosed);
        }
        if op == Op::Close {
            return Err(SessionError::CloseSubmitted);
        }
        let limit = self.limits.max_queued_requests;
        let sends_now = matches!(self.phase, Phase::Free) && self.queue.is_empty();
        if !sends_now && self.queue.len() >= limit {
            return Err(SessionError::QueueFull { limit });
        }
        Ok(())
    }

    /// In flight -> owed.
    fn disown(&mut self) -> Option<Waiting<T>> {
        match mem::replace(&mut self.phase, Phase::Free) {
            Phase::InFlight(request) => {
                self.phase = Phase::Owed(request.op);
                Some(request)
            }
            other => {
                self.phase = other;
                None
            }
        }
    }

    fn forget_deadline(&mut self, deadline_ns: Option<u64>) {
        if deadline_ns.is_some() && deadline_ns == self.earliest_ns {
            self.earliest_ns = self.find_earliest();
        }
    }

    fn find_earliest(&self) -> Option<u64> {
        let in_flight = match &self.phase {
            Phase::InFlight(request) => request.deadline_ns,
            Phase::Free | Phase::Owed(_) | Phase::Closed => None,
        };
        self.queue
            .iter()
            .fold(in_flight, |found, queued| earlier(found, queued.request.deadline_ns))
    }
}

fn earlier(left_ns: Option<u64>, right_ns: Option<u64>) -> Option<u64> {
    match (left_ns, right_ns) {
        (Some(left_ns), Some(right_ns)) => Some(left_ns.min(right_ns)),
        (one_ns, other_ns) => one_ns.or(other_ns),
    }
}

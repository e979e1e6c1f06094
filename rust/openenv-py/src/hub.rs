//! `Hub`: the sockets of one event loop's connections, read and written from here.
//!
//! What a socket brings goes to its endpoint without passing through Python; the driver hears of
//! the connection's end only. As everywhere in `asyncio`, `connection_lost` is called in a turn of
//! the loop of its own.
//!
//! When several sockets have something to read, all are read first, then all answers delivered,
//! and what the awakened tasks ask is sent in one go after them: the kernel's code and Python's each
//! run in a row, instead of pushing each other out of the processor's caches.
//!
//! Locks: a transport's before its hub's, and none while Python code runs.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use openenv_net::{Haste, Pace, Poller, Ready, Socket, monotonic_ns};
use pyo3::exceptions::{PyException, PyRuntimeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3::{PyTraverseError, PyVisit};

use crate::client::ClientEndpoint;
use crate::transport::Transport;

/// Room for what is read at once, from one socket or several.
const READ_BYTES: usize = 256 * 1024;
/// Room without which no further socket is read at once.
const ROOM_BYTES: usize = 16 * 1024;

/// What is asked later than this after the turn began is sent at once.
const LONGEST_HOLD_NS: u64 = 300_000;

/// All sockets of one event loop, behind one descriptor that the loop watches.
#[pyclass(frozen, weakref, module = "openenv._rust")]
#[derive(Debug)]
pub(crate) struct Hub {
    /// Python's event loop.
    pub(crate) event_loop: Py<PyAny>,
    process: u32,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// `None` once closed.
    poller: Option<Poller>,
    pace: Pace,
    transports: BTreeMap<u64, Py<Transport>>,
    next_token: u64,
    /// Data that waits for the end of the turn; `None` when data is sent at once.
    held: Option<Held>,
    /// Kept from turn to turn for their room.
    buffer: Vec<u8>,
    ready: Vec<Ready>,
}

/// Data is kept for the end of the turn.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hold {
    On,
    /// It has been long enough: tasks that compute must not hold up what others asked.
    Over,
}

/// What is sent when the tasks that were awakened have run.
#[derive(Debug)]
struct Held {
    since_ns: u64,
    tokens: Vec<u64>,
}

#[pymethods]
impl Hub {
    #[new]
    fn new(event_loop: Py<PyAny>) -> PyResult<Self> {
        let state = State {
            poller: Some(Poller::new()?),
            pace: Pace::default(),
            transports: BTreeMap::new(),
            next_token: 0,
            held: None,
            buffer: vec![0; READ_BYTES],
            ready: Vec::new(),
        };
        Ok(Self { event_loop, process: std::process::id(), state: Mutex::new(state) })
    }

    fn fileno(&self) -> RawFd {
        self.lock().poller.as_ref().map_or(-1, |poller| poller.door().as_raw_fd())
    }

    /// Takes over a connected socket, and makes the transport that `driver` is given.
    fn attach<'py>(
        slf: &Bound<'py, Self>,
        socket: &Bound<'py, PyAny>,
        driver: &Bound<'py, PyAny>,
        endpoint: Py<ClientEndpoint>,
        max_unsent_bytes: usize,
    ) -> PyResult<Bound<'py, Transport>> {
        let py = slf.py();
        let fd: RawFd = socket.call_method0(intern!(py, "detach"))?.extract()?;
        let socket = Socket::new(owned(fd));
        let token = {
            let mut state = slf.get().lock();
            state.next_token += 1;
            state.next_token
        };
        slf.get().with_poller(|poller| poller.add(&socket, token, Haste::Prompt))?;
        let driver = driver.clone().unbind();
        let hub = slf.clone().unbind();
        let transport = Transport::new(hub, token, socket, endpoint, driver, max_unsent_bytes);
        let transport = Bound::new(py, transport)?;
        slf.get().lock().transports.insert(token, transport.clone().unbind());
        Ok(transport)
    }

    /// Reads and writes what can be read and written now; called when the door opens.
    fn run(slf: &Bound<'_, Self>) -> PyResult<()> {
        let this = slf.get();
        let (mut buffer, mut ready, all) = {
            let mut state = this.lock();
            let mut ready = std::mem::take(&mut state.ready);
            let Some(poller) = &mut state.poller else { return Ok(()) };
            let all = poller.poll(&mut ready)?;
            (std::mem::take(&mut state.buffer), ready, all)
        };
        buffer.resize(READ_BYTES, 0); // only where this runs inside of itself
        let outcome = Self::turn(slf, &ready, all, &mut buffer);
        ready.clear();
        let mut state = this.lock();
        state.buffer = buffer;
        state.ready = ready;
        outcome
    }

    /// Sends what was asked since `run`.
    pub(crate) fn flush(&self, py: Python<'_>) {
        let held = self.lock().held.take();
        for token in held.into_iter().flat_map(|held| held.tokens) {
            if let Some(transport) = self.transport(py, token) {
                transport.get().flush(py);
            }
        }
    }

    /// Lets go of what is left, at the end of the loop.
    fn close(&self, py: Python<'_>) {
        let transports = std::mem::take(&mut self.lock().transports);
        for transport in transports.into_values() {
            transport.get().end(py, None);
        }
        self.lock().poller = None;
    }

    fn __len__(&self) -> usize {
        self.lock().transports.len()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.event_loop)?;
        if let Ok(state) = self.state.try_lock() {
            for transport in state.transports.values() {
                visit.call(transport)?;
            }
        }
        Ok(())
    }

    fn __clear__(&self) {
        let transports = std::mem::take(&mut self.lock().transports);
        drop(transports);
    }
}

impl Hub {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn with_poller<T>(
        &self,
        work: impl FnOnce(&mut Poller) -> io::Result<T>,
    ) -> PyResult<T> {
        match &mut self.lock().poller {
            Some(poller) => Ok(work(poller)?),
            None => Err(PyRuntimeError::new_err("the event loop of these sockets has ended")),
        }
    }

    fn transport(&self, py: Python<'_>, token: u64) -> Option<Py<Transport>> {
        self.lock().transports.get(&token).map(|it| it.clone_ref(py))
    }

    /// `all`: patient sockets were looked at as well.
    fn turn(slf: &Bound<'_, Self>, ready: &[Ready], all: bool, buffer: &mut [u8]) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        let now: f64 = this.event_loop.bind(py).call_method0(intern!(py, "time"))?.extract()?;
        let now_ns = monotonic_ns();
        let (mut answers, mut filled) = (0, 0);
        let mut reads = Vec::with_capacity(ready.len());
        let mut outcome = Ok(());
        for ready in ready {
            // It may have been closed since it was told of.
            let Some(transport) = this.transport(py, ready.token) else { continue };
            // Read first: the peer's last words are lost with a write that fails.
            if !ready.readable {
                transport.get().flush(py);
                continue;
            }
            answers += usize::from(transport.get().note_answer(now_ns));
            if buffer.len() - filled < ROOM_BYTES {
                let delivered = this.deliver(py, &reads, buffer, now);
                outcome = outcome.and(delivered);
                reads.clear();
                filled = 0;
            }
            let count = transport.get().receive(py, buffer.get_mut(filled..).unwrap_or_default());
            if count > 0 {
                reads.push((transport, filled..filled + count));
                filled += count;
            } else {
                transport.get().flush(py);
            }
        }
        let several = reads.len() > 1;
        if several {
            this.lock().held.get_or_insert(Held { since_ns: now_ns, tokens: Vec::new() });
        }
        let delivered = this.deliver(py, &reads, buffer, now);
        outcome = outcome.and(delivered);
        if several && let Err(error) = Self::flush_soon(slf) {
            this.flush(py);
            outcome = outcome.and(Err(error));
        }
        if answers > 0 || all {
            let mut state = this.lock();
            let period_ns = state.pace.turn(answers, now_ns);
            if let Some(poller) = &mut state.poller {
                poller.set_period(period_ns)?;
            }
        }
        outcome
    }

    /// Behind the tasks that are awakened by now.
    fn flush_soon(slf: &Bound<'_, Self>) -> PyResult<()> {
        let flush = slf.getattr(intern!(slf.py(), "flush"))?;
        let event_loop = slf.get().event_loop.bind(slf.py());
        event_loop.call_method1(intern!(slf.py(), "call_soon"), (flush,)).map(drop)
    }

    /// Whatever one connection raises, the others get what was read for them.
    fn deliver(
        &self,
        py: Python<'_>,
        reads: &[(Py<Transport>, Range<usize>)],
        buffer: &[u8],
        now: f64,
    ) -> PyResult<()> {
        let mut outcome = Ok(());
        for (transport, range) in reads {
            let bytes = buffer.get(range.clone()).unwrap_or_default();
            if let Err(error) = transport.get().feed(py, bytes, now) {
                transport.get().end(py, None);
                let told = self.tell(py, error);
                outcome = outcome.and(told);
            }
        }
        outcome
    }

    /// Takes note of an answer after `round_trip_ns`, and returns the period of now.
    pub(crate) fn answered(&self, round_trip_ns: u64) -> u64 {
        let mut state = self.lock();
        state.pace.answered(round_trip_ns);
        state.pace.period_ns()
    }

    /// Keeps data for the end of the turn; `None` where it is to be sent at once.
    pub(crate) fn hold(&self, token: u64, now_ns: u64) -> Option<Hold> {
        let mut state = self.lock();
        let held = state.held.as_mut()?;
        held.tokens.push(token);
        let is_late = now_ns.saturating_sub(held.since_ns) > LONGEST_HOLD_NS;
        Some(if is_late { Hold::Over } else { Hold::On })
    }

    /// What Python code raised where nobody waits for it: the loop's handler hears of it, and
    /// Ctrl-C goes on.
    fn tell(&self, py: Python<'_>, error: PyErr) -> PyResult<()> {
        if !error.is_instance_of::<PyException>(py) {
            return Err(error);
        }
        let context = PyDict::new(py);
        context.set_item("message", "an OpenEnv connection failed while it read")?;
        context.set_item("exception", error.into_value(py))?;
        let handler = intern!(py, "call_exception_handler");
        self.event_loop.bind(py).call_method1(handler, (context,)).map(drop)
    }

    /// Watches a socket no more. In a forked child the set is still the parent's.
    pub(crate) fn forget(
        &self,
        token: u64,
        socket: &Socket,
        haste: Haste,
    ) -> Option<Py<Transport>> {
        let mut state = self.lock();
        if let Some(poller) = &mut state.poller
            && self.process == std::process::id()
        {
            // It was added, so this cannot fail; and if it did, it is closed next.
            let _ = poller.remove(socket, haste);
        }
        state.transports.remove(&token)
    }
}

#[expect(unsafe_code, reason = "a descriptor from Python is a number")]
fn owned(fd: RawFd) -> OwnedFd {
    // SAFETY: it comes from `socket.detach()`, so nobody else owns or closes it.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

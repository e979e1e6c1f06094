//! `Hub` and `Transport`: the sockets of one event loop's connections, read and written from here.
//!
//! A `Transport` has the face of `asyncio.Transport` that the driver of a connection needs. What
//! its socket brings goes to the endpoint without passing through Python; the driver hears of the
//! connection's end only. As everywhere in `asyncio`, `connection_lost` is called in a turn of the
//! loop of its own.
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

use openenv_net::{Haste, Pace, Poller, Ready, Received, RoundTrip, Socket, monotonic_ns};
use pyo3::exceptions::{PyException, PyRuntimeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict};
use pyo3::{PyTraverseError, PyVisit};

use crate::client::{ClientEndpoint, Submitted};
use crate::decoder::Decoder;

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
    event_loop: Py<PyAny>,
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
        let inner = Inner {
            socket: Some(socket),
            driver: Some(driver.clone().unbind()),
            haste: Haste::Prompt,
            is_closing: false,
            is_blocked: false,
            due: f64::NEG_INFINITY,
            asked_ns: None,
            round_trip: RoundTrip::default(),
        };
        let transport = Transport {
            hub: slf.clone().unbind(),
            endpoint,
            token,
            max_unsent_bytes,
            inner: Mutex::new(inner),
        };
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
        let outcome = this.turn(slf, &ready, all, &mut buffer);
        ready.clear();
        let mut state = this.lock();
        state.buffer = buffer;
        state.ready = ready;
        outcome
    }

    /// Sends what was asked since `run`.
    fn flush(&self, py: Python<'_>) {
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

    fn with_poller<T>(&self, work: impl FnOnce(&mut Poller) -> io::Result<T>) -> PyResult<T> {
        match &mut self.lock().poller {
            Some(poller) => Ok(work(poller)?),
            None => Err(PyRuntimeError::new_err("the event loop of these sockets has ended")),
        }
    }

    fn holds_too_long(&self, now_ns: u64) -> bool {
        let state = self.lock();
        let since_ns = state.held.as_ref().map_or(now_ns, |held| held.since_ns);
        now_ns.saturating_sub(since_ns) > LONGEST_HOLD_NS
    }

    fn transport(&self, py: Python<'_>, token: u64) -> Option<Py<Transport>> {
        self.lock().transports.get(&token).map(|it| it.clone_ref(py))
    }

    /// `all`: patient sockets were looked at as well.
    fn turn(
        &self,
        slf: &Bound<'_, Self>,
        ready: &[Ready],
        all: bool,
        buffer: &mut [u8],
    ) -> PyResult<()> {
        let py = slf.py();
        let now: f64 = self.event_loop.bind(py).call_method0(intern!(py, "time"))?.extract()?;
        let now_ns = monotonic_ns();
        let (mut answers, mut filled) = (0, 0);
        let mut reads = Vec::with_capacity(ready.len());
        let mut outcome = Ok(());
        for ready in ready {
            // It may have been closed since it was told of.
            let Some(transport) = self.transport(py, ready.token) else { continue };
            // Read first: the peer's last words are lost with a write that fails.
            if !ready.readable {
                transport.get().flush(py);
                continue;
            }
            answers += usize::from(self.note_answer(transport.get(), now_ns));
            if buffer.len() - filled < ROOM_BYTES {
                let delivered = self.deliver(py, &reads, buffer, now);
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
        if reads.len() > 1 {
            // Behind the tasks that are awakened by now.
            let flush = slf.getattr(intern!(py, "flush"))?;
            self.lock().held.get_or_insert(Held { since_ns: now_ns, tokens: Vec::new() });
            let delivered = self.deliver(py, &reads, buffer, now);
            outcome = outcome.and(delivered);
            let call_soon = intern!(py, "call_soon");
            if let Err(error) = self.event_loop.bind(py).call_method1(call_soon, (flush,)) {
                self.flush(py);
                outcome = outcome.and(Err(error));
            }
        } else {
            let delivered = self.deliver(py, &reads, buffer, now);
            outcome = outcome.and(delivered);
        }
        if answers > 0 || all {
            let mut state = self.lock();
            let period_ns = state.pace.turn(answers, now_ns);
            if let Some(poller) = &mut state.poller {
                poller.set_period(period_ns)?;
            }
        }
        outcome
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

    /// Measures the round trip that something to read is the end of, if it is.
    fn note_answer(&self, transport: &Transport, now_ns: u64) -> bool {
        let mut inner = transport.lock();
        let Some(asked_ns) = inner.asked_ns.take() else { return false };
        let round_trip_ns = now_ns.saturating_sub(asked_ns);
        inner.round_trip.note(round_trip_ns);
        let mut state = self.lock();
        state.pace.answered(round_trip_ns);
        let period_ns = state.pace.period_ns();
        let is_patient = period_ns > 0 && inner.round_trip.is_patient(period_ns);
        let haste = if is_patient { Haste::Patient } else { Haste::Prompt };
        if period_ns > 0
            && haste != inner.haste
            && !(inner.is_blocked || inner.is_closing) // else it is watched for more than reading
            && let (Some(poller), Some(socket)) = (&mut state.poller, &inner.socket)
            && poller.remove(socket, inner.haste).is_ok()
        {
            // As it was added before, and there is one place less taken than then.
            let _ = poller.add(socket, transport.token, haste);
            inner.haste = haste;
        }
        true
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
    fn forget(&self, token: u64, socket: &Socket, haste: Haste) -> Option<Py<Transport>> {
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

/// The event loop that runs in this thread, or None.
fn running_loop(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    static RUNNING_LOOP: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    RUNNING_LOOP.import(py, "asyncio", "_get_running_loop")?.call0()
}

fn is_peers_end(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

#[expect(unsafe_code, reason = "a descriptor from Python is a number")]
fn owned(fd: RawFd) -> OwnedFd {
    // SAFETY: it comes from `socket.detach()`, so nobody else owns or closes it.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// One socket of a hub.
#[pyclass(frozen, weakref, module = "openenv._rust")]
#[derive(Debug)]
pub(crate) struct Transport {
    hub: Py<Hub>,
    endpoint: Py<ClientEndpoint>,
    token: u64,
    max_unsent_bytes: usize,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// `None` once closed.
    socket: Option<Socket>,
    driver: Option<Py<PyAny>>,
    haste: Haste,
    is_closing: bool,
    /// The socket takes no more for now, and is watched for the moment when it does.
    is_blocked: bool,
    /// When the driver was last seen to be called; it is not called later before then.
    due: f64,
    /// When something was written that has not been answered.
    asked_ns: Option<u64>,
    round_trip: RoundTrip,
}

#[pymethods]
impl Transport {
    /// Sends, or keeps for later what the socket does not take. A peer that leaves more than
    /// `max_unsent_bytes` unread is cut off.
    fn write(&self, py: Python<'_>, data: &Bound<'_, PyBytes>) {
        self.send(py, data.as_bytes());
    }

    /// Asks at once, where that can be done: on its own loop, with the connection open. The future
    /// of the answer, or `None`.
    fn request<'py>(
        &self,
        py: Python<'py>,
        op: &str,
        payload: &Bound<'py, PyAny>,
        decoder: Py<Decoder>,
        timeout_s: Option<f64>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let event_loop = self.hub.get().event_loop.bind(py);
        if self.is_closing() || !running_loop(py)?.is(event_loop) {
            return Ok(None);
        }
        let now: f64 = event_loop.call_method0(intern!(py, "time"))?.extract()?;
        let deadline = timeout_s.map_or(f64::INFINITY, |timeout_s| now + timeout_s);
        let future = event_loop.call_method0(intern!(py, "create_future"))?;
        let waiter = future.clone().unbind();
        match self.endpoint.get().submit(op, payload, waiter, decoder, deadline, now)? {
            Submitted::Frame(frame) => self.send(py, &frame),
            Submitted::Queued => {}
            Submitted::NotOpen => return Ok(None),
        }
        self.arm(py, now, deadline)?;
        Ok(Some(future))
    }

    /// Sends what is unsent, then closes.
    fn close(&self, py: Python<'_>) {
        self.lock().is_closing = true;
        self.flush(py);
        self.watch(py);
    }

    /// Closes at once.
    fn abort(&self, py: Python<'_>) {
        self.end(py, None);
    }

    fn is_closing(&self) -> bool {
        let inner = self.lock();
        inner.is_closing || inner.socket.is_none()
    }

    fn get_write_buffer_size(&self) -> usize {
        self.lock().socket.as_ref().map_or(0, Socket::unsent_bytes)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.hub)?;
        visit.call(&self.endpoint)?;
        if let Ok(inner) = self.inner.try_lock() {
            visit.call(&inner.driver)?;
        }
        Ok(())
    }

    fn __clear__(&self) {
        let driver = self.lock().driver.take();
        drop(driver);
    }
}

impl Transport {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the driver see to it that a deadline is not missed.
    fn arm(&self, py: Python<'_>, now: f64, deadline: f64) -> PyResult<()> {
        let driver = {
            let inner = self.lock();
            if now < inner.due && inner.due <= deadline {
                return Ok(());
            }
            inner.driver.as_ref().map(|driver| driver.clone_ref(py))
        };
        let Some(driver) = driver else { return Ok(()) };
        let driver = driver.bind(py);
        let due: f64 = driver.getattr(intern!(py, "due"))?.extract()?;
        self.lock().due = due;
        if deadline < due {
            driver.call_method0(intern!(py, "arm"))?;
        }
        Ok(())
    }

    fn send(&self, py: Python<'_>, data: &[u8]) {
        let hub = self.hub.get();
        let now_ns = monotonic_ns();
        let outcome = {
            let mut inner = self.lock();
            if inner.is_closing {
                return;
            }
            inner.asked_ns.get_or_insert(now_ns);
            let Some(socket) = &mut inner.socket else { return };
            if let Some(held) = &mut hub.lock().held {
                held.tokens.push(self.token);
                socket.queue(data);
                None
            } else {
                Some(socket.send(data))
            }
        };
        match outcome {
            Some(outcome) => self.sent(py, outcome),
            // Tasks that compute must not hold up what others asked before them.
            None if hub.holds_too_long(now_ns) => hub.flush(py),
            None => {}
        }
    }

    fn flush(&self, py: Python<'_>) {
        let outcome = {
            let mut inner = self.lock();
            let Some(socket) = &mut inner.socket else { return };
            socket.flush()
        };
        self.sent(py, outcome);
    }

    /// Sees to what is left after something was sent.
    fn sent(&self, py: Python<'_>, outcome: io::Result<()>) {
        if let Err(error) = outcome {
            if is_peers_end(&error) && self.goes_on_reading() {
                return; // the peer's last words first; its end comes behind them
            }
            return self.end(py, Some(error));
        }
        let (unsent, is_closing, was_blocked) = {
            let mut inner = self.lock();
            let unsent = inner.socket.as_ref().map_or(0, Socket::unsent_bytes);
            (unsent, inner.is_closing, std::mem::replace(&mut inner.is_blocked, unsent > 0))
        };
        if unsent > self.max_unsent_bytes || (is_closing && unsent == 0) {
            self.end(py, None);
        } else if was_blocked != (unsent > 0) {
            self.watch(py);
        }
    }

    /// Forgets what the peer will never read.
    fn goes_on_reading(&self) -> bool {
        let mut inner = self.lock();
        let is_reading = !inner.is_closing;
        if let Some(socket) = &mut inner.socket {
            socket.discard();
        }
        is_reading
    }

    /// Reads once; how many bytes. The connection's end is seen to.
    fn receive(&self, py: Python<'_>, buffer: &mut [u8]) -> usize {
        let received = {
            let inner = self.lock();
            match &inner.socket {
                Some(socket) if !inner.is_closing => socket.receive(buffer),
                _ => return 0,
            }
        };
        match received {
            Ok(Received::Bytes(count)) => return count,
            Ok(Received::Nothing) => {}
            Ok(Received::End) => self.end(py, None),
            Err(error) => self.end(py, Some(error)),
        }
        0
    }

    fn feed(&self, py: Python<'_>, bytes: &[u8], now: f64) -> PyResult<()> {
        let fed = self.endpoint.get().feed(py, bytes, now)?;
        if !fed.output.is_empty() {
            self.send(py, &fed.output);
        }
        if fed.is_over {
            self.close(py);
        }
        Ok(())
    }

    /// Watches for what is wanted now.
    fn watch(&self, py: Python<'_>) {
        let outcome = {
            let inner = self.lock();
            let Some(socket) = &inner.socket else { return };
            let (reading, writing) = (!inner.is_closing, socket.unsent_bytes() > 0);
            let hub = self.hub.get();
            hub.with_poller(|it| it.watch(socket, self.token, inner.haste, reading, writing))
        };
        if outcome.is_err() {
            self.end(py, None);
        }
    }

    /// Closes the socket and sees to it that the driver hears of it.
    fn end(&self, py: Python<'_>, error: Option<io::Error>) {
        let (held, driver) = {
            let mut inner = self.lock();
            let Some(socket) = inner.socket.take() else { return };
            // Removed before it is closed: its number may be somebody else's then.
            let held = self.hub.get().forget(self.token, &socket, inner.haste);
            drop(socket);
            (held, inner.driver.take())
        };
        if let Some(driver) = driver
            && let Err(error) = self.tell_loss(py, &driver, error)
        {
            // The loop is closed, and nobody is left to hear of it.
            error.write_unraisable(py, None);
        }
        drop(held);
    }

    fn tell_loss(
        &self,
        py: Python<'_>,
        driver: &Py<PyAny>,
        error: Option<io::Error>,
    ) -> PyResult<()> {
        let event_loop = self.hub.get().event_loop.bind(py);
        if event_loop.call_method0(intern!(py, "is_closed"))?.is_truthy()? {
            return Ok(());
        }
        let error = error.map(|error| PyErr::from(error).into_value(py));
        let lost = driver.bind(py).getattr(intern!(py, "connection_lost"))?;
        event_loop.call_method1(intern!(py, "call_soon"), (lost, error)).map(drop)
    }
}

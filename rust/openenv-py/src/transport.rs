//! `Transport`: one socket of a hub, with the face of `asyncio.Transport` that a driver needs.
//!
//! Locks: a transport's before its hub's, and none while Python code runs.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use openenv_net::{Haste, Received, RoundTrip, Socket, monotonic_ns};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyBytes;
use pyo3::{PyTraverseError, PyVisit};

use crate::client::{ClientEndpoint, Submitted};
use crate::decoder::Decoder;
use crate::hub::{Hold, Hub};

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
    pub(crate) fn new(
        hub: Py<Hub>,
        token: u64,
        socket: Socket,
        endpoint: Py<ClientEndpoint>,
        driver: Py<PyAny>,
        max_unsent_bytes: usize,
    ) -> Self {
        let inner = Inner {
            socket: Some(socket),
            driver: Some(driver),
            haste: Haste::Prompt,
            is_closing: false,
            is_blocked: false,
            due: f64::NEG_INFINITY,
            asked_ns: None,
            round_trip: RoundTrip::default(),
        };
        Self { hub, endpoint, token, max_unsent_bytes, inner: Mutex::new(inner) }
    }

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
        let mut inner = self.lock();
        if inner.is_closing {
            return;
        }
        inner.asked_ns.get_or_insert(now_ns);
        let Some(socket) = &mut inner.socket else { return };
        match hub.hold(self.token, now_ns) {
            None => {
                let outcome = socket.send(data);
                drop(inner);
                self.sent(py, outcome);
            }
            Some(Hold::On) => socket.queue(data),
            Some(Hold::Over) => {
                socket.queue(data);
                drop(inner);
                hub.flush(py);
            }
        }
    }

    pub(crate) fn flush(&self, py: Python<'_>) {
        let outcome = {
            let mut inner = self.lock();
            let Some(socket) = &mut inner.socket else { return };
            socket.flush()
        };
        self.sent(py, outcome);
    }

    /// Sees to what is left after something was sent.
    fn sent(&self, py: Python<'_>, outcome: io::Result<()>) {
        match outcome {
            Ok(()) => {}
            Err(error) if is_peers_end(&error) && self.is_reading() => {
                // The peer's last words first; its end comes behind them.
                return self.discard();
            }
            Err(error) => return self.end(py, Some(error)),
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

    fn is_reading(&self) -> bool {
        !self.lock().is_closing
    }

    /// Forgets what the peer will never read.
    fn discard(&self) {
        if let Some(socket) = &mut self.lock().socket {
            socket.discard();
        }
    }

    /// Measures the round trip that something to read is the end of, if it is.
    pub(crate) fn note_answer(&self, now_ns: u64) -> bool {
        let mut inner = self.lock();
        let Some(asked_ns) = inner.asked_ns.take() else { return false };
        let round_trip_ns = now_ns.saturating_sub(asked_ns);
        inner.round_trip.note(round_trip_ns);
        let period_ns = self.hub.get().answered(round_trip_ns);
        if period_ns > 0 {
            self.move_by(&mut inner, period_ns);
        }
        true
    }

    /// Puts the socket among the prompt or the patient ones, as the session's round trips are.
    fn move_by(&self, inner: &mut Inner, period_ns: u64) {
        let is_patient = inner.round_trip.is_patient(period_ns);
        let haste = if is_patient { Haste::Patient } else { Haste::Prompt };
        if haste == inner.haste || inner.is_blocked || inner.is_closing {
            return; // blocked or closing, it is watched for more than reading
        }
        let Some(socket) = &inner.socket else { return };
        let moved = self.hub.get().with_poller(|poller| {
            poller.remove(socket, inner.haste)?;
            // As it was added before, and there is one place less taken than then.
            let _ = poller.add(socket, self.token, haste);
            Ok(())
        });
        if moved.is_ok() {
            inner.haste = haste;
        }
    }

    /// Reads once; how many bytes. The connection's end is seen to.
    pub(crate) fn receive(&self, py: Python<'_>, buffer: &mut [u8]) -> usize {
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

    pub(crate) fn feed(&self, py: Python<'_>, bytes: &[u8], now: f64) -> PyResult<()> {
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
    pub(crate) fn end(&self, py: Python<'_>, error: Option<io::Error>) {
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

/// The event loop that runs in this thread, or None.
fn running_loop(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    static RUNNING_LOOP: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    RUNNING_LOOP.import(py, "asyncio", "_get_running_loop")?.call0()
}

fn is_peers_end(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

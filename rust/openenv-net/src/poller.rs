//! One descriptor for many sockets.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

/// Sockets told of in one turn; the others are told of in the next.
const TURN: usize = 256;
const NANOSECONDS: u64 = 1_000_000_000;
const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// What can be done on a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "there is no more to say of a socket")]
pub struct Ready {
    /// What the socket was added with.
    pub token: u64,
    /// There is something to read: bytes, the end, or an error.
    pub readable: bool,
    /// There is room to write again.
    pub writable: bool,
}

/// How soon what comes on a socket is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "at once, or not")]
pub enum Haste {
    /// At once.
    Prompt,
    /// Once a period, while there is one.
    Patient,
}

/// Watches sockets; an event loop watches its [`door`](Self::door).
#[derive(Debug)]
pub struct Poller {
    door: OwnedFd,
    prompt: OwnedFd,
    patient: OwnedFd,
    timer: OwnedFd,
    period_ns: u64,
    /// How many prompt sockets there are.
    prompts: usize,
}

impl Poller {
    /// A poller that watches nothing.
    ///
    /// # Errors
    /// The system has no descriptor left, or forbids one of its kind.
    pub fn new() -> io::Result<Self> {
        let door = epoll::create(CreateFlags::CLOEXEC)?;
        let prompt = epoll::create(CreateFlags::CLOEXEC)?;
        let patient = epoll::create(CreateFlags::CLOEXEC)?;
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )?;
        for source in [&prompt, &patient, &timer] {
            epoll::add(&door, source, EventData::new_u64(0), EventFlags::IN)?;
        }
        Ok(Self { door, prompt, patient, timer, period_ns: 0, prompts: 0 })
    }

    /// Readable whenever [`poll`](Self::poll) should be called.
    pub fn door(&self) -> BorrowedFd<'_> {
        self.door.as_fd()
    }

    /// Watches a socket for something to read.
    ///
    /// # Errors
    /// The system refuses, or the socket is watched already.
    pub fn add(&mut self, socket: impl AsFd, token: u64, haste: Haste) -> io::Result<()> {
        epoll::add(self.set(haste), socket, EventData::new_u64(token), EventFlags::IN)?;
        self.prompts += usize::from(haste == Haste::Prompt);
        Ok(())
    }

    /// Says what a socket that was added is watched for.
    ///
    /// # Errors
    /// It is not watched.
    pub fn watch(
        &self,
        socket: impl AsFd,
        token: u64,
        haste: Haste,
        reading: bool,
        writing: bool,
    ) -> io::Result<()> {
        let mut flags = EventFlags::empty();
        flags.set(EventFlags::IN, reading);
        flags.set(EventFlags::OUT, writing);
        Ok(epoll::modify(self.set(haste), socket, EventData::new_u64(token), flags)?)
    }

    /// Watches a socket no more. Closing is not enough: a forked process may hold it open.
    ///
    /// # Errors
    /// It is not watched.
    pub fn remove(&mut self, socket: impl AsFd, haste: Haste) -> io::Result<()> {
        epoll::delete(self.set(haste), socket)?;
        self.prompts -= usize::from(haste == Haste::Prompt);
        Ok(())
    }

    /// Appends what is ready now; never waits. Tells whether the patient sockets were looked at.
    ///
    /// # Errors
    /// The system refuses.
    pub fn poll(&mut self, ready: &mut Vec<Ready>) -> io::Result<bool> {
        if self.prompts > 0 {
            take(&self.prompt, ready)?;
        }
        let is_time = self.period_ns == 0 || rustix::io::read(&self.timer, &mut [0; 8]).is_ok();
        if is_time {
            take(&self.patient, ready)?;
        }
        Ok(is_time)
    }

    /// Opens the door for patient sockets every `period_ns` nanoseconds, whether anything is ready
    /// or not; 0: whenever something is.
    ///
    /// # Errors
    /// The system refuses.
    pub fn set_period(&mut self, period_ns: u64) -> io::Result<()> {
        if period_ns == self.period_ns {
            return Ok(());
        }
        if (period_ns == 0) != (self.period_ns == 0) {
            let flags = if period_ns == 0 { EventFlags::IN } else { EventFlags::empty() };
            epoll::modify(&self.door, &self.patient, EventData::new_u64(0), flags)?;
        }
        self.period_ns = period_ns;
        let every = timespec(period_ns);
        let timer = Itimerspec { it_interval: every, it_value: every };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &timer)?;
        Ok(())
    }

    fn set(&self, haste: Haste) -> &OwnedFd {
        match haste {
            Haste::Prompt => &self.prompt,
            Haste::Patient => &self.patient,
        }
    }
}

fn take(set: &OwnedFd, ready: &mut Vec<Ready>) -> io::Result<()> {
    let mut events = [MaybeUninit::<Event>::uninit(); TURN];
    let (events, _) = epoll::wait(set, &mut events, Some(&AT_ONCE))?;
    ready.extend(events.iter().map(|event| {
        let flags = event.flags;
        Ready {
            token: event.data.u64(),
            readable: flags.intersects(EventFlags::IN | EventFlags::ERR | EventFlags::HUP),
            writable: flags.intersects(EventFlags::OUT | EventFlags::ERR | EventFlags::HUP),
        }
    }));
    Ok(())
}

#[expect(clippy::cast_possible_wrap, reason = "seconds of a u64 of nanoseconds fit")]
fn timespec(nanoseconds: u64) -> Timespec {
    Timespec {
        tv_sec: (nanoseconds / NANOSECONDS) as i64,
        tv_nsec: (nanoseconds % NANOSECONDS) as i64,
    }
}

//! Two byte streams, one each way, under weather.
//!
//! States of the link and of each direction:
//!
//! ```text
//!   link:       whole ──cut──> cut            (either by the caller or at a byte that weather chose)
//!   direction:  flowing ──finish──> finished  (what was sent arrives, then Eof)
//! ```
//!
//! | | whole, flowing | whole, finished | cut |
//! |---|---|---|---|
//! | `send` | arrives | dropped | dropped |
//! | `finish` | Eof arrives last | nothing | nothing |
//! | `cut` | part of what travels arrives, then `Lost` unless silent | the same | nothing |
//!
//! An end that was told `Eof` or `Lost` gets nothing more after `Lost`; after `Eof` only `Lost`.

use alloc::{collections::VecDeque, vec::Vec};

use crate::random::Random;

/// One of the two ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a link has two ends")]
pub enum End {
    /// By custom the client.
    Left,
    /// By custom the server.
    Right,
}

/// What an end is told.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "what a stream can tell, as in asyncio.Protocol")]
pub enum Arrival {
    /// One read; never empty.
    Bytes(Vec<u8>),
    /// The other end has finished sending.
    Eof,
    /// The connection was reset.
    Lost,
}

/// Whether a cut is told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a cut is told or it is not")]
pub enum CutKind {
    /// Both ends are told `Lost`, as by a TCP reset.
    Reset,
    /// Nobody is told and nothing arrives any more, as with a half-open peer.
    Silent,
}

/// A cut at a byte that the seed chooses.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "built by tests")]
pub struct Cut {
    /// Whether it is told.
    pub kind: CutKind,
    /// It falls on one of the first `within_bytes` bytes sent, both directions together.
    pub within_bytes: u64,
}

/// How a link treats what it carries.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "built by tests")]
pub struct Weather {
    /// A send is split into chunks of 1 to this many bytes; 0 leaves sends whole.
    pub max_chunk_bytes: usize,
    /// Each chunk travels 0 to this long; order is kept.
    pub max_delay_ns: u64,
    /// Of 100 chunks that are due behind another, as many join its read.
    pub join_percent: u8,
    /// Whether the link is cut on the way.
    pub cut: Option<Cut>,
}

impl Weather {
    /// One send is one read, at once, for ever.
    pub const CALM: Self = Self { max_chunk_bytes: 0, max_delay_ns: 0, join_percent: 0, cut: None };

    /// Small chunks, up to 5 ms of delay, half of the due chunks joined, no cut.
    pub const ROUGH: Self =
        Self { max_chunk_bytes: 7, max_delay_ns: 5_000_000, join_percent: 50, cut: None };
}

/// The link. See the module's theory.
#[derive(Debug)]
pub struct Link {
    random: Random,
    weather: Weather,
    /// Bytes that may still be sent before the cut, and its kind.
    cut_in: Option<(u64, CutKind)>,
    is_cut: bool,
    to_left: Direction,
    to_right: Direction,
}

#[derive(Debug, Default)]
struct Direction {
    is_finished: bool,
    travelling: VecDeque<(u64, Arrival)>,
    last_arrival_ns: u64,
}

impl Link {
    /// A whole link whose whims follow from `seed`.
    pub fn new(seed: u64, weather: Weather) -> Self {
        let mut random = Random::new(seed);
        let cut_in =
            weather.cut.map(|cut| (random.up_to(cut.within_bytes.saturating_sub(1)), cut.kind));
        Self {
            random,
            weather,
            cut_in,
            is_cut: false,
            to_left: Direction::default(),
            to_right: Direction::default(),
        }
    }

    /// `from` writes `bytes`.
    pub fn send(&mut self, from: End, bytes: &[u8], now_ns: u64) {
        if self.is_cut || self.direction(from.other()).is_finished {
            return;
        }
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        match &mut self.cut_in {
            Some((left, kind)) if *left < length => {
                let (left, kind) = (usize::try_from(*left).unwrap_or(usize::MAX), *kind);
                self.carry(from.other(), bytes.get(..left).unwrap_or(bytes), now_ns);
                self.cut(kind, now_ns);
            }
            Some((left, _)) => {
                *left -= length;
                self.carry(from.other(), bytes, now_ns);
            }
            None => self.carry(from.other(), bytes, now_ns),
        }
    }

    /// `from` will write no more; what it wrote still arrives.
    pub fn finish(&mut self, from: End, now_ns: u64) {
        if self.is_cut || self.direction(from.other()).is_finished {
            return;
        }
        self.direction(from.other()).is_finished = true;
        self.depart(from.other(), Arrival::Eof, now_ns);
    }

    /// Cuts both directions. How much of what travels still arrives, the seed decides.
    pub fn cut(&mut self, kind: CutKind, now_ns: u64) {
        if self.is_cut {
            return;
        }
        self.is_cut = true;
        for end in [End::Left, End::Right] {
            let travelling = self.direction(end).travelling.len();
            let kept = self.random.up_to_len(travelling);
            self.direction(end).travelling.truncate(kept);
            if kind == CutKind::Reset {
                self.depart(end, Arrival::Lost, now_ns);
            }
        }
    }

    /// What has arrived at `end` by `now_ns`: one read. Call until `None`.
    pub fn receive(&mut self, end: End, now_ns: u64) -> Option<Arrival> {
        let mut arrival = self.direction(end).pop_due(now_ns)?;
        if let Arrival::Bytes(read) = &mut arrival {
            while self.direction(end).bytes_are_due(now_ns)
                && self.random.chance(self.weather.join_percent)
            {
                if let Some(Arrival::Bytes(more)) = self.direction(end).pop_due(now_ns) {
                    read.extend_from_slice(&more);
                }
            }
        }
        Some(arrival)
    }

    /// When the next thing arrives at either end.
    pub fn next_arrival_ns(&self) -> Option<u64> {
        let first = |direction: &Direction| direction.travelling.front().map(|(at_ns, _)| *at_ns);
        first(&self.to_left).into_iter().chain(first(&self.to_right)).min()
    }

    /// The link was cut, by the caller or by the weather.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    fn carry(&mut self, to: End, mut bytes: &[u8], now_ns: u64) {
        while !bytes.is_empty() {
            let length = match self.weather.max_chunk_bytes {
                0 => bytes.len(),
                max => bytes.len().min(1 + self.random.up_to_len(max - 1)),
            };
            let (chunk, rest) = bytes.split_at(length);
            self.depart(to, Arrival::Bytes(chunk.to_vec()), now_ns);
            bytes = rest;
        }
    }

    fn depart(&mut self, to: End, arrival: Arrival, now_ns: u64) {
        let delay_ns = self.random.up_to(self.weather.max_delay_ns);
        let direction = self.direction(to);
        let at_ns = now_ns.saturating_add(delay_ns).max(direction.last_arrival_ns);
        direction.last_arrival_ns = at_ns;
        direction.travelling.push_back((at_ns, arrival));
    }

    fn direction(&mut self, to: End) -> &mut Direction {
        match to {
            End::Left => &mut self.to_left,
            End::Right => &mut self.to_right,
        }
    }
}

impl End {
    /// The end opposite.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Left => Self::Right,
            Self::Right => Self::Left,
        }
    }
}

impl Direction {
    fn pop_due(&mut self, now_ns: u64) -> Option<Arrival> {
        self.travelling.front().filter(|(at_ns, _)| *at_ns <= now_ns)?;
        self.travelling.pop_front().map(|(_, arrival)| arrival)
    }

    fn bytes_are_due(&self, now_ns: u64) -> bool {
        matches!(self.travelling.front(), Some((at_ns, Arrival::Bytes(_))) if *at_ns <= now_ns)
    }
}

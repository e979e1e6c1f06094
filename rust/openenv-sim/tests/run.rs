//! Two toy peers on a link: an asker with a timeout, and an echo.

use openenv_sim::{Arrival, Clock, CutKind, End, Link, Peer, Stop, Weather, run_until};

/// Asks `left` times for one byte, one after another; gives up 1,000 ns after an ask.
#[derive(Debug, Default)]
struct Asker {
    left: u32,
    due_ns: Option<u64>,
    answered: u32,
    gave_up: bool,
}

impl Asker {
    fn ask(&mut self, now_ns: u64, out: &mut Vec<u8>) {
        self.due_ns = None;
        if self.left > 0 {
            self.left -= 1;
            self.due_ns = Some(now_ns + 1000);
            out.push(b'?');
        }
    }
}

impl Peer for Asker {
    fn receive(&mut self, arrival: Arrival, now_ns: u64, out: &mut Vec<u8>) {
        if let Arrival::Bytes(_) = arrival {
            self.answered += 1;
            self.ask(now_ns, out);
        }
    }

    fn tick(&mut self, now_ns: u64, out: &mut Vec<u8>) {
        if self.due_ns.is_some_and(|due_ns| due_ns <= now_ns) {
            self.gave_up = true;
            self.due_ns = None;
        } else if self.due_ns.is_none() && self.answered == 0 && !self.gave_up {
            self.ask(now_ns, out);
        }
    }

    fn next_timeout_ns(&self) -> Option<u64> {
        self.due_ns
    }

    fn is_finished(&self) -> bool {
        self.left == 0 && self.due_ns.is_none()
    }
}

#[derive(Debug, Default)]
struct Echo {
    is_eof: bool,
    /// A timer that never moves on.
    stuck: bool,
}

impl Peer for Echo {
    fn receive(&mut self, arrival: Arrival, _now_ns: u64, out: &mut Vec<u8>) {
        match arrival {
            Arrival::Bytes(bytes) => out.extend_from_slice(&bytes),
            Arrival::Eof | Arrival::Lost => self.is_eof = true,
        }
    }

    fn tick(&mut self, _now_ns: u64, _out: &mut Vec<u8>) {}

    fn next_timeout_ns(&self) -> Option<u64> {
        self.stuck.then_some(0)
    }

    fn is_finished(&self) -> bool {
        self.is_eof
    }
}

#[test]
fn peers_talk_until_nothing_is_left() {
    let weather = Weather { max_delay_ns: 100, ..Weather::ROUGH };
    for seed in 0..50 {
        let (mut clock, mut link) = (Clock::new(), Link::new(seed, weather));
        let (mut asker, mut echo) = (Asker { left: 10, ..Asker::default() }, Echo::default());

        let stop = run_until(1_000_000, &mut clock, &mut link, &mut asker, &mut echo);

        assert_eq!((Stop::Quiet, 10, false), (stop, asker.answered, asker.gave_up), "{seed}");
        assert!(echo.is_eof);
    }
}

#[test]
fn a_silent_cut_is_found_by_the_timer_alone() {
    let (mut clock, mut link) = (Clock::new(), Link::new(0, Weather::CALM));
    let (mut asker, mut echo) = (Asker { left: 1, ..Asker::default() }, Echo::default());
    link.cut(CutKind::Silent, 0);

    let stop = run_until(1_000_000, &mut clock, &mut link, &mut asker, &mut echo);

    assert_eq!((Stop::Quiet, true, 1000), (stop, asker.gave_up, clock.now_ns()));
}

#[test]
fn the_deadline_stops_a_run_at_its_instant() {
    let (mut clock, mut link) = (Clock::new(), Link::new(0, Weather::CALM));
    let (mut asker, mut echo) = (Asker { left: 1, ..Asker::default() }, Echo::default());
    link.cut(CutKind::Silent, 0);

    let stop = run_until(999, &mut clock, &mut link, &mut asker, &mut echo);

    assert_eq!((Stop::Deadline, false, 999), (stop, asker.gave_up, clock.now_ns()));
}

#[test]
fn a_timer_that_does_not_move_on_is_told() {
    let (mut clock, mut link) = (Clock::new(), Link::new(0, Weather::CALM));
    let (mut asker, mut echo) = (Asker::default(), Echo { stuck: true, ..Echo::default() });

    assert_eq!(Stop::Stuck, run_until(9, &mut clock, &mut link, &mut asker, &mut echo));
}

#[test]
fn ends_are_opposite() {
    assert_eq!((End::Right, End::Left), (End::Left.other(), End::Right.other()));
}

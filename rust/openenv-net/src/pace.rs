//! For how long answers may be held back.

/// No answer waits longer.
const LONGEST_NS: u64 = 4_000_000;
/// A timer that fires more often costs more than it saves.
const SHORTEST_NS: u64 = 100_000;
/// The part of the round trip that may be added to it.
const ROUND_TRIPS: u64 = 10;
/// How many answers a period must bring to be worth it.
const WORTH_ANSWERS: u64 = 2;
/// How long a shortest round trip is remembered, at least; at most twice as long.
const WINDOW_NS: u64 = 100_000_000;
/// Empty periods after which the answers are over.
const EMPTY_PERIODS: u32 = 2;

/// Says for how long answers may be held back so that several are read at one wake-up.
///
/// The *period* is a twentieth of the shortest round trip of late, at most a millisecond, and zero
/// (answers are read as they come) unless at least two answers are due in it. So a few sessions, a
/// fast server or a server that has fallen silent are never held back. The shortest round trip
/// counts, not the usual one: one session on a fast server does not wait for a thousand on a slow.
#[derive(Debug, Default)]
pub struct Pace {
    period_ns: u64,
    /// Smoothed nanoseconds from answer to answer; 0 until known.
    interval_ns: u64,
    last_ns: u64,
    window_began_ns: u64,
    shortest_now_ns: Option<u64>,
    shortest_before_ns: Option<u64>,
    empty: u32,
}

impl Pace {
    /// Takes note of a request that was answered after `round_trip_ns`.
    pub fn answered(&mut self, round_trip_ns: u64) {
        let shortest = self.shortest_now_ns.map_or(round_trip_ns, |it| it.min(round_trip_ns));
        self.shortest_now_ns = Some(shortest);
    }

    /// Takes note that `answers` were read at `now_ns`, and returns the period from now on.
    pub fn turn(&mut self, answers: usize, now_ns: u64) -> u64 {
        if answers == 0 {
            self.empty += 1;
            if self.empty >= EMPTY_PERIODS {
                self.period_ns = 0;
            }
            return self.period_ns;
        }
        self.empty = 0;
        self.note_interval(answers, now_ns);
        let shortest = [self.shortest_now_ns, self.shortest_before_ns].into_iter().flatten().min();
        let wanted = shortest.unwrap_or(0) / ROUND_TRIPS;
        self.settle(wanted.min(LONGEST_NS));
        if now_ns.saturating_sub(self.window_began_ns) >= WINDOW_NS {
            self.window_began_ns = now_ns;
            self.shortest_before_ns = self.shortest_now_ns.take();
        }
        self.period_ns
    }

    fn note_interval(&mut self, answers: usize, now_ns: u64) {
        let elapsed = now_ns.saturating_sub(self.last_ns);
        self.last_ns = now_ns;
        let sample = elapsed / u64::try_from(answers).unwrap_or(u64::MAX);
        self.interval_ns = match self.interval_ns {
            0 => sample,
            known => (known * 7 + sample) / 8,
        };
    }

    fn settle(&mut self, wanted_ns: u64) {
        let worth = self.interval_ns.saturating_mul(WORTH_ANSWERS);
        if wanted_ns < SHORTEST_NS || wanted_ns < worth {
            self.period_ns = 0;
        } else if wanted_ns.abs_diff(self.period_ns) > self.period_ns / 4 {
            self.period_ns = wanted_ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const US: u64 = 1_000;

    /// Lets `answers` come every `every_ns`, each after `round_trip_ns`, for half a second.
    fn settled(pace: &mut Pace, answers: usize, every_ns: u64, round_trip_ns: u64) -> u64 {
        let mut period = 0;
        let start = pace.last_ns;
        for turn in 1..=(500 * MS / every_ns) {
            for _ in 0..answers {
                pace.answered(round_trip_ns);
            }
            period = pace.turn(answers, start + turn * every_ns);
        }
        period
    }

    #[test]
    fn a_busy_slow_server_is_read_a_twentieth_of_the_round_trip_late() {
        assert_eq!(settled(&mut Pace::default(), 1, 150 * US, 9_600 * US), 480 * US);
    }

    #[test]
    fn no_answer_waits_longer_than_a_millisecond() {
        assert_eq!(settled(&mut Pace::default(), 1, 150 * US, 150 * MS), MS);
    }

    #[test]
    fn few_sessions_and_fast_servers_are_read_at_once() {
        assert_eq!(settled(&mut Pace::default(), 1, 150 * US, 1_200 * US), 0);
        assert_eq!(settled(&mut Pace::default(), 1, 10 * US, 640 * US), 0);
    }

    #[test]
    fn one_session_on_a_fast_server_rules() {
        let mut pace = Pace::default();
        assert_eq!(settled(&mut pace, 1, 150 * US, 150 * MS), MS);
        pace.answered(400 * US);
        assert_eq!(pace.turn(1, pace.last_ns + 150 * US), 0);
    }

    #[test]
    fn a_fast_session_that_left_is_forgotten() {
        let mut pace = Pace::default();
        settled(&mut pace, 1, 150 * US, 400 * US);
        assert_eq!(settled(&mut pace, 1, 150 * US, 150 * MS), MS);
    }

    #[test]
    fn silence_ends_it() {
        let mut pace = Pace::default();
        settled(&mut pace, 5, MS, 150 * MS);
        assert_eq!(pace.turn(0, pace.last_ns + MS), MS);
        assert_eq!(pace.turn(0, pace.last_ns + 2 * MS), 0);
    }

    #[test]
    fn a_period_that_hardly_changes_is_kept() {
        let mut pace = Pace::default();
        assert_eq!(settled(&mut pace, 1, 50 * US, 10 * MS), 500 * US);
        assert_eq!(settled(&mut pace, 1, 50 * US, 11 * MS), 500 * US);
    }
}

//! For how long answers may be held back.

/// No answer waits longer.
const LONGEST_NS: u64 = 4_000_000;
/// A timer that fires more often costs more than it saves.
const SHORTEST_NS: u64 = 100_000;
/// Periods in a usual round trip. An answer waits for half a period on average, a twentieth.
const PERIODS: u64 = 10;
/// Periods in the round trips of a session whose answers may be held back at all.
const PERIODS_AT_LEAST: u64 = 5;
/// How many answers a period must bring to be worth it.
const WORTH_ANSWERS: u64 = 2;
/// Empty periods after which the answers are over: a server may answer in bursts, a round trip apart.
const EMPTY_PERIODS: u32 = 10;
const MILLI: u64 = 1_000;

/// Says for how long answers may be held back so that several are read at one wake-up.
///
/// The *period* is a tenth of the usual round trip, at most four milliseconds, and zero (answers
/// are read as they come) unless at least two answers are due in it. So a few sessions, a fast
/// server or a server that has fallen silent are never held back; and a quick session beside a
/// thousand slow ones is not either, since each [`RoundTrip`] tells whether it is patient.
#[derive(Debug, Default)]
pub struct Pace {
    period_ns: u64,
    round_trip_ns: Smoothed,
    /// Nanoseconds from turn to turn, and thousandths of answers in them.
    turn_ns: Smoothed,
    turn_answers: Smoothed,
    last_ns: u64,
    empty: u32,
}

/// One session's usual round trip.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundTrip(Smoothed);

impl RoundTrip {
    /// Takes note of an answer.
    pub fn note(&mut self, nanoseconds: u64) {
        self.0.note(nanoseconds);
    }

    /// The session's answers may be held back for `period_ns`.
    pub fn is_patient(self, period_ns: u64) -> bool {
        self.0.0 >= period_ns.saturating_mul(PERIODS_AT_LEAST)
    }
}

impl Pace {
    /// The period of now.
    pub fn period_ns(&self) -> u64 {
        self.period_ns
    }

    /// Takes note of a request that was answered after `round_trip_ns`.
    pub fn answered(&mut self, round_trip_ns: u64) {
        self.round_trip_ns.note(round_trip_ns);
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
        let elapsed_ns = now_ns.saturating_sub(self.last_ns);
        self.last_ns = now_ns;
        self.turn_ns.note(elapsed_ns);
        self.turn_answers.note(u64::try_from(answers).unwrap_or(u64::MAX).saturating_mul(MILLI));
        self.settle((self.round_trip_ns.0 / PERIODS).min(LONGEST_NS));
        self.period_ns
    }

    fn settle(&mut self, wanted_ns: u64) {
        let interval_ns = self.turn_ns.0.saturating_mul(MILLI) / self.turn_answers.0.max(1);
        let worth_ns = interval_ns.saturating_mul(WORTH_ANSWERS);
        if wanted_ns < SHORTEST_NS || wanted_ns < worth_ns {
            self.period_ns = 0;
        } else if wanted_ns.abs_diff(self.period_ns) > self.period_ns / 4 {
            self.period_ns = wanted_ns;
        }
    }
}

/// A mean of the last samples, more or less; 0 until there is one.
#[derive(Clone, Copy, Debug, Default)]
struct Smoothed(u64);

impl Smoothed {
    fn note(&mut self, sample: u64) {
        self.0 = match self.0 {
            0 => sample,
            mean => mean - mean / 8 + sample / 8,
        };
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
    fn a_busy_slow_server_is_read_ten_times_a_round_trip() {
        assert_eq!(settled(&mut Pace::default(), 1, 150 * US, 9_600 * US), 960 * US);
    }

    #[test]
    fn no_answer_waits_longer_than_four_milliseconds() {
        assert_eq!(settled(&mut Pace::default(), 1, 150 * US, 150 * MS), 4 * MS);
    }

    #[test]
    fn few_sessions_and_fast_servers_are_read_at_once() {
        assert_eq!(settled(&mut Pace::default(), 1, 150 * US, 1_200 * US), 0);
        assert_eq!(settled(&mut Pace::default(), 1, 10 * US, 640 * US), 0);
    }

    #[test]
    fn only_sessions_with_long_round_trips_are_patient() {
        let mut trips = [RoundTrip::default(); 3];
        for (trip, ms) in trips.iter_mut().zip([150, 20, 19]) {
            trip.note(ms * MS);
        }
        assert_eq!(trips.map(|trip| trip.is_patient(4 * MS)), [true, true, false]);
        assert!(!RoundTrip::default().is_patient(SHORTEST_NS));
    }

    #[test]
    fn one_late_answer_makes_no_session_patient() {
        let mut trip = RoundTrip::default();
        for _ in 0..10 {
            trip.note(MS);
        }
        trip.note(100 * MS);
        assert!(!trip.is_patient(4 * MS));
    }

    #[test]
    fn silence_ends_it() {
        let mut pace = Pace::default();
        settled(&mut pace, 5, MS, 150 * MS);
        for empty in 1..EMPTY_PERIODS {
            assert_eq!(pace.turn(0, pace.last_ns + u64::from(empty) * 4 * MS), 4 * MS);
        }
        assert_eq!(pace.turn(0, pace.last_ns + 40 * MS), 0);
    }

    #[test]
    fn bursts_do_not_end_it() {
        let mut pace = Pace::default();
        for burst in 1..100 {
            for (late_us, answers) in [(0, 1), (300, 10), (600, 9)] {
                for _ in 0..answers {
                    pace.answered(9_600 * US);
                }
                pace.turn(answers, burst * 5 * MS + late_us * US);
            }
            assert!(burst < 10 || pace.period_ns() == 960 * US);
        }
    }

    #[test]
    fn a_period_that_hardly_changes_is_kept() {
        let mut pace = Pace::default();
        assert_eq!(settled(&mut pace, 1, 50 * US, 10 * MS), MS);
        assert_eq!(settled(&mut pace, 1, 50 * US, 11 * MS), MS);
        assert_ne!(settled(&mut pace, 1, 50 * US, 20 * MS), MS);
    }
}

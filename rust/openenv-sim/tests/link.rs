//! The link keeps order and bytes, breaks everything else, and is the same for the same seed.

use openenv_sim::{Arrival, Clock, Cut, CutKind, End, Link, Random, Weather};
use proptest::prelude::*;

fn bytes(text: &str) -> Arrival {
    Arrival::Bytes(text.as_bytes().to_vec())
}

/// Everything that arrives at `end` by `now_ns`.
fn arrivals(link: &mut Link, end: End, now_ns: u64) -> Vec<Arrival> {
    core::iter::from_fn(|| link.receive(end, now_ns)).collect()
}

/// The bytes of `arrivals`, and what was told beside them.
fn stream(arrivals: &[Arrival]) -> (Vec<u8>, Vec<&Arrival>) {
    let (mut read, mut told) = (vec![], vec![]);
    for arrival in arrivals {
        match arrival {
            Arrival::Bytes(bytes) => read.extend_from_slice(bytes),
            Arrival::Eof | Arrival::Lost => told.push(arrival),
        }
    }
    (read, told)
}

#[test]
fn in_calm_weather_one_send_is_one_read_at_once() {
    let mut link = Link::new(0, Weather::CALM);
    link.send(End::Left, b"one", 5);
    link.send(End::Left, b"", 5);
    link.send(End::Left, b"two", 6);
    link.send(End::Right, b"back", 6);

    assert_eq!(Some(5), link.next_arrival_ns());
    assert_eq!(vec![bytes("one")], arrivals(&mut link, End::Right, 5));
    assert_eq!(vec![bytes("two")], arrivals(&mut link, End::Right, 6));
    assert_eq!(vec![bytes("back")], arrivals(&mut link, End::Left, 6));
    assert_eq!(None, link.next_arrival_ns());
}

#[test]
fn nothing_arrives_before_its_time() {
    let weather = Weather { max_delay_ns: 1000, ..Weather::CALM };
    let mut link = Link::new(3, weather);
    link.send(End::Left, b"late", 0);
    let at_ns = link.next_arrival_ns().unwrap();

    assert!((1..=1000).contains(&at_ns), "{at_ns}");
    assert_eq!(None, link.receive(End::Right, at_ns - 1));
    assert_eq!(Some(bytes("late")), link.receive(End::Right, at_ns));
}

#[test]
fn finish_tells_eof_last_and_leaves_the_other_direction_open() {
    let mut link = Link::new(0, Weather::CALM);
    link.send(End::Left, b"last", 0);
    link.finish(End::Left, 0);
    link.finish(End::Left, 0);
    link.send(End::Left, b"dropped", 0);
    link.send(End::Right, b"answer", 0);

    assert_eq!(vec![bytes("last"), Arrival::Eof], arrivals(&mut link, End::Right, 0));
    assert_eq!(vec![bytes("answer")], arrivals(&mut link, End::Left, 0));
}

#[test]
fn a_reset_is_told_to_both_ends_once_and_nothing_follows() {
    let mut link = Link::new(0, Weather::CALM);
    link.finish(End::Left, 0);
    assert_eq!(vec![Arrival::Eof], arrivals(&mut link, End::Right, 0));
    link.cut(CutKind::Reset, 1);
    link.cut(CutKind::Reset, 1);
    link.send(End::Right, b"dropped", 2);
    link.finish(End::Right, 2);

    assert!(link.is_cut());
    for end in [End::Left, End::Right] {
        assert_eq!(vec![Arrival::Lost], arrivals(&mut link, end, 2), "{end:?}");
    }
}

#[test]
fn a_silent_cut_is_told_to_nobody() {
    let mut link = Link::new(0, Weather::CALM);
    link.cut(CutKind::Silent, 0);
    link.send(End::Left, b"dropped", 0);

    assert_eq!(None, link.next_arrival_ns());
    assert!(link.is_cut());
}

#[test]
fn each_place_of_a_cut_is_reached_by_some_seed() {
    let cut = Cut { kind: CutKind::Reset, within_bytes: 4 };
    let weather = Weather { cut: Some(cut), ..Weather::CALM };
    let mut lengths = vec![];
    for seed in 0..200 {
        let mut link = Link::new(seed, weather);
        link.send(End::Left, b"abcd", 0);
        assert!(link.is_cut(), "{seed}");
        lengths.push(stream(&arrivals(&mut link, End::Right, 0)).0.len());
    }
    lengths.sort_unstable();
    lengths.dedup();

    assert_eq!(vec![0, 1, 2, 3], lengths);
}

#[test]
fn rough_weather_splits_and_joins() {
    let mut link = Link::new(1, Weather::ROUGH);
    let sends = [b"0123456789".as_slice(); 50];
    for send in sends {
        link.send(End::Left, send, 0);
    }
    let reads = arrivals(&mut link, End::Right, Weather::ROUGH.max_delay_ns);
    let lengths: Vec<usize> =
        reads.iter().map(|read| stream(core::slice::from_ref(read)).0.len()).collect();

    assert_eq!(sends.concat(), stream(&reads).0);
    assert!(lengths.iter().any(|length| *length < 4), "{lengths:?}");
    assert!(lengths.iter().any(|length| *length > 10), "{lengths:?}");
}

#[test]
fn the_clock_moves_only_forward() {
    let mut clock = Clock::new();
    clock.advance(5);
    clock.advance_to(3);
    assert_eq!(5, clock.now_ns());
    clock.advance_to(8);
    assert_eq!(8, clock.now_ns());
    clock.advance(u64::MAX);

    assert_eq!(u64::MAX, clock.now_ns());
}

#[test]
fn random_is_splitmix64_and_keeps_its_bounds() {
    // Reference values of seed 1234567: <https://rosettacode.org/wiki/Pseudo-random_numbers/Splitmix64>.
    let mut random = Random::new(1_234_567);
    assert_eq!(6_457_827_717_110_365_317, random.next_u64());
    assert_eq!(3_203_168_211_198_807_973, random.next_u64());

    let mut seen: Vec<u64> = (0..200).map(|_| random.up_to(3)).collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(vec![0, 1, 2, 3], seen);
    assert_eq!(0, random.up_to(0));
    assert!(!random.chance(0));
    assert!(random.chance(100));
    let mut filled = [0; 11];
    random.fill(&mut filled);
    assert!(filled[8..].iter().any(|byte| *byte != 0));
}

fn weather() -> impl Strategy<Value = Weather> {
    let cut_kind = prop::sample::select(vec![CutKind::Reset, CutKind::Silent]);
    let cut = (cut_kind, 1_u64..400).prop_map(|(kind, within_bytes)| Cut { kind, within_bytes });
    (0_usize..20, 0_u64..1000, 0_u8..=100, prop::option::of(cut)).prop_map(
        |(max_chunk_bytes, max_delay_ns, join_percent, cut)| Weather {
            max_chunk_bytes,
            max_delay_ns,
            join_percent,
            cut,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_arrives_is_what_was_sent_up_to_a_cut(
        seed: u64,
        weather in weather(),
        sends in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20),
    ) {
        let run = || {
            let mut link = Link::new(seed, weather);
            let mut seen = vec![];
            for (number, send) in (0_u64..).zip(&sends) {
                link.send(End::Left, send, number * 100);
                seen.extend(arrivals(&mut link, End::Right, number * 100));
            }
            link.finish(End::Left, 10_000);
            seen.extend(arrivals(&mut link, End::Right, 20_000));
            (seen, link.is_cut())
        };
        let (seen, is_cut) = run();

        prop_assert_eq!((seen.clone(), is_cut), run());
        let (read, told) = stream(&seen);
        let sent = sends.concat();
        let expected = match (is_cut, weather.cut) {
            (true, Some(Cut { kind: CutKind::Silent, .. })) => vec![],
            (true, _) => vec![&Arrival::Lost],
            (false, _) => vec![&Arrival::Eof],
        };
        prop_assert_eq!(expected, told);
        prop_assert!(sent.starts_with(&read));
        prop_assert_eq!(is_cut, read.len() < sent.len());
    }
}

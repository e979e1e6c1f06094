//! The poller and its sockets over real socket pairs.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test")]

use core::time::Duration;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use openenv_net::{Haste, Poller, Ready, Received, Socket};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

fn pair() -> (Socket, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    (Socket::new(OwnedFd::from(ours)), theirs)
}

fn opens_within(poller: &Poller, limit: Duration) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(poller.door(), PollFlags::IN)];
    poll(&mut fds, Some(&Timespec::try_from(limit).unwrap())).unwrap() > 0
}

fn ready(poller: &mut Poller) -> Vec<Ready> {
    let mut found = Vec::new();
    poller.poll(&mut found).unwrap();
    found
}

fn tokens(poller: &mut Poller) -> Vec<u64> {
    ready(poller).iter().map(|it| it.token).collect()
}

#[test]
fn the_door_opens_when_something_has_come() {
    let mut poller = Poller::new().unwrap();
    let (socket, mut peer) = pair();
    poller.add(&socket, 7, Haste::Prompt).unwrap();
    assert!(!opens_within(&poller, Duration::ZERO));
    assert_eq!(ready(&mut poller), []);
    peer.write_all(b"hello").unwrap();
    assert!(opens_within(&poller, Duration::ZERO));
    assert_eq!(ready(&mut poller), [Ready { token: 7, readable: true, writable: false }]);
    let mut bytes = [0; 16];
    assert_eq!(socket.receive(&mut bytes).unwrap(), Received::Bytes(5));
    assert_eq!(socket.receive(&mut bytes).unwrap(), Received::Nothing);
    assert!(!opens_within(&poller, Duration::ZERO));
    drop(peer);
    assert!(opens_within(&poller, Duration::ZERO));
    assert_eq!(socket.receive(&mut bytes).unwrap(), Received::End);
}

#[test]
fn a_socket_that_was_removed_is_not_told_of() {
    let mut poller = Poller::new().unwrap();
    let (socket, mut peer) = pair();
    poller.add(&socket, 1, Haste::Prompt).unwrap();
    poller.remove(&socket, Haste::Prompt).unwrap();
    peer.write_all(b"x").unwrap();
    assert!(!opens_within(&poller, Duration::ZERO));
    assert_eq!(ready(&mut poller), []);
}

#[test]
fn more_sockets_than_a_turn_holds_are_all_told_of() {
    let mut poller = Poller::new().unwrap();
    let pairs: Vec<_> = (0..300).map(|_| pair()).collect();
    for (token, (socket, peer)) in pairs.iter().enumerate() {
        poller.add(socket, token as u64, Haste::Prompt).unwrap();
        (&*peer).write_all(b"x").unwrap();
    }
    let mut told = vec![false; pairs.len()];
    while told.contains(&false) {
        for Ready { token, .. } in ready(&mut poller) {
            let token = usize::try_from(token).unwrap();
            pairs[token].0.receive(&mut [0; 1]).unwrap();
            told[token] = true;
        }
    }
}

#[test]
fn what_a_full_socket_does_not_take_is_sent_later_and_in_order() {
    let mut poller = Poller::new().unwrap();
    let (mut socket, mut peer) = pair();
    poller.add(&socket, 1, Haste::Prompt).unwrap();
    let data: Vec<u8> = (0..4_000_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    let (first, second) = data.split_at(3_000_000);
    socket.send(first).unwrap();
    assert!(socket.unsent_bytes() > 0);
    socket.send(second).unwrap();
    poller.watch(&socket, 1, Haste::Prompt, true, true).unwrap();
    peer.set_nonblocking(true).unwrap();
    let mut got = Vec::new();
    while got.len() < data.len() {
        // Whatever has come is read first, so that the door has to open.
        let _ = peer.read_to_end(&mut got);
        if socket.unsent_bytes() > 0 {
            assert!(opens_within(&poller, Duration::from_secs(10)));
            assert!(ready(&mut poller).iter().all(|it| it.writable));
            socket.flush().unwrap();
        }
    }
    assert_eq!(got, data);
}

#[test]
fn with_a_period_the_door_opens_for_patient_sockets_by_the_clock() {
    let mut poller = Poller::new().unwrap();
    let ((prompt, mut first), (patient, mut second)) = (pair(), pair());
    poller.add(&prompt, 1, Haste::Prompt).unwrap();
    poller.add(&patient, 2, Haste::Patient).unwrap();
    poller.set_period(50_000_000).unwrap();
    second.write_all(b"x").unwrap();
    assert!(!opens_within(&poller, Duration::ZERO));
    first.write_all(b"x").unwrap();
    assert!(opens_within(&poller, Duration::ZERO));
    assert_eq!(tokens(&mut poller), [1]);
    prompt.receive(&mut [0; 1]).unwrap();
    assert!(opens_within(&poller, Duration::from_secs(10)));
    assert_eq!(tokens(&mut poller), [2]);
    assert!(!opens_within(&poller, Duration::ZERO));
    poller.set_period(0).unwrap();
    assert!(opens_within(&poller, Duration::ZERO));
}

#[test]
fn a_broken_connection_is_an_error() {
    let (mut socket, peer) = pair();
    drop(peer);
    assert!(socket.send(b"x").is_err());
}

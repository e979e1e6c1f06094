//! Runs every case of Autobahn's `fuzzingserver` on the port that is the one argument.
#![forbid(unsafe_code)]

use std::{
    env,
    io::{self, Write},
};

use openenv_autobahn::{ask, run};

const AGENT: &str = "openenv";

fn main() -> io::Result<()> {
    let port = env::args().nth(1).and_then(|text| text.parse().ok());
    let port: u16 = port.ok_or_else(|| io::Error::other("usage: echo_client PORT"))?;
    let count = String::from_utf8(ask(port, "/getCaseCount")?).map_err(io::Error::other)?;
    let count: u32 = count.parse().map_err(io::Error::other)?;
    for case in 1..=count {
        if let Err(error) = run(port, &format!("/runCase?case={case}&agent={AGENT}")) {
            writeln!(io::stderr(), "case number {case}: {error}")?;
        }
    }
    ask(port, &format!("/updateReports?agent={AGENT}")).map(drop)
}

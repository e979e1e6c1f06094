//! An echo for Autobahn's `fuzzingclient`; tells its port on standard output.
#![forbid(unsafe_code)]

fn main() -> std::io::Result<()> {
    openenv_autobahn::serve(openenv_autobahn::accept)
}

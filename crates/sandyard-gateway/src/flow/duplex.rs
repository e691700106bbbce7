//! Both directions of a connection, until both have ended.

use std::io;
use std::pin::Pin;
use std::time::Duration;

use super::Stop;
use super::program_socket::ProgramSocket;
use super::splice::SpliceError;
use crate::sandbox::ByteCounters;

/// How long a half-closed connection may be silent.
const HALF_CLOSED: Duration = Duration::from_secs(600);

/// Runs both directions until both have ended. Returns the error of the outward direction if the inward one ended normally: a
/// server may answer and close before it has read everything.
pub(super) async fn carry_both_directions(
    program: &ProgramSocket,
    counters: &ByteCounters,
    mut up: Pin<&mut impl Future<Output = Result<(), SpliceError>>>,
    mut down: Pin<&mut impl Future<Output = io::Result<()>>>,
    mut is_down_done: bool,
) -> Result<Option<io::Error>, Stop> {
    let mut is_up_done = false;
    let mut broken = None;
    let mut seen = counters.read();
    while !(is_up_done && is_down_done) {
        tokio::select! {
            done = &mut up, if !is_up_done => {
                is_up_done = true;
                match done {
                    Ok(()) => {}
                    Err(SpliceError::Program(error)) => return Err(error.into()),
                    Err(SpliceError::Stopped(stop)) => return Err(stop),
                    Err(SpliceError::Remote(error)) => broken = Some(error),
                }
            }
            done = &mut down, if !is_down_done => {
                done?;
                is_down_done = true;
            }
            // The program may be gone while the other side waits silently.
            error = program.broken(), if is_up_done => return Err(error.into()),
            () = tokio::time::sleep(HALF_CLOSED), if is_up_done || is_down_done => {
                if std::mem::replace(&mut seen, counters.read()) == counters.read() {
                    let minutes = HALF_CLOSED.as_secs() / 60;
                    return Err(Stop::Failed(format!("one side had closed, and the other was silent for {minutes} minutes")));
                }
            }
        }
    }
    Ok(broken)
}

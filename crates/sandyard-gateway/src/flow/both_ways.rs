//! Both ways of a connection together, from their first byte to the end of the later one.

use std::io;
use std::pin::Pin;
use std::time::Duration;

use super::Stop;
use super::inside::Inside;
use super::splice::Broken;
use crate::sandbox::Counted;

/// How long a connection may be silent of which one side has closed.
const HALF_CLOSED: Duration = Duration::from_secs(600);

/// Carries both ways until both have ended. Gives back what broke on the way out while the way in went on to its end: a server
/// may answer and close before it has heard all.
pub(super) async fn both_ways(
    inside: &Inside,
    counted: &Counted,
    mut up: Pin<&mut impl Future<Output = Result<(), Broken>>>,
    mut down: Pin<&mut impl Future<Output = io::Result<()>>>,
    mut is_down_done: bool,
) -> Result<Option<io::Error>, Stop> {
    let mut is_up_done = false;
    let mut broken = None;
    let mut seen = counted.read();
    while !(is_up_done && is_down_done) {
        tokio::select! {
            done = &mut up, if !is_up_done => {
                is_up_done = true;
                match done {
                    Ok(()) => {}
                    Err(Broken::Inside(error)) => return Err(error.into()),
                    Err(Broken::Stopped(stop)) => return Err(stop),
                    Err(Broken::Outside(error)) => broken = Some(error),
                }
            }
            done = &mut down, if !is_down_done => {
                done?;
                is_down_done = true;
            }
            // The program may be gone altogether, while the other side says nothing and waits.
            error = inside.broken(), if is_up_done => return Err(error.into()),
            () = tokio::time::sleep(HALF_CLOSED), if is_up_done || is_down_done => {
                if std::mem::replace(&mut seen, counted.read()) == counted.read() {
                    let minutes = HALF_CLOSED.as_secs() / 60;
                    return Err(Stop::Failed(format!("one side had closed, and the other said nothing for {minutes} minutes")));
                }
            }
        }
    }
    Ok(broken)
}

//! Connecting to the fastest of several addresses (RFC 8305, «happy eyeballs»).

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout};

use super::DialError;
use super::reason::reason;

/// How long one address may take.
const ADDRESS_TIMEOUT: Duration = Duration::from_secs(10);

/// How long all addresses may take together.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(20);

/// How much head start an address has over the next.
const HEAD_START: Duration = Duration::from_millis(250);

/// Maximum number of failures in a message.
const MAX_LISTED: usize = 3;

/// Connects to the first address that answers, and returns it.
pub(super) async fn connect(
    targets: Vec<SocketAddr>,
) -> Result<(TcpStream, SocketAddr), DialError> {
    let (stream, at) = race(targets, TcpStream::connect).await?;
    // Small writes are sent without delay; the connection works without this, too.
    let _ = stream.set_nodelay(true);
    Ok((stream, at))
}

async fn race<F, S>(
    targets: Vec<SocketAddr>,
    connect: impl Fn(SocketAddr) -> F,
) -> Result<(S, SocketAddr), DialError>
where
    F: Future<Output = io::Result<S>>,
{
    let end = Instant::now() + TOTAL_TIMEOUT;
    let mut waiting = alternating(targets).into_iter();
    let mut running = FuturesUnordered::new();
    let mut failures = Vec::new();
    let mut next_start = Instant::now();
    loop {
        let is_next = !waiting.as_slice().is_empty();
        if !is_next && running.is_empty() {
            return Err(combined(&failures));
        }
        if is_next && (running.is_empty() || Instant::now() >= next_start) {
            if let Some(target) = waiting.next() {
                let attempt = connect(target);
                running.push(async move { (target, timeout(ADDRESS_TIMEOUT, attempt).await) });
                next_start = Instant::now() + HEAD_START;
            }
            continue;
        }
        tokio::select! {
            Some((target, result)) = running.next() => match result {
                Ok(Ok(stream)) => return Ok((stream, target)),
                Ok(Err(err)) => {
                    failures.push(format!("{target}: {}", reason(&err)));
                    next_start = Instant::now();
                }
                Err(_) => {
                    failures.push(format!("{target}: timed out after {} s", ADDRESS_TIMEOUT.as_secs()));
                    next_start = Instant::now();
                }
            },
            () = sleep_until(next_start), if is_next => {}
            () = sleep_until(end) => {
                failures.push(format!("timed out after {} s", TOTAL_TIMEOUT.as_secs()));
                return Err(combined(&failures));
            }
        }
    }
}

/// One address of each family in turn, beginning with the family that comes first.
fn alternating(targets: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let Some(first) = targets.first().map(SocketAddr::is_ipv4) else {
        return targets;
    };
    let mut order = Vec::with_capacity(targets.len());
    let (same_family, other_family): (Vec<_>, Vec<_>) = targets
        .into_iter()
        .partition(|target| target.is_ipv4() == first);
    let (mut same_family, mut other_family) = (same_family.into_iter(), other_family.into_iter());
    loop {
        let pair = (same_family.next(), other_family.next());
        if pair == (None, None) {
            return order;
        }
        order.extend(pair.0);
        order.extend(pair.1);
    }
}

fn combined(failures: &[String]) -> DialError {
    if failures.is_empty() {
        return DialError("there is no address to connect to".into());
    }
    let mut text = failures
        .iter()
        .take(MAX_LISTED)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join("; ");
    if failures.len() > MAX_LISTED {
        text.push_str(&format!("; and {} more", failures.len() - MAX_LISTED));
    }
    DialError(text)
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::Mutex;

    use super::*;

    fn targets(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn families_take_turns() {
        let given = targets(&["1.0.0.1:1", "1.0.0.2:1", "1.0.0.3:1", "[::1]:1", "[::2]:1"]);
        let expected = targets(&["1.0.0.1:1", "[::1]:1", "1.0.0.2:1", "[::2]:1", "1.0.0.3:1"]);
        assert_eq!(alternating(given), expected);
        assert_eq!(alternating(Vec::new()), []);
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_address_starts_after_the_head_start_and_the_first_to_answer_wins() {
        let started = Mutex::new(Vec::new());
        let begin = Instant::now();
        let (_, winner) = race(
            targets(&["192.0.2.1:1", "192.0.2.2:1", "192.0.2.3:1"]),
            |target| {
                started.lock().unwrap().push(begin.elapsed());
                async move {
                    if target.ip() != std::net::IpAddr::from([192, 0, 2, 2]) {
                        pending::<()>().await;
                    }
                    Ok("there")
                }
            },
        )
        .await
        .unwrap();
        assert_eq!(winner, "192.0.2.2:1".parse().unwrap());
        assert_eq!(*started.lock().unwrap(), [Duration::ZERO, HEAD_START]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_starts_the_next_address_at_once() {
        let begin = Instant::now();
        let (_, winner) = race(
            targets(&["192.0.2.1:1", "[2001:db8::1]:1"]),
            |target| async move {
                if target.is_ipv4() {
                    Err(io::ErrorKind::ConnectionRefused.into())
                } else {
                    Ok("there")
                }
            },
        )
        .await
        .unwrap();
        assert!(winner.is_ipv6());
        assert_eq!(begin.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn every_failed_address_is_listed_with_its_reason() {
        let all = targets(&["192.0.2.1:1", "[2001:db8::1]:1"]);
        let err = race::<_, &str>(all, |target| async move {
            if target.is_ipv4() {
                return pending().await;
            }
            Err(io::ErrorKind::NetworkUnreachable.into())
        })
        .await
        .unwrap_err();
        let expected = "[2001:db8::1]:1: no route to host; 192.0.2.1:1: timed out after 10 s";
        assert_eq!(err.to_string(), expected);
    }

    #[tokio::test(start_paused = true)]
    async fn many_silent_addresses_do_not_take_for_ever() {
        let all: Vec<_> = (0..60)
            .map(|n| SocketAddr::from(([192, 0, 2, n], 1)))
            .collect();
        let begin = Instant::now();
        let err = race::<_, &str>(all, |_| pending()).await.unwrap_err();
        assert_eq!(begin.elapsed(), TOTAL_TIMEOUT);
        assert!(err.to_string().contains(" more"), "{err}");
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_to_connect_to_is_a_failure() {
        let begin = Instant::now();
        connect(Vec::new()).await.unwrap_err();
        assert_eq!(begin.elapsed(), Duration::ZERO);
    }
}

//! One connection: what is said on it, judged, dialled, carried.

mod admission;
mod both_ways;
mod hello_retry;
mod inside;
mod judged;
mod reply;
mod sniff;
mod splice;
mod stream;

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rustix::net::sockopt;
use sandyard_core::network::pattern::canonical_name;
use sandyard_core::network::{Denial, Flow, FlowVerdict, Protocol};
use sandyard_wire::egress::Via;
use tokio::time::Instant;

use crate::dial::{Destination, Dialled};
use crate::gateway::Inner;
use crate::http::{self, Host, HttpFailure, NameJudge};
use crate::sandbox::{Counted, Sandbox};
pub(crate) use admission::{Slots, admit, turn_away};
use both_ways::both_ways;
#[cfg(test)]
pub(crate) use hello_retry::RETRY_RANDOM;
use hello_retry::ServerHello;
use inside::Inside;
use judged::denied_later;
use sniff::Said;
use stream::InsideStream;

/// A connection that an agent hands over.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) via: Via,
    pub(crate) early: Bytes,
    pub(crate) descriptor: OwnedFd,
}

/// Why a connection ended before its time.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It is not allowed.
    Denied(Denial),
    /// The other side could not be reached.
    Unmet(String),
    /// It was under way, and broke.
    Failed(String),
    /// The sandbox, or its way out, is gone.
    Gone,
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<Denial> for Stop {
    fn from(denial: Denial) -> Self {
        Self::Denied(denial)
    }
}

/// Sees one connection through, from its hand-over to its record.
pub(crate) async fn run(
    gateway: Arc<Inner>,
    sandbox: Arc<Sandbox>,
    opening: Opening,
    slots: Slots,
) {
    let started = Instant::now();
    let counted = Arc::new(Counted::default());
    let inside = match Inside::new(opening.descriptor, sandbox.clone(), counted.clone()) {
        Ok(inside) => Arc::new(inside),
        Err(error) => {
            tracing::debug!(%error, "An agent sent something that is no connection");
            return;
        }
    };
    let mut flow = sandbox.flow(Protocol::Tcp);
    flow.port = Some(opening.port);
    let end = sandbox.end.clone();
    let mut walk = Walk {
        gateway: &gateway,
        sandbox: &sandbox,
        inside: &inside,
        counted: &counted,
        flow: &mut flow,
        port: opening.port,
        via: opening.via,
        answered: Answered::Not,
    };
    let went = tokio::select! {
        biased;
        () = end.cancelled() => Err(Stop::Gone),
        went = walk.go(&opening.host, opening.early) => went,
    };
    if let Err(stop) = &went {
        let is_told = match walk.answered {
            Answered::Not => reply::refuse(&inside, opening.via, stop),
            Answered::Connected => false,
            // With a request's refusal, which a reset might overtake; unless it was cut in the middle of one.
            Answered::Requests => matches!(
                stop,
                Stop::Denied(Denial::NameMismatch { .. }) | Stop::Unmet(_) | Stop::Failed(_)
            ),
        };
        if is_told {
            inside.close_in_order();
        }
    } else {
        inside.close_in_order();
    }
    match went {
        Ok(()) => {}
        Err(Stop::Denied(denial)) => {
            flow.verdict = FlowVerdict::Denied;
            flow.denial = Some(denial);
        }
        Err(Stop::Unmet(reason)) => {
            flow.verdict = FlowVerdict::Failed;
            flow.failure = Some(reason);
        }
        // What was under way did go out.
        Err(Stop::Failed(reason)) => flow.failure = Some(reason),
        Err(Stop::Gone) => {
            if flow.address.is_none() {
                flow.verdict = FlowVerdict::Failed;
            }
            flow.failure = Some("its sandbox or this server ended".to_owned());
        }
    }
    (flow.sent_bytes, flow.received_bytes) = counted.read();
    flow.duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    // Before the record: whoever has read it may open the next.
    drop(slots);
    gateway.recorder.record(&sandbox, flow);
}

struct Walk<'a> {
    gateway: &'a Arc<Inner>,
    sandbox: &'a Arc<Sandbox>,
    inside: &'a Arc<Inside>,
    counted: &'a Arc<Counted>,
    flow: &'a mut Flow,
    port: u16,
    via: Via,
    answered: Answered,
}

/// What the program has been told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answered {
    /// Nothing.
    Not,
    /// That it is connected.
    Connected,
    /// Its requests are answered one by one, if only with a refusal.
    Requests,
}

impl Walk<'_> {
    async fn go(&mut self, host: &str, early: Bytes) -> Result<(), Stop> {
        // Named in the record before anything can go wrong.
        let address = host.parse::<IpAddr>().ok().map(|ip| ip.to_canonical());
        match (address, canonical_name(host)) {
            (Some(address), _) => self.flow.address = Some(address),
            (None, Some(name)) => self.flow.name = Some(name),
            (None, None) => return Err(Stop::Unmet("that is no host name".to_owned())),
        }
        let changes = self.sandbox.changes();
        let destination = self.destination(address).await?;
        // An HTTP proxy must be told whether plain requests follow, so there the program has to speak first.
        let (early, is_plain) = match self.is_for_proxy(&destination) {
            true => self.wait_for_words(early).await?,
            false => (early, false),
        };
        let dialled = self.gateway.dialer.dial(&destination, is_plain).await;
        let dialled = dialled.map_err(|error| Stop::Unmet(error.to_string()))?;
        if dialled.address.is_some() {
            self.flow.address = dialled.address;
        }
        // A connection that is cut must not look like one that ended well, to either side.
        let _ = sockopt::set_socket_linger(&dialled.stream, Some(Duration::ZERO));
        keep_alive(&dialled);
        reply::accept(self.inside, self.via).await?;
        if self.via != Via::Http {
            self.answered = Answered::Connected;
        }
        let denied = denied_later(
            self.gateway,
            self.sandbox,
            changes,
            self.flow.name.clone(),
            dialled.address,
            self.port,
        );
        tokio::select! {
            denial = denied => Err(Stop::Denied(denial)),
            carried = self.carry(dialled, early) => carried,
        }
    }

    fn is_for_proxy(&self, destination: &Destination) -> bool {
        let name = destination.name.clone();
        let name = name.or_else(|| Some(destination.addresses.first()?.to_string()));
        name.is_some_and(|name| self.gateway.dialer.goes_by_proxy(&name, self.port))
    }

    /// Waits a moment for the program's first words, and says whether they are a plain request.
    async fn wait_for_words(&self, early: Bytes) -> Result<(Bytes, bool), Stop> {
        // Without a name of its own the URL would have to be made from what the program says, and that is not judged.
        if self.flow.name.is_none() || matches!(self.via, Via::Connect | Via::Socks) {
            return Ok((early, false));
        }
        let (said, first) = sniff::sniff_soon(self.inside, early, self.is_open()).await?;
        Ok((first, matches!(said, Some(Said::Http(_)))))
    }

    async fn carry(&mut self, mut dialled: Dialled, early: Bytes) -> Result<(), Stop> {
        let first = {
            let (from, mut to) = dialled.stream.split();
            // A server may speak first: what it says is carried while we wait for the program's words.
            let server_hello = ServerHello::new();
            let mut down = pin!(splice::down(self.inside, &from, &server_hello));
            let mut sniffing = pin!(sniff::sniff(self.inside, early, self.is_open()));
            let mut is_down_done = false;
            let received = self.counted.read().1;
            let (said, first) = loop {
                tokio::select! {
                    biased;
                    said = &mut sniffing => break said?,
                    done = &mut down, if !is_down_done => {
                        done?;
                        is_down_done = true;
                    }
                }
            };
            self.check(&said)?;
            if self.is_looked_into(
                &said,
                &dialled_host(self.flow, self.port),
                dialled.whole_urls.is_some(),
            ) {
                if self.counted.read().1 != received {
                    return Err(Stop::Failed(
                        "the other side spoke before it was asked".to_owned(),
                    ));
                }
                Some((said, first))
            } else {
                if is_down_done {
                    server_hello.end();
                }
                let has_names = matches!(said, Said::Tls(_)) && !self.is_open();
                let broken = {
                    let up = pin!(async {
                        let check = |said: &Said| self.check(said);
                        let first = match has_names {
                            true => {
                                hello_retry::carry(
                                    self.inside,
                                    first,
                                    &mut to,
                                    &server_hello,
                                    check,
                                )
                                .await?
                            }
                            false => first,
                        };
                        splice::up(self.inside, &first, &mut to).await
                    });
                    both_ways(self.inside, self.counted, up, down, is_down_done).await?
                };
                self.flow.failure = broken.map(|error| error.to_string());
                None
            }
        };
        let _ = sockopt::set_socket_linger(&dialled.stream, None);
        match first {
            Some((said, first)) => self.carry_requests(dialled, said, first).await,
            None => Ok(()),
        }
    }

    /// Says whether no name is denied to this sandbox, so that names need not be looked for at any price.
    fn is_open(&self) -> bool {
        let grant = self.sandbox.grant();
        !grant.policy.names_matter(&self.gateway.ground())
    }

    /// Holds what was said against the name that was looked up.
    fn check(&self, said: &Said) -> Result<(), Stop> {
        let said = match said {
            Said::Tls(said) | Said::Http(said) => said,
            Said::Unreadable if !self.is_open() => {
                return Err(Stop::Denied(Denial::NameMismatch {
                    name: self.flow.name.clone().unwrap_or_default(),
                    said: "(unreadable)".to_owned(),
                }));
            }
            _ => return Ok(()),
        };
        let Some(said) = said else {
            return Ok(());
        };
        match &self.flow.name {
            Some(name) if name == said => Ok(()),
            Some(name) => Err(Stop::Denied(Denial::NameMismatch {
                name: name.clone(),
                said: said.clone(),
            })),
            // By address, which was judged.
            None => Ok(judge_other_name(
                self.gateway,
                self.sandbox,
                said,
                self.port,
            )?),
        }
    }

    /// Judges the hosts of requests on a connection that was made by address.
    fn name_judge(&self) -> NameJudge {
        let (gateway, sandbox, port) = (self.gateway.clone(), self.sandbox.clone(), self.port);
        Arc::new(move |name| judge_other_name(&gateway, &sandbox, name, port))
    }

    /// Says whether each request has to be looked at, rather than the first alone.
    fn is_looked_into(&self, said: &Said, host: &Host, whole_urls: bool) -> bool {
        let grant = self.sandbox.grant();
        match said {
            Said::Tls(_) => http::changes(&grant, host, true),
            // Where names matter the second request must not be for another host than the first, nor for one that is denied.
            Said::Http(_) => whole_urls || http::changes(&grant, host, false) || !self.is_open(),
            _ => false,
        }
    }

    async fn carry_requests(
        &mut self,
        dialled: Dialled,
        said: Said,
        first: Bytes,
    ) -> Result<(), Stop> {
        let host = dialled_host(self.flow, self.port);
        let stream = InsideStream::new(self.inside.clone(), first);
        let sandbox = self.sandbox.clone();
        let grant = Arc::new(move || sandbox.grant());
        let other_names = self.flow.name.is_none().then(|| self.name_judge());
        self.answered = Answered::Requests;
        let carried = match said {
            Said::Tls(_) => http::carry_tls(&self.gateway.tls, stream, dialled, host, grant).await,
            _ => http::carry_plain(stream, dialled, host, grant, other_names).await,
        };
        carried.map_err(|failure| match failure {
            HttpFailure::Denied(denial) => Stop::Denied(denial),
            HttpFailure::Unmet(reason) => Stop::Unmet(reason),
            HttpFailure::Failed(reason) => Stop::Failed(reason),
        })
    }
}

/// Judges a name that is asked for on a connection by address. One that is denied stays denied; one that is merely not named is no
/// worse than the address.
fn judge_other_name(
    gateway: &Inner,
    sandbox: &Sandbox,
    name: &str,
    port: u16,
) -> Result<(), Denial> {
    let judged = sandbox
        .grant()
        .policy
        .judge_name(&gateway.ground(), name, Some(port));
    match judged {
        Err(denial @ (Denial::DeniedByPolicy { .. } | Denial::DeniedByOperator { .. })) => {
            Err(denial)
        }
        _ => Ok(()),
    }
}

/// Lets the kernel notice a peer that is gone without a word.
fn keep_alive(dialled: &Dialled) {
    let stream = &dialled.stream;
    let _ = sockopt::set_socket_keepalive(stream, true);
    let _ = sockopt::set_tcp_keepidle(stream, inside::KEEP_ALIVE);
    let _ = sockopt::set_tcp_keepintvl(stream, Duration::from_secs(15));
    let _ = sockopt::set_tcp_keepcnt(stream, 4);
}

/// The host as the requests should name it.
fn dialled_host(flow: &Flow, port: u16) -> Host {
    let address = || flow.address.map(|address| address.to_string());
    Host {
        name: flow.name.clone().or_else(address).unwrap_or_default(),
        port,
    }
}

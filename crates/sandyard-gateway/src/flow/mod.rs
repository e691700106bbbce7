//! One connection: judged, dialled, carried.

mod admission;
mod destination;
mod duplex;
mod greeting;
mod hello_retry;
mod program_socket;
mod program_stream;
mod reply;
mod splice;

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
use crate::sandbox::{ByteCounters, Sandbox};
pub(crate) use admission::{FlowSlots, admit, reject};
use destination::wait_for_denial;
use duplex::carry_both_directions;
use greeting::Greeting;
#[cfg(test)]
pub(crate) use hello_retry::RETRY_RANDOM;
use hello_retry::ServerHello;
use program_socket::ProgramSocket;
use program_stream::ProgramStream;

/// A connection that an agent hands over.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) via: Via,
    pub(crate) early: Bytes,
    pub(crate) descriptor: OwnedFd,
}

/// Why a connection ended early.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The policy denies it.
    Denied(Denial),
    /// The destination could not be reached.
    Unreachable(String),
    /// It was open, and broke.
    Failed(String),
    /// The sandbox was detached, or the server ends.
    Cancelled,
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

/// Serves one connection, from its hand-over to its record.
pub(crate) async fn run(
    gateway: Arc<Inner>,
    sandbox: Arc<Sandbox>,
    opening: Opening,
    slots: FlowSlots,
) {
    let started = Instant::now();
    let counters = Arc::new(ByteCounters::default());
    let program = match ProgramSocket::new(opening.descriptor, sandbox.clone(), counters.clone()) {
        Ok(program) => Arc::new(program),
        Err(error) => {
            tracing::debug!(%error, "An agent sent a descriptor that is not a TCP connection");
            return;
        }
    };
    let mut flow = sandbox.flow(Protocol::Tcp);
    flow.port = Some(opening.port);
    let end = sandbox.end.clone();
    let mut task = FlowTask {
        gateway: &gateway,
        sandbox: &sandbox,
        program: &program,
        counters: &counters,
        flow: &mut flow,
        port: opening.port,
        via: opening.via,
        answered: Answered::Nothing,
    };
    let result = tokio::select! {
        biased;
        () = end.cancelled() => Err(Stop::Cancelled),
        result = task.run(&opening.host, opening.early) => result,
    };
    if let Err(stop) = &result {
        let is_answered = match task.answered {
            Answered::Nothing => reply::refuse(&program, opening.via, stop),
            Answered::Connected => false,
            // The program got a refusal of a request, which a reset might overtake; unless a request was cut in the middle.
            Answered::Requests => matches!(
                stop,
                Stop::Denied(Denial::NameMismatch { .. }) | Stop::Unreachable(_) | Stop::Failed(_)
            ),
        };
        if is_answered {
            program.close_in_order();
        }
    } else {
        program.close_in_order();
    }
    match result {
        Ok(()) => {}
        Err(Stop::Denied(denial)) => {
            flow.verdict = FlowVerdict::Denied;
            flow.denial = Some(denial);
        }
        Err(Stop::Unreachable(reason)) => {
            flow.verdict = FlowVerdict::Failed;
            flow.failure = Some(reason);
        }
        // The connection was open, so it stays allowed in the record.
        Err(Stop::Failed(reason)) => flow.failure = Some(reason),
        Err(Stop::Cancelled) => {
            if flow.address.is_none() {
                flow.verdict = FlowVerdict::Failed;
            }
            flow.failure = Some("the sandbox or this server ended".to_owned());
        }
    }
    (flow.sent_bytes, flow.received_bytes) = counters.read();
    flow.duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    // Before the record: a reader of it may open the next connection.
    drop(slots);
    gateway.recorder.record(&sandbox, flow);
}

struct FlowTask<'a> {
    gateway: &'a Arc<Inner>,
    sandbox: &'a Arc<Sandbox>,
    program: &'a Arc<ProgramSocket>,
    counters: &'a Arc<ByteCounters>,
    flow: &'a mut Flow,
    port: u16,
    via: Via,
    answered: Answered,
}

/// What the program got as an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answered {
    /// No answer yet.
    Nothing,
    /// That it is connected.
    Connected,
    /// Its requests are answered one by one, if only with a refusal.
    Requests,
}

impl FlowTask<'_> {
    async fn run(&mut self, host: &str, early: Bytes) -> Result<(), Stop> {
        // Set in the record before anything can fail.
        let address = host.parse::<IpAddr>().ok().map(|ip| ip.to_canonical());
        match (address, canonical_name(host)) {
            (Some(address), _) => self.flow.address = Some(address),
            (None, Some(name)) => self.flow.name = Some(name),
            (None, None) => {
                return Err(Stop::Unreachable(format!(
                    "`{}` is not a valid host name",
                    host.escape_debug()
                )));
            }
        }
        let changes = self.sandbox.changes();
        let destination = self.destination(address).await?;
        // An HTTP proxy needs to know whether plain requests follow, so the program has to send first.
        let (early, is_plain) = match self.is_for_proxy(&destination) {
            true => self.wait_for_greeting(early).await?,
            false => (early, false),
        };
        let dialled = self.gateway.dialer.dial(&destination, is_plain).await;
        let dialled = dialled.map_err(|error| Stop::Unreachable(error.to_string()))?;
        if dialled.address.is_some() {
            self.flow.address = dialled.address;
        }
        // To either side an aborted connection must not look like one that ended normally.
        let _ = sockopt::set_socket_linger(&dialled.stream, Some(Duration::ZERO));
        keep_alive(&dialled);
        reply::accept(self.program, self.via).await?;
        if self.via != Via::Http {
            self.answered = Answered::Connected;
        }
        let denied = wait_for_denial(
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
        name.is_some_and(|name| self.gateway.dialer.uses_resolving_proxy(&name, self.port))
    }

    /// Waits a moment for the program's greeting; returns whether it is a plain HTTP request.
    async fn wait_for_greeting(&self, early: Bytes) -> Result<(Bytes, bool), Stop> {
        // Without a name the URL would be made from the program's `Host`, which is not judged.
        if self.flow.name.is_none() || matches!(self.via, Via::Connect | Via::Socks) {
            return Ok((early, false));
        }
        let (greeting, first) =
            greeting::read_greeting_soon(self.program, early, self.is_open()).await?;
        Ok((first, matches!(greeting, Some(Greeting::Http(_)))))
    }

    async fn carry(&mut self, mut dialled: Dialled, early: Bytes) -> Result<(), Stop> {
        let first = {
            let (from, mut to) = dialled.stream.split();
            // A server may send first: its bytes are carried while the program's greeting is awaited.
            let server_hello = ServerHello::new();
            let mut down = pin!(splice::down(self.program, &from, &server_hello));
            let mut reading = pin!(greeting::read_greeting(self.program, early, self.is_open()));
            let mut is_down_done = false;
            let received = self.counters.read().1;
            let (greeting, first) = loop {
                tokio::select! {
                    biased;
                    greeting = &mut reading => break greeting?,
                    done = &mut down, if !is_down_done => {
                        done?;
                        is_down_done = true;
                    }
                }
            };
            self.check(&greeting)?;
            if self.needs_inspection(
                &greeting,
                &dialled_host(self.flow, self.port),
                dialled.whole_urls.is_some(),
            ) {
                if self.counters.read().1 != received {
                    return Err(Stop::Failed(
                        "the server sent data before the program's request".to_owned(),
                    ));
                }
                Some((greeting, first))
            } else {
                if is_down_done {
                    server_hello.end();
                }
                let has_names = matches!(greeting, Greeting::Tls(_)) && !self.is_open();
                let broken = {
                    let up = pin!(async {
                        let check = |greeting: &Greeting| self.check(greeting);
                        let first = match has_names {
                            true => {
                                hello_retry::carry(
                                    self.program,
                                    first,
                                    &mut to,
                                    &server_hello,
                                    check,
                                )
                                .await?
                            }
                            false => first,
                        };
                        splice::up(self.program, &first, &mut to).await
                    });
                    carry_both_directions(self.program, self.counters, up, down, is_down_done)
                        .await?
                };
                self.flow.failure = broken.map(|error| error.to_string());
                None
            }
        };
        let _ = sockopt::set_socket_linger(&dialled.stream, None);
        match first {
            Some((greeting, first)) => self.carry_requests(dialled, greeting, first).await,
            None => Ok(()),
        }
    }

    /// Whether no name is denied to this sandbox, so that names need not be checked strictly.
    fn is_open(&self) -> bool {
        let grant = self.sandbox.grant();
        !grant.policy.names_matter(&self.gateway.operator_rules())
    }

    /// Checks the name in the greeting against the name that was judged.
    fn check(&self, greeting: &Greeting) -> Result<(), Stop> {
        let requested = match greeting {
            Greeting::Tls(name) | Greeting::Http(name) => name,
            Greeting::Unreadable if !self.is_open() => {
                return Err(Stop::Denied(Denial::NameMismatch {
                    name: self.flow.name.clone().unwrap_or_default(),
                    requested: "(unreadable)".to_owned(),
                }));
            }
            _ => return Ok(()),
        };
        let Some(requested) = requested else {
            return Ok(());
        };
        match &self.flow.name {
            Some(name) if name == requested => Ok(()),
            Some(name) => Err(Stop::Denied(Denial::NameMismatch {
                name: name.clone(),
                requested: requested.clone(),
            })),
            // A connection by address, which was judged.
            None => Ok(judge_other_name(
                self.gateway,
                self.sandbox,
                requested,
                self.port,
            )?),
        }
    }

    /// Judges the hosts of requests on a connection by address.
    fn name_judge(&self) -> NameJudge {
        let (gateway, sandbox, port) = (self.gateway.clone(), self.sandbox.clone(), self.port);
        Arc::new(move |name| judge_other_name(&gateway, &sandbox, name, port))
    }

    /// Whether every request has to be inspected, not only the first.
    fn needs_inspection(&self, greeting: &Greeting, host: &Host, whole_urls: bool) -> bool {
        let grant = self.sandbox.grant();
        match greeting {
            Greeting::Tls(_) => http::changes(&grant, host, true),
            // Where names matter, a later request must not be for another host, nor for a denied one.
            Greeting::Http(_) => {
                whole_urls || http::changes(&grant, host, false) || !self.is_open()
            }
            _ => false,
        }
    }

    async fn carry_requests(
        &mut self,
        dialled: Dialled,
        greeting: Greeting,
        first: Bytes,
    ) -> Result<(), Stop> {
        let host = dialled_host(self.flow, self.port);
        let stream = ProgramStream::new(self.program.clone(), first);
        let sandbox = self.sandbox.clone();
        let grant = Arc::new(move || sandbox.grant());
        let other_names = self.flow.name.is_none().then(|| self.name_judge());
        self.answered = Answered::Requests;
        let carried = match greeting {
            Greeting::Tls(_) => {
                http::carry_tls(&self.gateway.tls, stream, dialled, host, grant).await
            }
            _ => http::carry_plain(stream, dialled, host, grant, other_names).await,
        };
        carried.map_err(|failure| match failure {
            HttpFailure::Denied(denial) => Stop::Denied(denial),
            HttpFailure::Unreachable(reason) => Stop::Unreachable(reason),
            HttpFailure::Failed(reason) => Stop::Failed(reason),
        })
    }
}

/// Judges a name that is requested on a connection by address. An explicitly denied name is refused; one that the policy does not
/// mention is as allowed as the address.
fn judge_other_name(
    gateway: &Inner,
    sandbox: &Sandbox,
    name: &str,
    port: u16,
) -> Result<(), Denial> {
    let judged = sandbox
        .grant()
        .policy
        .judge_name(&gateway.operator_rules(), name, Some(port));
    match judged {
        Err(denial @ (Denial::DeniedByPolicy { .. } | Denial::DeniedByOperator { .. })) => {
            Err(denial)
        }
        _ => Ok(()),
    }
}

/// Lets the kernel notice a peer that vanished.
fn keep_alive(dialled: &Dialled) {
    let stream = &dialled.stream;
    let _ = sockopt::set_socket_keepalive(stream, true);
    let _ = sockopt::set_tcp_keepidle(stream, program_socket::KEEP_ALIVE);
    let _ = sockopt::set_tcp_keepintvl(stream, Duration::from_secs(15));
    let _ = sockopt::set_tcp_keepcnt(stream, 4);
}

/// The host that requests should name.
fn dialled_host(flow: &Flow, port: u16) -> Host {
    let address = || flow.address.map(|address| address.to_string());
    Host {
        name: flow.name.clone().or_else(address).unwrap_or_default(),
        port,
    }
}

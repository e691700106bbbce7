//! Frames and descriptors from one agent.

use std::collections::VecDeque;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sandyard_agent_client::{AgentStream, Closer, Endpoint};
use sandyard_core::network::{Denial, FlowVerdict, Protocol};
use sandyard_wire::egress::{self, FromAgent, ToAgent};
use tokio::sync::{Notify, mpsc};

use crate::flow::{self, Opening};
use crate::gateway::Inner;
use crate::sandbox::Sandbox;

/// Pauses between attempts to connect to an agent.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Maximum bytes per read.
const PIECE: usize = 16 * 1024;

/// Maximum number of descriptors without a complete frame.
const MAX_WAITING: usize = 64;

/// Maximum number of queued answers; more are dropped, and programs repeat their queries.
const MAX_ANSWERS: usize = 512;

/// Signals to a channel.
#[derive(Debug, Default)]
pub(crate) struct ChannelSignals {
    /// Become the leading channel of the agent.
    pub(crate) lead: Notify,
    /// Connect now: the agent should be reachable.
    pub(crate) wake: Notify,
}

/// Maintains a channel to one agent until its sandbox is detached.
pub(crate) async fn maintain(
    gateway: Arc<Inner>,
    sandbox: Arc<Sandbox>,
    endpoint: Endpoint,
    signals: Arc<ChannelSignals>,
) {
    let mut pause = FIRST_PAUSE;
    loop {
        let attempt = async {
            sandbox.descriptors_closed().await;
            let stream = endpoint.open_egress(&sandbox.closer).await?;
            pause = FIRST_PAUSE;
            serve(&gateway, &sandbox, stream, &signals.lead).await
        };
        let ended = tokio::select! {
            () = sandbox.end.cancelled() => return,
            ended = attempt => ended,
        };
        if let Err(error) = ended {
            tracing::debug!(%endpoint, %error, "Egress channel to an agent ended");
        }
        tokio::select! {
            () = sandbox.end.cancelled() => return,
            () = tokio::time::sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
            () = signals.wake.notified() => pause = FIRST_PAUSE,
        }
    }
}

/// Serves one connection to its end.
async fn serve(
    gateway: &Arc<Inner>,
    sandbox: &Arc<Sandbox>,
    stream: AgentStream,
    lead: &Notify,
) -> io::Result<()> {
    let (answers, waiting) = mpsc::channel(MAX_ANSWERS);
    if sandbox.grant().is_leading {
        // The queue is empty, so there is space for it.
        let _ = answers.try_send(ToAgent::Lead);
    }
    let reading = async {
        let mut received = Received::new(sandbox.closer.clone());
        loop {
            received.fill(&stream).await?;
            while let Some(frame) = received.next()? {
                handle(gateway, sandbox, &answers, frame, &mut received)?;
                // An agent that sends too much is not read for a while.
                if let Some(wait) = sandbox.charge_frame() {
                    tokio::time::sleep(wait).await;
                }
            }
        }
    };
    let leading = async {
        loop {
            lead.notified().await;
            if answers.send(ToAgent::Lead).await.is_err() {
                return Ok(());
            }
        }
    };
    tokio::select! {
        ended = reading => ended,
        ended = write(&stream, waiting) => ended,
        ended = leading => ended,
    }
}

async fn write(stream: &AgentStream, mut waiting: mpsc::Receiver<ToAgent>) -> io::Result<()> {
    while let Some(message) = waiting.recv().await {
        let frame = egress::encode(&message).map_err(io::Error::other)?;
        let mut rest = frame.as_slice();
        while !rest.is_empty() {
            stream.writable().await?;
            match stream.try_write(rest) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => rest = &rest[written?..],
            }
        }
    }
    Ok(())
}

fn handle(
    gateway: &Arc<Inner>,
    sandbox: &Arc<Sandbox>,
    answers: &mpsc::Sender<ToAgent>,
    frame: FromAgent,
    received: &mut Received,
) -> io::Result<()> {
    match frame {
        FromAgent::Open {
            host,
            port,
            via,
            early,
        } => {
            let descriptor = received
                .descriptors
                .pop_front()
                .ok_or_else(invalid_frames)?;
            let opening = Opening {
                host,
                port,
                via,
                early,
                descriptor,
            };
            match flow::admit(gateway, sandbox) {
                Ok(slots) => {
                    let flow = flow::run(gateway.clone(), sandbox.clone(), opening, slots);
                    gateway.flows.spawn(flow);
                }
                Err(denial) => flow::reject(gateway, sandbox, opening, denial),
            }
        }
        FromAgent::Query {
            id,
            address,
            packet,
        } => {
            let Ok(slot) = sandbox.queries.clone().try_acquire_owned() else {
                // Programs repeat their queries.
                return Ok(());
            };
            let (gateway, sandbox, answers) = (gateway.clone(), sandbox.clone(), answers.clone());
            tokio::spawn(async move {
                let packet = look_up(&gateway, &sandbox, &packet, address).await;
                if !packet.is_empty() {
                    // Dropped when the agent does not read its answers.
                    let _ = answers.try_send(ToAgent::Answer { id, packet });
                }
                drop(slot);
            });
        }
        FromAgent::BlockedPackets {
            protocol,
            address,
            port,
            count,
        } => record_blocked(gateway, sandbox, protocol, address, port, count),
    }
    Ok(())
}

async fn look_up(
    gateway: &Inner,
    sandbox: &Sandbox,
    packet: &[u8],
    address: Option<Ipv4Addr>,
) -> Bytes {
    let grant = sandbox.grant();
    let operator_rules = gateway.operator_rules();
    let judge = |name: &str| {
        sandbox.may_look_up()?;
        grant.policy.judge_name(&operator_rules, name, None)
    };
    // For any name: names that bypass the proxy are resolved here, or not at all.
    let uses_proxy = gateway.dialer.uses_resolving_proxy("name.invalid", 443);
    let answer = gateway
        .names
        .answer(packet, address, uses_proxy, judge)
        .await;
    let mut flow = sandbox.flow(Protocol::Dns);
    flow.name = answer.name;
    flow.sent_bytes = packet.len() as u64;
    flow.received_bytes = answer.packet.len() as u64;
    if let Some(denial) = answer.denial {
        flow.verdict = FlowVerdict::Denied;
        flow.denial = Some(denial);
        gateway.recorder.record(sandbox, flow);
    } else if let Some(failure) = answer.failure {
        flow.verdict = FlowVerdict::Failed;
        flow.failure = Some(failure.to_string());
        gateway.recorder.record(sandbox, flow);
    }
    answer.packet.into()
}

/// Records blocked packets.
fn record_blocked(
    gateway: &Inner,
    sandbox: &Sandbox,
    protocol: u8,
    address: std::net::IpAddr,
    port: Option<u16>,
    count: u64,
) {
    let protocol = match protocol {
        6 => Protocol::Tcp,
        17 => Protocol::Udp,
        1 | 58 => Protocol::Icmp,
        _ => Protocol::Other,
    };
    let mut flow = sandbox.flow(protocol);
    flow.address = Some(address);
    flow.port = port;
    flow.verdict = FlowVerdict::Denied;
    flow.count = count.clamp(1, 1 << 32);
    let target = match port {
        Some(port) => std::net::SocketAddr::new(address, port).to_string(),
        None => address.to_string(),
    };
    flow.denial = Some(Denial::ProtocolNotCarried { target });
    gateway.recorder.record(sandbox, flow);
}

/// Bytes and descriptors that are not used yet.
#[derive(Debug)]
struct Received {
    bytes: Vec<u8>,
    descriptors: VecDeque<OwnedFd>,
    closer: Arc<Closer>,
}

impl Received {
    fn new(closer: Arc<Closer>) -> Self {
        Self {
            bytes: Vec::new(),
            descriptors: VecDeque::new(),
            closer,
        }
    }

    async fn fill(&mut self, stream: &AgentStream) -> io::Result<()> {
        loop {
            stream.readable().await?;
            match self.receive(stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                received => {
                    received?;
                    break;
                }
            }
        }
        if self.descriptors.len() > MAX_WAITING {
            return Err(invalid_frames());
        }
        Ok(())
    }

    /// Reads what is available. The buffer lives only during the call: thousands of channels wait, and few are read.
    fn receive(&mut self, stream: &AgentStream) -> io::Result<usize> {
        let mut piece = [0; PIECE];
        let (count, descriptors) = stream.try_receive(&mut piece)?;
        self.bytes.extend_from_slice(&piece[..count]);
        self.descriptors.extend(descriptors);
        Ok(count)
    }

    fn next(&mut self) -> io::Result<Option<FromAgent>> {
        egress::decode(&mut self.bytes)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        for descriptor in self.descriptors.drain(..) {
            self.closer.abort(descriptor);
        }
    }
}

fn invalid_frames() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the agent's frames and descriptors do not match",
    )
}

//! DNS: the resolver, and answers to programs.
//!
//! | file | holds |
//! |---|---|
//! | `sources` | the DNS servers and hosts file in use, kept up to date with the host's files |
//! | `hosts_file` | a hosts file |
//! | `resolver` | queries to DNS servers, and `resolv.conf` |
//! | `lookup`, `records` | addresses and records of a name |
//! | `cache` | recently found addresses |
//! | `in_flight` | look-ups in progress, one per name |
//! | `question` | parsing a program's query |
//! | `answer` | the answer to it |
//! | `reply` | encoding the answer |
//! | `reverse` | reverse names that are not looked up |

mod answer;
mod cache;
mod hosts_file;
mod in_flight;
mod lookup;
mod question;
mod records;
mod reply;
mod resolver;
mod reverse;
mod sources;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hickory_proto::rr::{Record, RecordType};
use sandyard_core::network::Denial;
use sandyard_core::network::pattern::canonical_name;

use self::lookup::NotFound;
use self::sources::Sources;
use crate::settings::GatewayError;

/// How long a whole look-up may take; programs give up after five seconds themselves.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(if cfg!(test) { 60 } else { 5 });

/// Resolves names for all sandboxes. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    sources: Arc<Sources>,
    timeout: Duration,
}

/// Why a look-up gives no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LookupError {
    /// There is no such name, or it has no address.
    #[error("the name does not exist or has no address")]
    NoSuchName,
    /// There is no DNS server, or none answered.
    #[error("no DNS server answered")]
    Unreachable,
}

/// The answer to a DNS message.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The message, at most 4096 bytes; empty: no answer.
    pub(crate) packet: Vec<u8>,
    /// The name in the question, if there was one.
    pub(crate) name: Option<String>,
    /// Why the policy denied it, if it did.
    pub(crate) denial: Option<Denial>,
    /// Why it failed, if it did.
    pub(crate) failure: Option<LookupError>,
}

impl Names {
    /// Sets up the resolver with these DNS servers, or those of the host, and with the host's hosts file.
    pub(crate) fn new(nameservers: &[SocketAddr]) -> Result<Self, GatewayError> {
        let sources = Sources::of_host(nameservers, LOOKUP_TIMEOUT)
            .map_err(|err| GatewayError::Resolver(err.to_string()))?;
        Ok(Self {
            sources: Arc::new(sources),
            timeout: LOOKUP_TIMEOUT,
        })
    }

    /// The addresses of a name, of both families, in the order to try them.
    pub(crate) async fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, LookupError> {
        let name = canonical_name(name).ok_or(LookupError::NoSuchName)?;
        self.find_addresses(&name)
            .await
            .map_err(|missing| missing.into())
    }

    /// Answers a program's DNS message. `judge` decides whether the name may be looked up, before any query is sent.
    /// `address` stands for the name where the answer is an IPv4 address. `can_be_unknown`: an operator's proxy resolves names,
    /// so a name that this host cannot resolve is answered anyway.
    pub(crate) async fn answer(
        &self,
        packet: &[u8],
        address: Option<Ipv4Addr>,
        can_be_unknown: bool,
        judge: impl Fn(&str) -> Result<(), Denial>,
    ) -> Answer {
        answer::answer(self, packet, address, can_be_unknown, judge).await
    }

    /// The addresses of a canonical name.
    async fn find_addresses(&self, name: &str) -> Result<Vec<IpAddr>, NotFound> {
        if is_localhost(name) {
            return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
        }
        let source = self.sources.current();
        tokio::time::timeout(self.timeout, source.addresses(name))
            .await
            .unwrap_or(Err(NotFound::Answer))
    }

    /// The records of one type of a canonical name, with the aliases that lead to them.
    async fn find_records(&self, name: &str, kind: RecordType) -> Result<Vec<Record>, NotFound> {
        let source = self.sources.current();
        tokio::time::timeout(self.timeout, source.records(name, kind))
            .await
            .unwrap_or(Err(NotFound::Answer))
    }
}

/// Whether a name means the program's own host, which is never looked up (RFC 6761).
fn is_localhost(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}

//! Look-ups: the resolver, and answers to programs.
//!
//! | file | holds |
//! |---|---|
//! | `host` | whom to ask, kept up with the host's own files |
//! | `written` | a hosts file |
//! | `resolver` | how name servers are asked, and `resolv.conf` |
//! | `find`, `records` | addresses and records of a name |
//! | `kept` | addresses that were found a moment ago |
//! | `shared` | look-ups under way, one a name |
//! | `question` | a program's message, read |
//! | `answer` | what it gets |
//! | `reply` | that, written |
//! | `reverse` | names of addresses that are not asked for |

mod answer;
mod find;
mod host;
mod kept;
mod question;
mod records;
mod reply;
mod resolver;
mod reverse;
mod shared;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod written;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hickory_proto::rr::{Record, RecordType};
use sandyard_core::network::Denial;
use sandyard_core::network::pattern::canonical_name;

use self::find::Missing;
use self::host::Sources;
use crate::settings::GatewayError;

/// How long a look-up may take in all; programs give up after five seconds themselves.
const PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 60 } else { 5 });

/// Resolves names for all sandboxes. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    sources: Arc<Sources>,
    patience: Duration,
}

/// A look-up that gives no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LookupError {
    /// There is no such name, or it has no address.
    #[error("no such name")]
    NoSuchName,
    /// Nobody could be asked, or nobody answered.
    #[error("no name server answers")]
    Unreachable,
}

/// What to send back for a DNS message.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The message, at most 4096 bytes; empty: nothing is to be sent back.
    pub(crate) packet: Vec<u8>,
    /// The name that was asked for, if there was one.
    pub(crate) name: Option<String>,
    /// Why it was refused, if it was.
    pub(crate) denial: Option<Denial>,
    /// Whether it failed for another reason.
    pub(crate) failure: Option<LookupError>,
}

impl Names {
    /// Sets the resolver up; the host's own name servers when none are given, and its hosts file in any case.
    pub(crate) fn new(nameservers: &[SocketAddr]) -> Result<Self, GatewayError> {
        let sources = Sources::of_host(nameservers, PATIENCE)
            .map_err(|err| GatewayError::Resolver(err.to_string()))?;
        Ok(Self {
            sources: Arc::new(sources),
            patience: PATIENCE,
        })
    }

    /// The addresses of a name, those of both families, in the order to try them.
    pub(crate) async fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, LookupError> {
        let name = canonical_name(name).ok_or(LookupError::NoSuchName)?;
        self.find_addresses(&name)
            .await
            .map_err(|missing| missing.into())
    }

    /// Answers a program's DNS message. `judge` says whether the name may be asked for; nothing leaves before it has.
    /// `address` stands for the name where the answer is an IPv4 address. `can_be_unknown`: an operator's proxy resolves names,
    /// so that a name this host cannot resolve is answered all the same.
    pub(crate) async fn answer(
        &self,
        packet: &[u8],
        address: Option<Ipv4Addr>,
        can_be_unknown: bool,
        judge: impl Fn(&str) -> Result<(), Denial>,
    ) -> Answer {
        answer::answer(self, packet, address, can_be_unknown, judge).await
    }

    /// The addresses of a name in the form that is compared.
    async fn find_addresses(&self, name: &str) -> Result<Vec<IpAddr>, Missing> {
        if is_localhost(name) {
            return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
        }
        let source = self.sources.current();
        tokio::time::timeout(self.patience, source.addresses(name))
            .await
            .unwrap_or(Err(Missing::Answer))
    }

    /// The records of one kind of a name in the form that is compared, with the aliases that lead to them.
    async fn find_records(&self, name: &str, kind: RecordType) -> Result<Vec<Record>, Missing> {
        let source = self.sources.current();
        tokio::time::timeout(self.patience, source.records(name, kind))
            .await
            .unwrap_or(Err(Missing::Answer))
    }
}

/// Says whether it is the name of the asker itself, which is never asked for outside (RFC 6761).
fn is_localhost(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}

//! The record of a network flow.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::id::SandboxId;

/// Protocol of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = FlowProtocol)]
pub enum Protocol {
    /// TCP connection.
    Tcp,
    /// UDP datagram other than a DNS query.
    Udp,
    /// DNS query.
    Dns,
    /// ICMP message, such as a ping.
    Icmp,
    /// Any other protocol.
    Other,
}

/// Outcome of a flow: `allowed` by the policy, `denied` by it, or `failed` (allowed, but the connection could not be
/// made).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FlowVerdict {
    /// The connection was made.
    Allowed,
    /// The policy denied the connection.
    Denied,
    /// The policy allowed the connection, but the host could not be reached.
    Failed,
}

/// Why a flow was denied. [`fmt::Display`] writes a message in one line.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "code")]
#[non_exhaustive]
pub enum Denial {
    /// The policy denies everything that it does not name, and it does not name the target.
    NotAllowed {
        /// The target, as `host:port`.
        target: String,
    },
    /// An entry of the policy denies it.
    DeniedByPolicy {
        /// The target, as `host:port`.
        target: String,
        /// The entry of the policy.
        entry: String,
    },
    /// The operator denies it to every sandbox.
    DeniedByOperator {
        /// The target, as `host:port`.
        target: String,
    },
    /// Its address is closed to sandboxes: loopback, private, link-local, metadata, this host's own.
    ClosedAddress {
        /// The target, as `host:port`.
        target: String,
        /// The address.
        address: IpAddr,
        /// Its class, as of [`closed_class`](super::address::closed_class), or `own`.
        class: String,
    },
    /// The connection was opened for one name, and used for another.
    NameMismatch {
        /// The name that was looked up.
        name: String,
        /// The name in the TLS hello or the `Host` header.
        #[serde(rename = "said")]
        requested: String,
    },
    /// Only TCP and look-ups of names leave a sandbox.
    ProtocolNotCarried {
        /// The target, as `host:port`.
        target: String,
    },
    /// Too many connections at once, or too many a second.
    TooMany {
        /// The limit that was exceeded.
        limit: String,
    },
}

impl Denial {
    /// The code of the reason, as in events.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotAllowed { .. } => "not_allowed",
            Self::DeniedByPolicy { .. } => "denied_by_policy",
            Self::DeniedByOperator { .. } => "denied_by_operator",
            Self::ClosedAddress { .. } => "closed_address",
            Self::NameMismatch { .. } => "name_mismatch",
            Self::ProtocolNotCarried { .. } => "protocol_not_carried",
            Self::TooMany { .. } => "too_many",
        }
    }

    /// The [`Target`](super::Target) to allow so that the flow passes; none if the sandbox's policy is not the reason.
    pub fn advice(&self) -> Option<String> {
        match self {
            Self::NotAllowed { target } | Self::DeniedByPolicy { target, .. } => {
                Some(target.clone())
            }
            _ => None,
        }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAllowed { target } => {
                write!(f, "`{target}` is not in what this sandbox may reach")
            }
            Self::DeniedByPolicy { target, entry } => {
                write!(
                    f,
                    "`{target}` is denied by the entry `{entry}` of this sandbox's policy"
                )
            }
            Self::DeniedByOperator { target } => write!(f, "`{target}` is denied to every sandbox"),
            Self::ClosedAddress {
                target,
                address,
                class,
            } => write!(
                f,
                "`{target}` is at {address} ({class}), which only the operator can open"
            ),
            Self::NameMismatch { name, requested } => {
                write!(f, "connected to `{name}` and then asked for `{requested}`")
            }
            Self::ProtocolNotCarried { target } => {
                write!(
                    f,
                    "only TCP and look-ups of names leave a sandbox, this went to `{target}`"
                )
            }
            Self::TooMany { limit } => write!(f, "over the limit of {limit}"),
        }
    }
}

/// The record of a flow, or of several equal ones within a short time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// The sandbox.
    pub sandbox_id: SandboxId,
    /// The owner of the sandbox.
    pub owner: String,
    /// When it began, in milliseconds since 1970.
    pub at_ms: i64,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// Its protocol.
    pub protocol: Protocol,
    /// The host name, if it is known.
    pub name: Option<String>,
    /// The IP address.
    pub address: Option<IpAddr>,
    /// The port.
    pub port: Option<u16>,
    /// The verdict.
    pub verdict: FlowVerdict,
    /// Why it was denied.
    pub denial: Option<Denial>,
    /// Why it failed, as text.
    pub failure: Option<String>,
    /// Bytes that the sandbox sent.
    pub sent_bytes: u64,
    /// Bytes that the sandbox received.
    pub received_bytes: u64,
    /// Number of equal flows that this record stands for.
    pub count: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{NetworkPolicy, OperatorRules, Target};

    fn flow() -> Flow {
        Flow {
            sandbox_id: SandboxId::from_random([1; 20]),
            owner: "someone".to_owned(),
            at_ms: 1,
            duration_ms: 2,
            protocol: Protocol::Tcp,
            name: Some("a.org".to_owned()),
            address: Some(IpAddr::from([203, 0, 113, 7])),
            port: Some(443),
            verdict: FlowVerdict::Denied,
            denial: Some(Denial::NotAllowed {
                target: "a.org:443".to_owned(),
            }),
            failure: None,
            sent_bytes: 3,
            received_bytes: 4,
            count: 1,
        }
    }

    #[test]
    fn following_the_advice_lets_it_pass() {
        let operator = OperatorRules::default();
        let at = "2001:db8::1".parse().expect("an address");
        let mut policy = NetworkPolicy::from_value(serde_json::json!({
            "allow_internet_access": false,
            "deny_out": ["b.org", "2001:db8::1"],
        }))
        .expect("a policy");
        let follow = |policy: &mut NetworkPolicy, judged: Result<(), Denial>| {
            let advice = judged.expect_err("a denial").advice().expect("advice");
            policy.allow([advice.parse::<Target>().expect("a target")]);
            advice
        };
        let judged = policy.judge_name(&operator, "a.org", None);
        assert_eq!(follow(&mut policy, judged), "a.org");
        let judged = policy.judge_name(&operator, "b.org", Some(22));
        assert_eq!(follow(&mut policy, judged), "b.org:22");
        let judged = policy.judge_address(&operator, None, at, 80);
        assert_eq!(follow(&mut policy, judged), "[2001:db8::1]:80");
        assert_eq!(policy.judge_name(&operator, "a.org", None), Ok(()));
        assert_eq!(policy.judge_name(&operator, "b.org", Some(22)), Ok(()));
        assert_eq!(policy.judge_address(&operator, None, at, 80), Ok(()));
    }

    #[test]
    fn there_is_no_advice_where_a_policy_changes_nothing() {
        let target = "a.org:80".to_owned();
        let closed = Denial::ClosedAddress {
            target: target.clone(),
            address: IpAddr::from([10, 0, 0, 1]),
            class: "private".to_owned(),
        };
        assert_eq!(
            closed.to_string(),
            "`a.org:80` is at 10.0.0.1 (private), which only the operator can open"
        );
        assert_eq!(closed.advice(), None);
        assert_eq!(Denial::DeniedByOperator { target }.advice(), None);
    }

    #[test]
    fn a_record_is_written_as_it_is_read() {
        let json = serde_json::to_value(flow()).expect("written");
        assert_eq!(json["denial"]["code"], "not_allowed");
        assert_eq!(serde_json::from_value::<Flow>(json).expect("read"), flow());
    }
}

//! A value that was read.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use sandyard_core::network::Target;

use super::network::Network;
use super::sealing_key::SealingKey;

/// What a [`Kind`](super::Kind) makes of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// Nothing was said, and there is no default.
    Nothing,
    Text(String),
    Switch(bool),
    /// Whole numbers, bytes, thousandths of a core.
    Number(u64),
    Duration(Duration),
    Ports(Vec<u16>),
    Addresses(Vec<IpAddr>),
    Networks(Vec<Network>),
    Targets(Vec<Target>),
    NameServers(Vec<SocketAddr>),
    Counts(Vec<(String, u64)>),
    Tokens(Vec<String>),
    Pairs(Vec<(String, String)>),
    SealingKey(SealingKey),
}

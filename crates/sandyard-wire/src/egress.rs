//! Egress: frames between the agent and the gateway, on their own Unix connection.
//!
//! A frame is four bytes of length, most significant first, and that many bytes of JSON. An [`Open`](FromAgent::Open) frame
//! carries one descriptor with it (`SCM_RIGHTS`): the program's own TCP connection, which the agent has accepted.
//! From then on the gateway serves the program directly; no byte passes through the agent.
//!
//! The gateway trusts nothing that the agent sends: it judges the target that the agent names by the sandbox's policy.

use std::net::{IpAddr, Ipv4Addr};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::json;

/// Maximum length of a frame in bytes, without the four bytes of length.
pub const MAX_FRAME_BYTES: usize = 96 * 1024;

/// Maximum length of a request head that the agent's proxy reads before it hands the connection over, in bytes.
pub const MAX_EARLY_BYTES: usize = 32 * 1024;

/// The range of addresses that stand for names: 198.18.0.0/15, which is not routed anywhere (RFC 2544).
pub const NAME_ADDRESSES: (Ipv4Addr, u8) = (Ipv4Addr::new(198, 18, 0, 0), 15);

/// The sandbox's DNS server: an address in [`NAME_ADDRESSES`] that never stands for a name.
pub const NAME_SERVER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);

/// How a connection reached the agent. It decides how the gateway answers the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Via {
    /// Redirected; the program believes it is connected. Refusal is a reset.
    Redirect,
    /// `CONNECT host:port`, read whole and not answered: the gateway writes `HTTP/1.1 200` or a refusal.
    Connect,
    /// SOCKS 5, up to its request: the gateway writes the reply.
    Socks,
    /// A request with a whole URL, its head rewritten for the host and sent along as `early`. Refusal is an HTTP answer.
    Http,
}

/// A message from the agent to the gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum FromAgent {
    /// A program connects. Carries its connection as a descriptor.
    Open {
        /// A name in lower case, or an address.
        host: String,
        /// The port.
        port: u16,
        /// How the connection reached the agent.
        via: Via,
        /// Bytes that the program has sent already.
        #[serde(
            default,
            with = "json::base64_bytes",
            skip_serializing_if = "Bytes::is_empty"
        )]
        early: Bytes,
    },
    /// A program looks a name up.
    Query {
        /// Identifies the query in its answer.
        id: u32,
        /// The address that stands for the name, if the answer is an IPv4 address.
        address: Option<Ipv4Addr>,
        /// The DNS message.
        #[serde(with = "json::base64_bytes")]
        packet: Bytes,
    },
    /// Packets were blocked because nothing carries them: they are not TCP, or bypassed the redirect.
    #[serde(rename = "stray")]
    BlockedPackets {
        /// Protocol number, as in the IP header.
        protocol: u8,
        /// Destination address.
        address: IpAddr,
        /// The port, where the protocol has one.
        port: Option<u16>,
        /// Number of packets since the last frame about the same destination.
        count: u64,
    },
}

/// A message from the gateway to the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum ToAgent {
    /// Use this connection from now on.
    Lead,
    /// The answer to a [`FromAgent::Query`].
    Answer {
        /// The `id` of the query.
        id: u32,
        /// The DNS message.
        #[serde(with = "json::base64_bytes")]
        packet: Bytes,
    },
}

/// An invalid frame.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// Longer than [`MAX_FRAME_BYTES`].
    #[error("a frame of {0} bytes is too long")]
    TooLong(usize),
    /// The content is not a valid message.
    #[error("a frame is not a valid message")]
    NoMessage(#[from] serde_json::Error),
}

/// Writes a message as a frame.
///
/// # Errors
/// When it is too long.
pub fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, FrameError> {
    let mut frame = vec![0; 4];
    serde_json::to_writer(&mut frame, message)?;
    let len = frame.len() - 4;
    match u32::try_from(len) {
        Ok(short) if len <= MAX_FRAME_BYTES => frame[..4].copy_from_slice(&short.to_be_bytes()),
        _ => return Err(FrameError::TooLong(len)),
    }
    Ok(frame)
}

/// Removes the first whole frame from the received bytes; `None` while it is incomplete.
///
/// # Errors
/// When the bytes are not a valid frame; the connection cannot be used any more then.
pub fn decode<T: serde::de::DeserializeOwned>(
    received: &mut Vec<u8>,
) -> Result<Option<T>, FrameError> {
    let Some(head) = received.first_chunk::<4>() else {
        return Ok(None);
    };
    let len = u32::from_be_bytes(*head) as usize;
    if len > MAX_FRAME_BYTES {
        return Err(FrameError::TooLong(len));
    }
    let Some(body) = received.get(4..4 + len) else {
        return Ok(None);
    };
    let message = serde_json::from_slice(body)?;
    received.drain(..4 + len);
    Ok(Some(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_back_however_they_are_cut() {
        let messages = [
            FromAgent::Open {
                host: "example.com".into(),
                port: 443,
                via: Via::Redirect,
                early: Bytes::new(),
            },
            FromAgent::Query {
                id: 7,
                address: Some(Ipv4Addr::new(198, 18, 0, 2)),
                packet: Bytes::from_static(&[0, 255, 3]),
            },
        ];
        let all: Vec<u8> = messages
            .iter()
            .flat_map(|message| encode(message).unwrap())
            .collect();
        for cut in 1..all.len() {
            let (mut received, mut read) = (Vec::new(), Vec::new());
            for piece in all.chunks(cut) {
                received.extend_from_slice(piece);
                while let Some(message) = decode::<FromAgent>(&mut received).unwrap() {
                    read.push(message);
                }
            }
            assert_eq!(read, messages);
        }
    }

    #[test]
    fn a_frame_over_the_maximum_length_is_refused_before_its_body_arrives() {
        let mut received = vec![0xff; 4];
        assert!(decode::<ToAgent>(&mut received).is_err());
    }
}

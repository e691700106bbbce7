//! A program's DNS message, read.

use hickory_proto::op::{Edns, Message, Query, ResponseCode};
use hickory_proto::rr::{DNSClass, Name, RecordType};

use super::reply;

/// Longest message that is read; no question comes near.
const MAX_BYTES: usize = 4096;

/// Bytes before the first question.
const HEADER_BYTES: usize = 12;

/// One question, well-formed and of the internet.
#[derive(Debug)]
pub(super) struct Question {
    /// The message's number, which comes back.
    pub(super) id: u16,
    /// Whether the program wants others to be asked; comes back.
    pub(super) recursion_desired: bool,
    /// Whether the program checks signatures itself; comes back.
    pub(super) checking_disabled: bool,
    /// As it was asked, upper and lower case included; comes back.
    pub(super) query: Query,
    /// Whether the program speaks EDNS, and must hear it.
    pub(super) has_edns: bool,
}

/// Reads a message.
///
/// # Errors
/// What to send back when it holds no question that can be answered; nothing, if it is not even a question.
pub(super) fn read(packet: &[u8]) -> Result<Question, Vec<u8>> {
    let Some(&header) = packet.first_chunk::<HEADER_BYTES>() else {
        return Err(Vec::new());
    };
    let (is_reply, opcode) = (header[2] & 0x80 != 0, header[2] >> 3 & 0x0f);
    if is_reply {
        return Err(Vec::new());
    }
    if opcode != 0 {
        return Err(reply::bare(&header, ResponseCode::NotImp));
    }
    // One question, no answers, no authorities: before anything is counted on that was only announced.
    if packet.len() > MAX_BYTES || header[4..10] != [0, 1, 0, 0, 0, 0] {
        return Err(reply::bare(&header, ResponseCode::FormErr));
    }
    let Ok(message) = Message::from_vec(packet) else {
        return Err(reply::bare(&header, ResponseCode::FormErr));
    };
    let [query] = message.queries.as_slice() else {
        return Err(reply::bare(&header, ResponseCode::FormErr));
    };
    let question = Question {
        id: message.id,
        recursion_desired: message.recursion_desired,
        checking_disabled: message.checking_disabled,
        query: query.clone(),
        has_edns: message.edns.is_some(),
    };
    if message
        .edns
        .as_ref()
        .is_some_and(|edns| Edns::version(edns) != 0)
    {
        return Err(question.reply(ResponseCode::BADVERS, Vec::new(), None));
    }
    if query.query_class() != DNSClass::IN {
        return Err(question.reply(ResponseCode::NotImp, Vec::new(), None));
    }
    Ok(question)
}

impl Question {
    /// The name, as it was asked.
    pub(super) fn name(&self) -> &Name {
        self.query.name()
    }

    /// Which records are wanted.
    pub(super) fn kind(&self) -> RecordType {
        self.query.query_type()
    }
}

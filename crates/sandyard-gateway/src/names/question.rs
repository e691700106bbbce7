//! Parsing a program's DNS query.

use hickory_proto::op::{Edns, Message, Query, ResponseCode};
use hickory_proto::rr::{DNSClass, Name, RecordType};

use super::reply;

/// Maximum length of a query, in bytes; real ones are far shorter.
const MAX_BYTES: usize = 4096;

/// Bytes before the first question.
const HEADER_BYTES: usize = 12;

/// One well-formed question of class IN.
#[derive(Debug)]
pub(super) struct Question {
    /// The query's id, which is returned.
    pub(super) id: u16,
    /// Whether recursion is desired; it is returned.
    pub(super) recursion_desired: bool,
    /// Whether the program checks signatures itself; it is returned.
    pub(super) checking_disabled: bool,
    /// The question with its letter case, which is returned.
    pub(super) query: Query,
    /// Whether the program uses EDNS, so that the answer must, too.
    pub(super) has_edns: bool,
}

/// Parses a query.
///
/// # Errors
/// The answer to a query that cannot be answered; empty if the message is not a query.
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
    // One question, no answers, no authorities: checked before the parser trusts these counts.
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
    /// The name in the question.
    pub(super) fn name(&self) -> &Name {
        self.query.name()
    }

    /// The requested record type.
    pub(super) fn kind(&self) -> RecordType {
        self.query.query_type()
    }
}

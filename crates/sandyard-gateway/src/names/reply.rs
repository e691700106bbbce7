//! Encoding answers.

use hickory_proto::op::{Edns, Message, OpCode, ResponseCode};
use hickory_proto::rr::Record;
use hickory_proto::rr::rdata::opt::EdnsOption;

use super::question::Question;

/// Maximum length of an answer, in bytes. Loopback cuts nothing, so this applies also to a program that announced less.
const MAX_BYTES: usize = 4096;

/// The announced maximum size of a datagram, in bytes.
const PAYLOAD_BYTES: u16 = 4096;

/// The EDNS option for extended errors (RFC 8914).
const EXTENDED_ERROR: u16 = 15;

/// Maximum length of an extended error's text, in bytes.
const MAX_TEXT_BYTES: usize = 400;

/// An explanation for people who use `dig` (RFC 8914).
#[derive(Debug)]
pub(super) struct Note {
    /// The info code.
    code: u16,
    text: String,
}

impl Note {
    /// The policy denies it.
    pub(super) fn blocked(text: impl ToString) -> Self {
        Self::new(15, text)
    }

    /// No DNS server answered.
    pub(super) fn unreachable(text: impl ToString) -> Self {
        Self::new(22, text)
    }

    fn new(code: u16, text: impl ToString) -> Self {
        let mut text = text.to_string();
        let end = text.floor_char_boundary(MAX_TEXT_BYTES);
        text.truncate(end);
        Self { code, text }
    }

    fn into_option(self) -> EdnsOption {
        let mut bytes = self.code.to_be_bytes().to_vec();
        bytes.extend(self.text.into_bytes());
        EdnsOption::Unknown(EXTENDED_ERROR, bytes)
    }
}

impl Question {
    /// Encodes the answer; drops records from its end until it fits.
    pub(super) fn reply(
        &self,
        code: ResponseCode,
        records: Vec<Record>,
        note: Option<Note>,
    ) -> Vec<u8> {
        let mut message = Message::response(self.id, OpCode::Query);
        message.metadata.recursion_desired = self.recursion_desired;
        message.metadata.recursion_available = true;
        message.metadata.checking_disabled = self.checking_disabled;
        message.metadata.response_code = code;
        message.add_query(self.query.clone());
        message.add_answers(records);
        if self.has_edns {
            let mut edns = Edns::new();
            edns.set_max_payload(PAYLOAD_BYTES);
            if let Some(note) = note {
                edns.options_mut().insert(note.into_option());
            }
            message.set_edns(edns);
        }
        loop {
            match message.to_vec() {
                Ok(packet) if packet.len() <= MAX_BYTES => return packet,
                _ if message.answers.pop().is_some() => message.metadata.truncation = true,
                // Unreachable: a question that was parsed can be encoded.
                _ => return Vec::new(),
            }
        }
    }
}

/// An answer of only a header, for an invalid query.
pub(super) fn bare(header: &[u8; 12], code: ResponseCode) -> Vec<u8> {
    let mut packet = vec![0; header.len()];
    packet[..2].copy_from_slice(&header[..2]);
    // A reply, with the query's opcode and recursion flag.
    packet[2] = 0x80 | header[2] & 0x79;
    packet[3] = code.low();
    packet
}

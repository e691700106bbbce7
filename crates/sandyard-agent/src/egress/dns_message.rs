//! The parts of DNS messages that the agent needs: the question, and answers without records.

use sandyard_core::network::pattern::canonical_name;

/// Bytes before the question.
pub(super) const HEADER_BYTES: usize = 12;

/// Maximum length of a query, in bytes.
pub(super) const MAX_QUERY_BYTES: usize = 4096;

/// Maximum length of an answer in a datagram without EDNS, in bytes.
const PLAIN_DATAGRAM_BYTES: usize = 512;

/// Maximum length of an answer in a datagram with EDNS, in bytes.
const MAX_DATAGRAM_BYTES: usize = 4096;

/// Maximum number of records after the question that are searched for the client's limit.
const MAX_RECORDS: u16 = 8;

const TYPE_A: u16 = 1;
const TYPE_OPT: u16 = 41;
const CLASS_IN: u16 = 1;

/// Third byte of a header: the message is an answer.
const ANSWER: u8 = 0x80;
/// Third byte: the kind of query.
const OPCODE: u8 = 0x78;
/// Third byte: the answer is truncated.
const TRUNCATED: u8 = 0x02;
/// Third byte: recursion is desired.
const RECURSE: u8 = 0x01;
/// Fourth byte: recursion is available.
const RECURSES: u8 = 0x80;

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    /// The query cannot be read.
    Format = 1,
    /// No server could answer.
    Failure = 2,
    /// This kind of query is not supported.
    NotImplemented = 4,
}

/// The question of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Question {
    /// The name in canonical form, if it is one that a host can have.
    name: Option<String>,
    kind: u16,
    class: u16,
    /// The offset of the question's end.
    end: usize,
}

/// Why a query is not forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flaw {
    /// It is not a query and gets no answer.
    NotAQuery,
    /// It is answered with this code.
    Refused(Code),
}

impl Question {
    /// Reads the question of a query.
    pub(super) fn of(query: &[u8]) -> Result<Self, Flaw> {
        let header = query.first_chunk::<HEADER_BYTES>().ok_or(Flaw::NotAQuery)?;
        if header[2] & ANSWER != 0 {
            return Err(Flaw::NotAQuery);
        }
        if header[2] & OPCODE != 0 {
            return Err(Flaw::Refused(Code::NotImplemented));
        }
        let is_one = number(query, 4) == Some(1);
        let question = is_one.then(|| Self::read(query)).flatten();
        question.ok_or(Flaw::Refused(Code::Format))
    }

    fn read(query: &[u8]) -> Option<Self> {
        let (name, at) = read_name(query)?;
        Some(Self {
            name,
            kind: number(query, at)?,
            class: number(query, at + 2)?,
            end: at + 4,
        })
    }

    /// The name, if the question asks for its IPv4 address.
    pub(super) fn wanted_address(&self) -> Option<&str> {
        if (self.kind, self.class) != (TYPE_A, CLASS_IN) {
            return None;
        }
        self.name.as_deref()
    }
}

/// The name at the start of the question, and its end. It cannot be compressed: there is nothing before it to point to.
fn read_name(query: &[u8]) -> Option<(Option<String>, usize)> {
    let mut name = String::new();
    let mut at = HEADER_BYTES;
    let mut is_text = true;
    loop {
        let length = usize::from(*query.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        let label = query.get(at..at + length).filter(|_| length <= 63)?;
        at += length;
        if at - HEADER_BYTES > 254 {
            return None;
        }
        match std::str::from_utf8(label) {
            Ok(label) if !label.contains('.') => {
                name.push_str(label);
                name.push('.');
            }
            _ => is_text = false,
        }
    }
    let host = canonical_name(&name).filter(|_| is_text);
    Some((host, at))
}

/// Maximum length of an answer in a datagram for this query, in bytes.
pub(super) fn datagram_limit(query: &[u8], question: &Question) -> usize {
    let announced = announced_limit(query, question.end).unwrap_or(PLAIN_DATAGRAM_BYTES);
    announced.clamp(PLAIN_DATAGRAM_BYTES, MAX_DATAGRAM_BYTES)
}

/// The limit in the client's EDNS record.
fn announced_limit(query: &[u8], mut at: usize) -> Option<usize> {
    let counts = [number(query, 6)?, number(query, 8)?, number(query, 10)?];
    let records = counts.into_iter().fold(0, u16::saturating_add);
    for _ in 0..records.min(MAX_RECORDS) {
        at = skip_name(query, at)?;
        let (kind, class) = (number(query, at)?, number(query, at + 2)?);
        if kind == TYPE_OPT {
            return Some(usize::from(class));
        }
        at += 10 + usize::from(number(query, at + 8)?);
    }
    None
}

fn skip_name(query: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *query.get(at)? {
            0 => return Some(at + 1),
            length @ 1..=63 => at += 1 + usize::from(length),
            0xc0.. => return Some(at + 2),
            _ => return None,
        }
    }
}

/// An answer with an error code.
pub(super) fn failure(query: &[u8], question: Option<&Question>, code: Code) -> Vec<u8> {
    let mut answer = head_and_question(query, query, question);
    if let Some(flags) = answer.get_mut(2..4) {
        flags[0] = ANSWER | (flags[0] & (OPCODE | RECURSE));
        flags[1] = RECURSES | code as u8;
    }
    answer
}

/// A truncated answer, which makes the client retry over TCP.
pub(super) fn truncated(query: &[u8], question: &Question, answer: &[u8]) -> Vec<u8> {
    let mut answer = head_and_question(answer, query, Some(question));
    if let Some(flags) = answer.get_mut(2) {
        *flags |= ANSWER | TRUNCATED;
    }
    answer
}

/// The header of a message and the question of the query, without records.
fn head_and_question(header: &[u8], query: &[u8], question: Option<&Question>) -> Vec<u8> {
    let mut message = header.get(..HEADER_BYTES).unwrap_or_default().to_vec();
    if let Some(counts) = message.get_mut(4..) {
        counts.fill(0);
        if let Some(question_bytes) =
            question.and_then(|question| query.get(HEADER_BYTES..question.end))
        {
            counts[1] = 1;
            message.extend_from_slice(question_bytes);
        }
    }
    message
}

/// The two bytes at an offset, as a number.
fn number(message: &[u8], at: usize) -> Option<u16> {
    let bytes = message.get(at..)?.first_chunk::<2>()?;
    Some(u16::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(name: &[u8], kind: u16) -> Vec<u8> {
        let mut query = vec![0xab, 0xcd, RECURSE, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        query.extend_from_slice(name);
        query.extend(kind.to_be_bytes());
        query.extend(CLASS_IN.to_be_bytes());
        query
    }

    const EXAMPLE: &[u8] = b"\x07ExAmPlE\x03com\0";

    #[test]
    fn the_name_is_read_in_lower_case() {
        let question = Question::of(&query(EXAMPLE, TYPE_A)).unwrap();
        assert_eq!(question.wanted_address(), Some("example.com"));
        let other = Question::of(&query(EXAMPLE, 28)).unwrap();
        assert_eq!(other.wanted_address(), None);
    }

    #[test]
    fn names_no_host_can_have_are_passed_on_without_an_address() {
        for name in [
            &b"\0"[..],
            b"\x03a.b\0",
            b"\x02\xff\xfe\0",
            b"\x03a b\0",
            b"\x01*\x03com\0",
            b"\x0310\x2e\0",
            b"\x0210\x010\x010\x011\0",
        ] {
            let question = Question::of(&query(name, TYPE_A)).unwrap();
            assert_eq!(question.wanted_address(), None, "{name:?}");
        }
    }

    #[test]
    fn other_messages_are_distinguished_from_invalid_queries() {
        let good = query(EXAMPLE, TYPE_A);
        let with = |at: usize, value: u8| {
            let mut query = good.clone();
            query[at] = value;
            Question::of(&query).unwrap_err()
        };
        assert_eq!(with(2, ANSWER), Flaw::NotAQuery);
        assert_eq!(with(2, 0x28), Flaw::Refused(Code::NotImplemented));
        assert_eq!(with(5, 0), Flaw::Refused(Code::Format));
        assert_eq!(with(5, 2), Flaw::Refused(Code::Format));
        // A pointer, and a length no label has.
        assert_eq!(with(12, 0xc0), Flaw::Refused(Code::Format));
        assert_eq!(with(12, 0x40), Flaw::Refused(Code::Format));
        for length in 0..good.len() {
            let flaw = Question::of(&good[..length]).unwrap_err();
            let expected = if length < HEADER_BYTES {
                Flaw::NotAQuery
            } else {
                Flaw::Refused(Code::Format)
            };
            assert_eq!(flaw, expected, "{length}");
        }
        let endless = query(&b"\x01a".repeat(2000), TYPE_A);
        assert_eq!(
            Question::of(&endless).unwrap_err(),
            Flaw::Refused(Code::Format)
        );
    }

    #[test]
    fn the_longest_name_is_read_and_one_byte_more_is_not() {
        let longest = [&b"\x01a".repeat(126)[..], b"\x01b\0"].concat();
        assert_eq!(longest.len(), 255);
        let question = Question::of(&query(&longest, TYPE_A)).unwrap();
        assert_eq!(question.wanted_address().unwrap().len(), 253);
        let longer = [&b"\x01a".repeat(126)[..], b"\x02bc\0"].concat();
        assert!(Question::of(&query(&longer, TYPE_A)).is_err());
    }

    #[test]
    fn a_failure_repeats_the_question() {
        let query = query(EXAMPLE, TYPE_A);
        let question = Question::of(&query).unwrap();
        let answer = failure(&query, Some(&question), Code::Failure);
        assert_eq!(answer[..4], [0xab, 0xcd, ANSWER | RECURSE, RECURSES | 2]);
        assert_eq!(answer[4..12], [0, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(answer[12..], query[12..]);
        let answer = failure(&query, None, Code::Format);
        assert_eq!(answer.len(), HEADER_BYTES);
        assert_eq!(answer[4..], [0; 8]);
    }

    #[test]
    fn the_clients_limit_is_found_and_bounded() {
        let mut query = query(EXAMPLE, TYPE_A);
        let question = Question::of(&query).unwrap();
        assert_eq!(datagram_limit(&query, &question), 512);
        query[11] = 1;
        assert_eq!(
            datagram_limit(&query, &question),
            512,
            "announced and not there"
        );
        let plain = query.clone();
        for (announced, limit) in [(1232u16, 1232), (100, 512), (65535, 4096)] {
            let mut query = plain.clone();
            query.push(0);
            query.extend(TYPE_OPT.to_be_bytes());
            query.extend(announced.to_be_bytes());
            query.extend([0; 6]);
            assert_eq!(datagram_limit(&query, &question), limit);
            // Behind another record.
            query[11] = 2;
            let mut other = plain.clone();
            other[11] = 2;
            other.extend(*b"\xc0\x0c\0\x01\0\x01\0\0\0\0\0\x04abcd");
            other.extend_from_slice(&query[plain.len()..]);
            assert_eq!(datagram_limit(&other, &question), limit);
        }
    }

    #[test]
    fn a_truncated_answer_has_no_records() {
        let query = query(EXAMPLE, TYPE_A);
        let question = Question::of(&query).unwrap();
        let mut long = query.clone();
        long[2] = ANSWER;
        long[7] = 40;
        long.resize(2000, 1);
        let answer = truncated(&query, &question, &long);
        assert_eq!(answer.len(), query.len());
        assert_eq!(answer[2], ANSWER | TRUNCATED);
        assert_eq!(answer[4..12], [0, 1, 0, 0, 0, 0, 0, 0]);
    }
}

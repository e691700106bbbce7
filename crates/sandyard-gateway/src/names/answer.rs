//! The answer to a program's query.

use std::net::{Ipv4Addr, Ipv6Addr};

use hickory_proto::op::ResponseCode;
use hickory_proto::rr::rdata::{A, AAAA};
use hickory_proto::rr::{RData, Record, RecordType};
use sandyard_core::network::Denial;
use sandyard_core::network::pattern::canonical_name;

use super::lookup::NotFound;
use super::question::{self, Question};
use super::reply::Note;
use super::{Answer, LookupError, Names, is_localhost, reverse};

/// TTL of an address that stands for a name, in seconds.
const STAND_IN_SECONDS: u32 = 30;

/// Maximum TTL of records, in seconds.
const MAX_TTL_SECONDS: u32 = 60;

/// Maximum number of records in an answer.
const MAX_RECORDS: usize = 32;

/// The outcome of a query.
enum Outcome {
    Records(Vec<Record>),
    NoRecord,
    /// The name exists and has neither an IPv4 nor an IPv6 address.
    NoAddress,
    NoName,
    NoAnswer,
    /// The agent has no address that could stand for the name.
    NoStandIn,
    NotCarried,
    Denied(Denial),
}

/// See [`Names::answer`].
pub(super) async fn answer(
    names: &Names,
    packet: &[u8],
    address: Option<Ipv4Addr>,
    can_be_unknown: bool,
    judge: impl Fn(&str) -> Result<(), Denial>,
) -> Answer {
    let question = match question::read(packet) {
        Ok(question) => question,
        Err(packet) => return plain(packet),
    };
    if question.name().is_root() {
        // The root exists, and has no records for a sandbox.
        return plain(question.reply(ResponseCode::NoError, Vec::new(), None));
    }
    let Some(name) = canonical_name(&question.name().to_ascii()) else {
        // Well-formed, but not a host name: other characters, or an address.
        return Answer {
            failure: Some(LookupError::NoSuchName),
            ..plain(question.reply(ResponseCode::NXDomain, Vec::new(), None))
        };
    };
    let outcome = match local_answer(&question, &name) {
        Some(outcome) => outcome,
        None => match judge(&name) {
            Err(denial) => Outcome::Denied(denial),
            Ok(()) => ask(names, &question, &name, address, can_be_unknown).await,
        },
    };
    outcome.into_answer(&question, name)
}

/// Answers that need no look-up and no permission.
fn local_answer(question: &Question, name: &str) -> Option<Outcome> {
    if is_localhost(name) {
        let own = match question.kind() {
            RecordType::A => RData::A(A(Ipv4Addr::LOCALHOST)),
            RecordType::AAAA => RData::AAAA(AAAA(Ipv6Addr::LOCALHOST)),
            _ => return Some(Outcome::NoRecord),
        };
        return Some(Outcome::Records(vec![record(question, own)]));
    }
    reverse::is_closed(question.name()).then_some(Outcome::NoName)
}

async fn ask(
    names: &Names,
    question: &Question,
    name: &str,
    address: Option<Ipv4Addr>,
    can_be_unknown: bool,
) -> Outcome {
    match question.kind() {
        kind if !is_carried(kind) => Outcome::NotCarried,
        RecordType::A | RecordType::AAAA => {
            // Where a proxy resolves names, this host's DNS servers often do not know outside names. Their answer would not
            // count, so they are not asked.
            let found = if can_be_unknown {
                Ok(())
            } else {
                names.find_addresses(name).await.map(drop)
            };
            match found {
                // Without an IPv6 address programs use the IPv4 one, which stands for the name.
                Ok(()) if question.kind() == RecordType::AAAA => Outcome::NoRecord,
                Ok(()) => stand_in(question, address),
                Err(NotFound::Record) => Outcome::NoAddress,
                Err(missing) => missing.into(),
            }
        }
        // They contain keys that encrypt the name in TLS, and ports and addresses of their own.
        RecordType::HTTPS | RecordType::SVCB => Outcome::NoRecord,
        kind => match names.find_records(name, kind).await {
            Ok(records) => Outcome::Records(limited(records)),
            Err(missing) => missing.into(),
        },
    }
}

fn stand_in(question: &Question, address: Option<Ipv4Addr>) -> Outcome {
    match address {
        Some(address) => {
            let mut record = record(question, RData::A(A(address)));
            record.ttl = STAND_IN_SECONDS;
            Outcome::Records(vec![record])
        }
        None => Outcome::NoStandIn,
    }
}

fn record(question: &Question, data: RData) -> Record {
    Record::from_rdata(question.name().clone(), MAX_TTL_SECONDS, data)
}

fn limited(mut records: Vec<Record>) -> Vec<Record> {
    records.truncate(MAX_RECORDS);
    for record in &mut records {
        record.ttl = record.ttl.min(MAX_TTL_SECONDS);
    }
    records
}

/// Record types that are useful to programs in a sandbox. Names in them are judged when they are looked up.
fn is_carried(kind: RecordType) -> bool {
    matches!(
        kind,
        RecordType::A
            | RecordType::AAAA
            | RecordType::CAA
            | RecordType::CNAME
            | RecordType::DNSKEY
            | RecordType::DS
            | RecordType::HTTPS
            | RecordType::MX
            | RecordType::NAPTR
            | RecordType::NS
            | RecordType::PTR
            | RecordType::SOA
            | RecordType::SRV
            | RecordType::SSHFP
            | RecordType::SVCB
            | RecordType::TLSA
            | RecordType::TXT
    )
}

impl From<NotFound> for Outcome {
    fn from(missing: NotFound) -> Self {
        match missing {
            NotFound::Name => Self::NoName,
            NotFound::Record => Self::NoRecord,
            NotFound::Answer => Self::NoAnswer,
        }
    }
}

impl Outcome {
    fn into_answer(self, question: &Question, name: String) -> Answer {
        let (mut denial, mut failure, mut note, mut records) = (None, None, None, Vec::new());
        let code = match self {
            Self::Records(found) => {
                records = found;
                ResponseCode::NoError
            }
            Self::NoRecord => ResponseCode::NoError,
            Self::NoAddress => {
                failure = Some(LookupError::NoSuchName);
                ResponseCode::NoError
            }
            Self::NoName => {
                failure = Some(LookupError::NoSuchName);
                ResponseCode::NXDomain
            }
            Self::NoAnswer => {
                failure = Some(LookupError::Unreachable);
                note = Some(Note::unreachable(LookupError::Unreachable));
                ResponseCode::ServFail
            }
            Self::NoStandIn => ResponseCode::ServFail,
            Self::NotCarried => ResponseCode::NotImp,
            Self::Denied(why) => {
                note = Some(Note::blocked(&why));
                denial = Some(why);
                ResponseCode::Refused
            }
        };
        Answer {
            packet: question.reply(code, records, note),
            name: Some(name),
            denial,
            failure,
        }
    }
}

/// An answer without a name or an error.
fn plain(packet: Vec<u8>) -> Answer {
    Answer {
        packet,
        name: None,
        denial: None,
        failure: None,
    }
}

//! What a program gets for its question.

use std::net::{Ipv4Addr, Ipv6Addr};

use hickory_proto::op::ResponseCode;
use hickory_proto::rr::rdata::{A, AAAA};
use hickory_proto::rr::{RData, Record, RecordType};
use sandyard_core::network::Denial;
use sandyard_core::network::pattern::canonical_name;

use super::find::Missing;
use super::question::{self, Question};
use super::reply::Note;
use super::{Answer, LookupError, Names, is_localhost, reverse};

/// How long programs may keep the address that stands for a name.
const STAND_IN_SECONDS: u32 = 30;

/// How long programs may keep records that are passed on.
const LONGEST_KEPT_SECONDS: u32 = 60;

/// Records that are passed on, the first ones.
const MAX_RECORDS: usize = 32;

/// What a question comes to.
enum Outcome {
    Records(Vec<Record>),
    NoRecord,
    /// The name exists and has no address, neither of IPv4 nor of IPv6.
    NoAddress,
    NoName,
    NoAnswer,
    /// There is no address left that could stand for the name.
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
        Err(packet) => return written(packet),
    };
    if question.name().is_root() {
        // The root exists and has nothing for a sandbox.
        return written(question.reply(ResponseCode::NoError, Vec::new(), None));
    }
    let Some(name) = canonical_name(&question.name().to_ascii()) else {
        // Well-formed, but no host can be called that: other characters, or an address.
        return Answer {
            failure: Some(LookupError::NoSuchName),
            ..written(question.reply(ResponseCode::NXDomain, Vec::new(), None))
        };
    };
    let outcome = match without_asking(&question, &name) {
        Some(outcome) => outcome,
        None => match judge(&name) {
            Err(denial) => Outcome::Denied(denial),
            Ok(()) => ask(names, &question, &name, address, can_be_unknown).await,
        },
    };
    outcome.into_answer(&question, name)
}

/// What is known without asking anybody, and without anybody's leave.
fn without_asking(question: &Question, name: &str) -> Option<Outcome> {
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
            // Where a proxy resolves names, this host's servers often know none of the outside, and say so or say nothing. What
            // they say would not count, so they are not waited for.
            let found = if can_be_unknown {
                Ok(())
            } else {
                names.find_addresses(name).await.map(drop)
            };
            match found {
                // Without an IPv6 address programs take the other one, which stands for the name.
                Ok(()) if question.kind() == RecordType::AAAA => Outcome::NoRecord,
                Ok(()) => stand_in(question, address),
                Err(Missing::Record) => Outcome::NoAddress,
                Err(missing) => missing.into(),
            }
        }
        // They carry keys that hide the name from us, and ports and addresses of their own.
        RecordType::HTTPS | RecordType::SVCB => Outcome::NoRecord,
        kind => match names.find_records(name, kind).await {
            Ok(records) => Outcome::Records(passed_on(records)),
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
    Record::from_rdata(question.name().clone(), LONGEST_KEPT_SECONDS, data)
}

fn passed_on(mut records: Vec<Record>) -> Vec<Record> {
    records.truncate(MAX_RECORDS);
    for record in &mut records {
        record.ttl = record.ttl.min(LONGEST_KEPT_SECONDS);
    }
    records
}

/// Kinds of records that have a meaning for programs in a sandbox. Names in them are looked up, and judged, in their turn.
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

impl From<Missing> for Outcome {
    fn from(missing: Missing) -> Self {
        match missing {
            Missing::Name => Self::NoName,
            Missing::Record => Self::NoRecord,
            Missing::Answer => Self::NoAnswer,
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

/// An answer with nothing to tell of it.
fn written(packet: Vec<u8>) -> Answer {
    Answer {
        packet,
        name: None,
        denial: None,
        failure: None,
    }
}

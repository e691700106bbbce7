//! Look-ups against a real name server on loopback.

mod addresses;
mod answers;
mod files;
mod hostile;

use hickory_proto::rr::rdata::{A, AAAA, CNAME};
use hickory_proto::rr::{Name, RData, Record};

fn name(text: &str) -> Name {
    Name::from_ascii(text).unwrap()
}

fn v4(of: &str, address: &str) -> Record {
    Record::from_rdata(name(of), 60, RData::A(A(address.parse().unwrap())))
}

fn v6(of: &str, address: &str) -> Record {
    Record::from_rdata(name(of), 60, RData::AAAA(AAAA(address.parse().unwrap())))
}

fn alias(of: &str, to: &str) -> Record {
    Record::from_rdata(name(of), 60, RData::CNAME(CNAME(name(to))))
}

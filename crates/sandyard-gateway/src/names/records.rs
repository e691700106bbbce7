//! The records of an answer that belong to its question.

use std::net::IpAddr;
use std::time::Duration;

use hickory_proto::rr::{Name, RData, Record, RecordType};

/// Maximum number of aliases that are followed.
const MAX_ALIASES: usize = 16;

/// The records that belong to the question: the aliases, then the records of the type under the last name. Other records that
/// a server adds are ignored.
pub(super) fn belonging(name: &Name, kind: RecordType, answers: &[Record]) -> Vec<Record> {
    let (mut last, mut records) = (name, Vec::new());
    while kind != RecordType::CNAME && records.len() < MAX_ALIASES {
        let alias = answers.iter().find_map(|record| match &record.data {
            RData::CNAME(target) if record.name == *last => Some((record, &target.0)),
            _ => None,
        });
        let Some((record, target)) = alias else { break };
        records.push(record.clone());
        last = target;
    }
    let own = answers
        .iter()
        .filter(|record| record.record_type() == kind && record.name == *last);
    records.extend(own.cloned());
    records
}

/// The addresses among them.
pub(super) fn addresses_of(records: &[Record]) -> Vec<IpAddr> {
    records
        .iter()
        .filter_map(|record| record.data.ip_addr())
        .collect()
}

/// The lifetime of records: the shortest of their TTLs.
pub(super) fn lifetime_of(records: &[Record]) -> Duration {
    let seconds = records.iter().map(|record| record.ttl).min();
    Duration::from_secs(seconds.unwrap_or_default().into())
}

#[cfg(test)]
mod tests {
    use hickory_proto::rr::rdata::{A, CNAME};

    use super::*;

    fn name(text: &str) -> Name {
        Name::from_ascii(text).unwrap()
    }

    fn address(of: &str, last: u8) -> Record {
        Record::from_rdata(name(of), 60, RData::A(A::new(192, 0, 2, last)))
    }

    fn alias(of: &str, to: &str) -> Record {
        Record::from_rdata(name(of), 30, RData::CNAME(CNAME(name(to))))
    }

    #[test]
    fn only_records_at_the_end_of_the_aliases_belong_to_a_name() {
        let answers = [
            address("evil.example.", 66),
            alias("b.example.", "C.example."),
            alias("A.example.", "b.example."),
            address("c.example.", 1),
            address("a.example.", 66),
            address("c.example.", 2),
        ];
        let found = belonging(&name("a.example."), RecordType::A, &answers);
        let expected: Vec<IpAddr> = vec![[192, 0, 2, 1].into(), [192, 0, 2, 2].into()];
        assert_eq!(addresses_of(&found), expected);
        assert_eq!(found.len(), 4);
        assert_eq!(lifetime_of(&found), Duration::from_secs(30));
    }

    #[test]
    fn aliases_that_go_in_a_circle_end() {
        let answers = [
            alias("a.example.", "b.example."),
            alias("b.example.", "a.example."),
        ];
        let found = belonging(&name("a.example."), RecordType::A, &answers);
        assert_eq!(found.len(), MAX_ALIASES);
    }
}

//! Addresses and records of a name.

use std::net::IpAddr;
use std::time::Duration;

use futures_util::future::{Either, select};
use hickory_proto::op::ResponseCode;
use hickory_proto::rr::{Name, Record, RecordType};
use hickory_resolver::net::{DnsError, NetError};
use tokio::time::timeout;

use super::LookupError;
use super::records::{addresses_of, belonging, lifetime_of};
use super::sources::Source;

/// Maximum number of addresses of one name.
const MAX_ADDRESSES: usize = 16;

/// How much longer the second family may take after the first: servers that never answer for IPv6 are common.
const GRACE: Duration = Duration::from_millis(if cfg!(test) { 3000 } else { 300 });

/// Why a look-up finds nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotFound {
    /// The name does not exist.
    Name,
    /// The name has no such record.
    Record,
    /// There is no DNS server, or none answered.
    Answer,
}

/// Addresses of one or both families, and their lifetime.
type AddressResult = Result<(Vec<IpAddr>, Duration), NotFound>;

impl From<NotFound> for LookupError {
    fn from(missing: NotFound) -> Self {
        match missing {
            NotFound::Name | NotFound::Record => Self::NoSuchName,
            NotFound::Answer => Self::Unreachable,
        }
    }
}

impl Source {
    /// The addresses of a name, IPv4 first. If the hosts file has it, no DNS server is asked, as in the C library.
    pub(super) async fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, NotFound> {
        if let Some(addresses) = self.hosts_file.get(name) {
            return Ok(deduplicated(addresses.clone()));
        }
        if let Some(cached) = self.cache.get(name) {
            return cached;
        }
        self.in_flight.join(name, self.look_up(name)).await
    }

    /// Looks up a name and caches the result.
    async fn look_up(&self, name: &str) -> Result<Vec<IpAddr>, NotFound> {
        let (result, lifetime) = match self.both_families(&absolute(name)?).await {
            Ok((addresses, lifetime)) => (Ok(deduplicated(addresses)), lifetime),
            Err(missing) => (Err(missing), Duration::MAX),
        };
        self.cache.put(name, &result, lifetime);
        result
    }

    /// The records of one type, after the aliases that lead to them.
    pub(super) async fn records(
        &self,
        name: &str,
        kind: RecordType,
    ) -> Result<Vec<Record>, NotFound> {
        self.ask(&absolute(name)?, kind).await
    }

    async fn both_families(&self, name: &Name) -> AddressResult {
        let v4 = Box::pin(self.family(name, RecordType::A));
        let v6 = Box::pin(self.family(name, RecordType::AAAA));
        match select(v4, v6).await {
            Either::Left((v4, v6)) => {
                let v6 = second(&v4, v6).await;
                merge(v4, v6)
            }
            Either::Right((v6, v4)) => {
                let v4 = second(&v6, v4).await;
                merge(v4, v6)
            }
        }
    }

    async fn family(&self, name: &Name, kind: RecordType) -> AddressResult {
        let records = self.ask(name, kind).await?;
        Ok((addresses_of(&records), lifetime_of(&records)))
    }

    async fn ask(&self, name: &Name, kind: RecordType) -> Result<Vec<Record>, NotFound> {
        let resolver = self.resolver.as_ref().ok_or(NotFound::Answer)?;
        let found = resolver
            .lookup(name.clone(), kind)
            .await
            .map_err(|err| not_found_reason(&err))?;
        let records = belonging(name, kind, found.answers());
        if records.iter().any(|record| record.record_type() == kind) {
            Ok(records)
        } else {
            Err(NotFound::Record)
        }
    }
}

/// An absolute name, with a dot at its end: no search list is used.
fn absolute(name: &str) -> Result<Name, NotFound> {
    Name::from_ascii(format!("{name}.")).map_err(|_| NotFound::Name)
}

/// Waits for the second family: shortly if the first gave addresses, otherwise as long as it takes.
async fn second(first: &AddressResult, rest: impl Future<Output = AddressResult>) -> AddressResult {
    if first.is_err() {
        return rest.await;
    }
    timeout(GRACE, rest).await.unwrap_or(Err(NotFound::Answer))
}

fn merge(v4: AddressResult, v6: AddressResult) -> AddressResult {
    match (v4, v6) {
        (Ok((mut all, v4_lifetime)), Ok((v6, v6_lifetime))) => {
            all.extend(v6);
            Ok((all, v4_lifetime.min(v6_lifetime)))
        }
        (Ok(only), Err(_)) | (Err(_), Ok(only)) => Ok(only),
        (Err(v4), Err(v6)) => Err(match (v4, v6) {
            (NotFound::Name, NotFound::Name | NotFound::Answer)
            | (NotFound::Answer, NotFound::Name) => NotFound::Name,
            // Some servers answer «no such name» for a family without records; the other family's answer is right.
            (NotFound::Name | NotFound::Record, NotFound::Record)
            | (NotFound::Record, NotFound::Name) => NotFound::Record,
            (NotFound::Answer, _) | (_, NotFound::Answer) => NotFound::Answer,
        }),
    }
}

/// Removes duplicates, and limits the number.
fn deduplicated(addresses: Vec<IpAddr>) -> Vec<IpAddr> {
    let mut unique = Vec::with_capacity(MAX_ADDRESSES);
    for address in addresses {
        if unique.len() < MAX_ADDRESSES && !unique.contains(&address) {
            unique.push(address);
        }
    }
    unique
}

fn not_found_reason(err: &NetError) -> NotFound {
    match err {
        NetError::Dns(DnsError::NoRecordsFound(found)) => match found.response_code {
            ResponseCode::NXDomain => NotFound::Name,
            ResponseCode::NoError => NotFound::Record,
            _ => NotFound::Answer,
        },
        _ => NotFound::Answer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_failures_make_together() {
        use NotFound::{Answer, Name, Record};
        for (v4, v6, both) in [
            (Name, Name, Name),
            (Name, Record, Record),
            (Record, Name, Record),
            (Record, Record, Record),
            (Name, Answer, Name),
            (Answer, Name, Name),
            (Record, Answer, Answer),
            (Answer, Record, Answer),
            (Answer, Answer, Answer),
        ] {
            assert_eq!(merge(Err(v4), Err(v6)), Err(both), "{v4:?}, {v6:?}");
        }
    }

    #[test]
    fn two_families_are_kept_as_long_as_the_shorter_lived() {
        let found = |last, seconds| {
            let address = IpAddr::from([192, 0, 2, last]);
            Ok((vec![address], Duration::from_secs(seconds)))
        };
        let (addresses, lifetime) = merge(found(1, 50), found(2, 20)).unwrap();
        assert_eq!((addresses.len(), lifetime.as_secs()), (2, 20));
    }

    #[test]
    fn addresses_are_few_and_each_is_there_once() {
        let many = (0..40).map(|n| [192, 0, 2, n / 2].into()).collect();
        let unique = deduplicated(many);
        assert_eq!(unique.len(), MAX_ADDRESSES);
        assert_eq!(unique[1], IpAddr::from([192, 0, 2, 1]));
    }
}

//! Addresses and records of a name.

use std::net::IpAddr;
use std::time::Duration;

use futures_util::future::{Either, select};
use hickory_proto::op::ResponseCode;
use hickory_proto::rr::{Name, Record, RecordType};
use hickory_resolver::net::{DnsError, NetError};
use tokio::time::timeout;

use super::LookupError;
use super::host::Source;
use super::records::{addresses_of, belonging, lifetime_of};

/// Addresses of one name that are of use.
const MAX_ADDRESSES: usize = 16;

/// How much longer the second family gets once the first is there: servers that never answer for IPv6 are not rare.
const GRACE: Duration = Duration::from_millis(if cfg!(test) { 3000 } else { 300 });

/// Why a look-up gives nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// There is no such name.
    Name,
    /// The name has no such record.
    Record,
    /// Nobody could be asked, or nobody answered.
    Answer,
}

/// The addresses of one family or both, and how long they may be kept.
type Found = Result<(Vec<IpAddr>, Duration), Missing>;

impl From<Missing> for LookupError {
    fn from(missing: Missing) -> Self {
        match missing {
            Missing::Name | Missing::Record => Self::NoSuchName,
            Missing::Answer => Self::Unreachable,
        }
    }
}

impl Source {
    /// The addresses of a name, IPv4 first. If the hosts file has it, nobody else is asked, as the C library does.
    pub(super) async fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, Missing> {
        if let Some(written) = self.written.get(name) {
            return Ok(tidy(written.clone()));
        }
        if let Some(kept) = self.kept.get(name) {
            return kept;
        }
        self.shared.join(name, self.look_up(name)).await
    }

    /// Asks for a name, and keeps what is said.
    async fn look_up(&self, name: &str) -> Result<Vec<IpAddr>, Missing> {
        let (result, lifetime) = match self.both_families(&whole(name)?).await {
            Ok((addresses, lifetime)) => (Ok(tidy(addresses)), lifetime),
            Err(missing) => (Err(missing), Duration::MAX),
        };
        self.kept.put(name, &result, lifetime);
        result
    }

    /// The records of one kind, after the aliases that lead to them.
    pub(super) async fn records(
        &self,
        name: &str,
        kind: RecordType,
    ) -> Result<Vec<Record>, Missing> {
        self.ask(&whole(name)?, kind).await
    }

    async fn both_families(&self, name: &Name) -> Found {
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

    async fn family(&self, name: &Name, kind: RecordType) -> Found {
        let records = self.ask(name, kind).await?;
        Ok((addresses_of(&records), lifetime_of(&records)))
    }

    async fn ask(&self, name: &Name, kind: RecordType) -> Result<Vec<Record>, Missing> {
        let resolver = self.resolver.as_ref().ok_or(Missing::Answer)?;
        let found = resolver
            .lookup(name.clone(), kind)
            .await
            .map_err(|err| missing_by(&err))?;
        let records = belonging(name, kind, found.answers());
        if records.iter().any(|record| record.record_type() == kind) {
            Ok(records)
        } else {
            Err(Missing::Record)
        }
    }
}

/// With a dot at its end a name is whole: no search list is tried.
fn whole(name: &str) -> Result<Name, Missing> {
    Name::from_ascii(format!("{name}.")).map_err(|_| Missing::Name)
}

/// Waits for the second family: shortly if the first gave addresses, as long as it takes if not.
async fn second(first: &Found, rest: impl Future<Output = Found>) -> Found {
    if first.is_err() {
        return rest.await;
    }
    timeout(GRACE, rest).await.unwrap_or(Err(Missing::Answer))
}

fn merge(v4: Found, v6: Found) -> Found {
    match (v4, v6) {
        (Ok((mut all, v4_lifetime)), Ok((v6, v6_lifetime))) => {
            all.extend(v6);
            Ok((all, v4_lifetime.min(v6_lifetime)))
        }
        (Ok(only), Err(_)) | (Err(_), Ok(only)) => Ok(only),
        (Err(v4), Err(v6)) => Err(match (v4, v6) {
            (Missing::Name, Missing::Name | Missing::Answer) | (Missing::Answer, Missing::Name) => {
                Missing::Name
            }
            // Servers that say «no such name» for the family they lack are about; the other one is right.
            (Missing::Name | Missing::Record, Missing::Record)
            | (Missing::Record, Missing::Name) => Missing::Record,
            (Missing::Answer, _) | (_, Missing::Answer) => Missing::Answer,
        }),
    }
}

/// Each address once, and not too many.
fn tidy(addresses: Vec<IpAddr>) -> Vec<IpAddr> {
    let mut tidied = Vec::with_capacity(MAX_ADDRESSES);
    for address in addresses {
        if tidied.len() < MAX_ADDRESSES && !tidied.contains(&address) {
            tidied.push(address);
        }
    }
    tidied
}

fn missing_by(err: &NetError) -> Missing {
    match err {
        NetError::Dns(DnsError::NoRecordsFound(found)) => match found.response_code {
            ResponseCode::NXDomain => Missing::Name,
            ResponseCode::NoError => Missing::Record,
            _ => Missing::Answer,
        },
        _ => Missing::Answer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_failures_make_together() {
        use Missing::{Answer, Name, Record};
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
        let tidied = tidy(many);
        assert_eq!(tidied.len(), MAX_ADDRESSES);
        assert_eq!(tidied[1], IpAddr::from([192, 0, 2, 1]));
    }
}

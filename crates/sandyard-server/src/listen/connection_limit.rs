//! Limits the connections of one address, so that it cannot use all of them.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Connections that every address may have, however few there are in all.
const MIN_SHARE: usize = 256;

/// Connections by address.
#[derive(Clone, Debug)]
pub(super) struct ConnectionLimit {
    counts: Arc<Mutex<HashMap<IpAddr, usize>>>,
    max: usize,
}

/// A counted connection of an address, until it is dropped.
#[derive(Debug)]
pub(super) struct CountedConnection {
    limit: ConnectionLimit,
    owner: IpAddr,
}

impl ConnectionLimit {
    /// A limit for `max` connections in all.
    pub(super) fn new(max: usize) -> Self {
        Self {
            counts: Arc::default(),
            max,
        }
    }

    /// Counts a connection of an address; none if it has its share already. Many clients share an address that `is_shared`: that of a
    /// proxy, or of this host.
    pub(super) fn take(&self, address: IpAddr, is_shared: bool) -> Option<CountedConnection> {
        let owner = owner_of(address);
        let share = if is_shared || owner.is_loopback() {
            self.max - self.max / 4
        } else {
            self.max / 4
        };
        let mut counts = self.lock();
        let count = counts.entry(owner).or_default();
        if *count >= share.max(MIN_SHARE) {
            return None;
        }
        *count += 1;
        Some(CountedConnection {
            limit: self.clone(),
            owner,
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        let mut counts = self.limit.lock();
        if let Some(count) = counts.get_mut(&self.owner) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.owner);
            }
        }
    }
}

/// The owner of an address: the network of 64 bits for IPv6, since one client has all addresses of it.
fn owner_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)))
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take_connections(
        limit: &ConnectionLimit,
        address: &str,
        is_shared: bool,
    ) -> Vec<CountedConnection> {
        let address = address.parse().unwrap();
        std::iter::from_fn(|| limit.take(address, is_shared)).collect()
    }

    #[test]
    fn one_address_gets_its_share_and_gives_it_back() {
        let limit = ConnectionLimit::new(4000);
        let all = take_connections(&limit, "203.0.113.1", false);
        assert_eq!(all.len(), 1000);
        assert!(take_connections(&limit, "::ffff:203.0.113.1", false).is_empty());
        assert_eq!(take_connections(&limit, "203.0.113.2", false).len(), 1000);
        assert_eq!(take_connections(&limit, "127.0.0.1", false).len(), 3000);
        assert_eq!(take_connections(&limit, "203.0.113.3", true).len(), 3000);
        drop(all);
        assert!(limit.lock().is_empty());
        assert_eq!(
            take_connections(&ConnectionLimit::new(4), "203.0.113.1", false).len(),
            MIN_SHARE
        );
    }

    #[test]
    fn addresses_of_one_ipv6_network_share_a_limit() {
        let limit = ConnectionLimit::new(4000);
        let _all = take_connections(&limit, "2001:db8::1", false);
        assert!(take_connections(&limit, "2001:db8::ffff:2", false).is_empty());
        assert!(!take_connections(&limit, "2001:db8:0:1::1", false).is_empty());
    }
}

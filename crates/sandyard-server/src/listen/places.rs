//! How many connections one address may have, so that it cannot have them all.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What every address may have, however few connections there are in all.
const LEAST: usize = 256;

/// Connections by address.
#[derive(Clone, Debug)]
pub(super) struct Places {
    taken: Arc<Mutex<HashMap<IpAddr, usize>>>,
    max: usize,
}

/// A connection that counts for its address until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Places,
    owner: IpAddr,
}

impl Places {
    /// Shares `max` connections out.
    pub(super) fn new(max: usize) -> Self {
        Self {
            taken: Arc::default(),
            max,
        }
    }

    /// Takes a place for an address; none when it has its share. Many clients come from an address that `is_shared`: this
    /// host, or a proxy.
    pub(super) fn take(&self, address: IpAddr, is_shared: bool) -> Option<Place> {
        let owner = owner_of(address);
        let share = if is_shared || owner.is_loopback() {
            self.max - self.max / 4
        } else {
            self.max / 4
        };
        let mut taken = self.lock();
        let count = taken.entry(owner).or_default();
        if *count >= share.max(LEAST) {
            return None;
        }
        *count += 1;
        Some(Place {
            places: self.clone(),
            owner,
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.lock();
        if let Some(count) = taken.get_mut(&self.owner) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.owner);
            }
        }
    }
}

/// Whom an address belongs to: whoever has one IPv6 address has the 2⁶⁴ beside it.
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

    fn taken(places: &Places, address: &str, is_shared: bool) -> Vec<Place> {
        let address = address.parse().unwrap();
        std::iter::from_fn(|| places.take(address, is_shared)).collect()
    }

    #[test]
    fn one_address_gets_its_share_and_gives_it_back() {
        let places = Places::new(4000);
        let all = taken(&places, "203.0.113.1", false);
        assert_eq!(all.len(), 1000);
        assert!(taken(&places, "::ffff:203.0.113.1", false).is_empty());
        assert_eq!(taken(&places, "203.0.113.2", false).len(), 1000);
        assert_eq!(taken(&places, "127.0.0.1", false).len(), 3000);
        assert_eq!(taken(&places, "203.0.113.3", true).len(), 3000);
        drop(all);
        assert!(places.lock().is_empty());
        assert_eq!(taken(&Places::new(4), "203.0.113.1", false).len(), LEAST);
    }

    #[test]
    fn neighbours_in_ipv6_are_one() {
        let places = Places::new(4000);
        let _all = taken(&places, "2001:db8::1", false);
        assert!(taken(&places, "2001:db8::ffff:2", false).is_empty());
        assert!(!taken(&places, "2001:db8:0:1::1", false).is_empty());
    }
}

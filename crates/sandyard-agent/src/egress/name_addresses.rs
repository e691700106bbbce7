//! Addresses that stand for names.
//!
//! A program that looks up a name gets an address of a range that is not routed. When it connects to that address, the agent
//! knows the name again, and no real look-up was needed for an address that only the gateway will use.

use std::collections::{BTreeMap, HashMap};
use std::net::Ipv4Addr;
use std::rc::Rc;

use sandyard_wire::egress::NAME_ADDRESSES;

/// Maximum number of names; above it the least recently used one is forgotten.
const MAX_NAMES: usize = 16 * 1024;

/// Number of addresses in the range.
const ADDRESSES: u32 = 1 << (32 - NAME_ADDRESSES.1);

/// The first usable offset: before it are the network address and the DNS server.
const FIRST: u32 = 2;

/// The last usable offset: the last address is the broadcast address.
const LAST: u32 = ADDRESSES - 2;

/// Names and the addresses that stand for them.
#[derive(Debug, Default)]
pub(super) struct NameAddresses {
    /// The offset of a name's address in the range.
    offsets: HashMap<Rc<str>, u32>,
    entries: HashMap<u32, Entry>,
    /// Offsets by the time of their last use.
    uses: BTreeMap<u64, u32>,
    clock: u64,
    /// The last offset that was assigned. An address is reused only after all others, so that it does not soon mean another name
    /// to a program that kept it.
    last: u32,
}

#[derive(Debug)]
struct Entry {
    name: Rc<str>,
    used: u64,
}

impl NameAddresses {
    /// The address that stands for a name, which is in lower case and has no dot at its end.
    pub(super) fn address_of(&mut self, name: &str) -> Ipv4Addr {
        let offset = match self.offsets.get(name) {
            Some(&offset) => offset,
            None => self.add(name),
        };
        self.note_use(offset);
        address(offset)
    }

    /// The name that an address stands for.
    pub(super) fn name_of(&mut self, address: Ipv4Addr) -> Option<Rc<str>> {
        let offset = offset(address)?;
        let name = self.entries.get(&offset)?.name.clone();
        self.note_use(offset);
        Some(name)
    }

    fn add(&mut self, name: &str) -> u32 {
        if self.entries.len() >= MAX_NAMES {
            self.forget_oldest();
        }
        let offset = self.next_offset();
        let name: Rc<str> = name.into();
        self.offsets.insert(name.clone(), offset);
        self.entries.insert(offset, Entry { name, used: 0 });
        offset
    }

    /// There are more addresses than names, so one is free.
    fn next_offset(&mut self) -> u32 {
        loop {
            self.last = match self.last {
                before @ FIRST..LAST => before + 1,
                _ => FIRST,
            };
            if !self.entries.contains_key(&self.last) {
                return self.last;
            }
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((_, offset)) = self.uses.pop_first()
            && let Some(entry) = self.entries.remove(&offset)
        {
            self.offsets.remove(&entry.name);
        }
    }

    fn note_use(&mut self, offset: u32) {
        self.clock += 1;
        if let Some(entry) = self.entries.get_mut(&offset) {
            self.uses.remove(&entry.used);
            entry.used = self.clock;
            self.uses.insert(self.clock, offset);
        }
    }
}

/// Whether an address is in the range, so that it means a name or nothing.
pub(super) fn is_name_address(address: Ipv4Addr) -> bool {
    offset(address).is_some()
}

fn offset(address: Ipv4Addr) -> Option<u32> {
    let offset = address.to_bits().checked_sub(NAME_ADDRESSES.0.to_bits())?;
    (offset < ADDRESSES).then_some(offset)
}

fn address(offset: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(NAME_ADDRESSES.0.to_bits() + offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandyard_wire::egress::NAME_SERVER;

    #[test]
    fn a_name_keeps_its_address_and_an_address_its_name() {
        let mut names = NameAddresses::default();
        let first = names.address_of("a.example");
        let second = names.address_of("b.example");
        assert_eq!(first, Ipv4Addr::new(198, 18, 0, 2));
        assert_ne!(first, second);
        assert_eq!(names.address_of("a.example"), first);
        assert_eq!(names.name_of(first).as_deref(), Some("a.example"));
        assert_eq!(names.name_of(second).as_deref(), Some("b.example"));
    }

    #[test]
    fn addresses_without_a_name_mean_nothing() {
        let mut names = NameAddresses::default();
        for address in [
            NAME_SERVER,
            NAME_ADDRESSES.0,
            Ipv4Addr::new(198, 19, 255, 255),
            Ipv4Addr::new(198, 20, 0, 0),
            Ipv4Addr::new(198, 17, 255, 255),
            Ipv4Addr::UNSPECIFIED,
            Ipv4Addr::BROADCAST,
        ] {
            assert_eq!(names.name_of(address), None);
        }
        assert!(is_name_address(Ipv4Addr::new(198, 19, 255, 255)));
        assert!(is_name_address(NAME_ADDRESSES.0));
        assert!(!is_name_address(Ipv4Addr::new(198, 20, 0, 0)));
        assert!(!is_name_address(Ipv4Addr::new(198, 17, 255, 255)));
    }

    #[test]
    fn the_name_not_used_for_longest_is_forgotten() {
        let mut names = NameAddresses::default();
        let stable = names.address_of("kept");
        let lost = names.address_of("lost");
        for number in 0..MAX_NAMES - 2 {
            names.address_of(&format!("n{number}"));
        }
        assert_eq!(names.name_of(stable).as_deref(), Some("kept"));
        names.address_of("one-too-many");
        assert_eq!(names.name_of(lost), None);
        assert_eq!(names.name_of(stable).as_deref(), Some("kept"));
        assert_eq!(names.entries.len(), MAX_NAMES);
        assert_eq!(
            (names.offsets.len(), names.uses.len()),
            (MAX_NAMES, MAX_NAMES)
        );
        assert_ne!(names.address_of("lost"), lost, "not assigned again soon");
    }

    #[test]
    fn all_usable_addresses_are_assigned_in_turn() {
        let mut names = NameAddresses::default();
        let stable = names.address_of("kept");
        let mut seen = std::collections::HashSet::from([stable]);
        for number in 0..ADDRESSES - 4 {
            assert!(seen.insert(names.address_of(&number.to_string())));
            names.address_of("kept");
        }
        assert_eq!(seen.len(), ADDRESSES as usize - 3);
        for address in [
            NAME_ADDRESSES.0,
            NAME_SERVER,
            Ipv4Addr::new(198, 19, 255, 255),
        ] {
            assert!(!seen.contains(&address));
        }
        // An address in use is skipped when the range starts again.
        assert_eq!(names.address_of("again"), Ipv4Addr::new(198, 18, 0, 3));
    }
}

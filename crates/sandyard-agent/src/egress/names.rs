//! Addresses that stand for names.
//!
//! A program that looks a name up is given an address of a range that nobody routes. When it connects to that address, the name
//! it meant is known again, and nobody outside had to be asked for an address that only the gateway will use.

use std::collections::{BTreeMap, HashMap};
use std::net::Ipv4Addr;
use std::rc::Rc;

use sandyard_wire::egress::NAME_ADDRESSES;

/// Most names that are known at once; then the one that was not used for longest is forgotten.
const MAX_NAMES: usize = 16 * 1024;

/// How many addresses there are.
const ADDRESSES: u32 = 1 << (32 - NAME_ADDRESSES.1);

/// The first that is given away: before it are the network itself and the server of look-ups.
const FIRST: u32 = 2;

/// The last of the range is its broadcast address.
const LAST: u32 = ADDRESSES - 2;

/// The names and what stands for them.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Where in the range a name's address is.
    places: HashMap<Rc<str>, u32>,
    entries: HashMap<u32, Entry>,
    /// Places by the time of their last use.
    uses: BTreeMap<u64, u32>,
    clock: u64,
    /// The last place that was given away. An address comes round again only after all others, so that a program that
    /// kept one for long does not soon mean something else by it.
    last: u32,
}

#[derive(Debug)]
struct Entry {
    name: Rc<str>,
    used: u64,
}

impl Names {
    /// The address that stands for a name, which is in lower case and has no dot at its end.
    pub(super) fn address_of(&mut self, name: &str) -> Ipv4Addr {
        let place = match self.places.get(name) {
            Some(&place) => place,
            None => self.add(name),
        };
        self.note_use(place);
        address(place)
    }

    /// The name that an address stands for.
    pub(super) fn name_of(&mut self, address: Ipv4Addr) -> Option<Rc<str>> {
        let place = place(address)?;
        let name = self.entries.get(&place)?.name.clone();
        self.note_use(place);
        Some(name)
    }

    fn add(&mut self, name: &str) -> u32 {
        if self.entries.len() >= MAX_NAMES {
            self.forget_one();
        }
        let place = self.next_place();
        let name: Rc<str> = name.into();
        self.places.insert(name.clone(), place);
        self.entries.insert(place, Entry { name, used: 0 });
        place
    }

    /// There are more addresses than names, so one is free.
    fn next_place(&mut self) -> u32 {
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

    fn forget_one(&mut self) {
        if let Some((_, place)) = self.uses.pop_first()
            && let Some(entry) = self.entries.remove(&place)
        {
            self.places.remove(&entry.name);
        }
    }

    fn note_use(&mut self, place: u32) {
        self.clock += 1;
        if let Some(entry) = self.entries.get_mut(&place) {
            self.uses.remove(&entry.used);
            entry.used = self.clock;
            self.uses.insert(self.clock, place);
        }
    }
}

/// Whether an address is of the range, and so means a name or nothing.
pub(super) fn is_of_names(address: Ipv4Addr) -> bool {
    place(address).is_some()
}

fn place(address: Ipv4Addr) -> Option<u32> {
    let place = address.to_bits().checked_sub(NAME_ADDRESSES.0.to_bits())?;
    (place < ADDRESSES).then_some(place)
}

fn address(place: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(NAME_ADDRESSES.0.to_bits() + place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandyard_wire::egress::NAME_SERVER;

    #[test]
    fn a_name_keeps_its_address_and_an_address_its_name() {
        let mut names = Names::default();
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
        let mut names = Names::default();
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
        assert!(is_of_names(Ipv4Addr::new(198, 19, 255, 255)));
        assert!(is_of_names(NAME_ADDRESSES.0));
        assert!(!is_of_names(Ipv4Addr::new(198, 20, 0, 0)));
        assert!(!is_of_names(Ipv4Addr::new(198, 17, 255, 255)));
    }

    #[test]
    fn the_name_not_used_for_longest_is_forgotten() {
        let mut names = Names::default();
        let kept = names.address_of("kept");
        let lost = names.address_of("lost");
        for number in 0..MAX_NAMES - 2 {
            names.address_of(&format!("n{number}"));
        }
        assert_eq!(names.name_of(kept).as_deref(), Some("kept"));
        names.address_of("one-too-many");
        assert_eq!(names.name_of(lost), None);
        assert_eq!(names.name_of(kept).as_deref(), Some("kept"));
        assert_eq!(names.entries.len(), MAX_NAMES);
        assert_eq!(
            (names.places.len(), names.uses.len()),
            (MAX_NAMES, MAX_NAMES)
        );
        assert_ne!(
            names.address_of("lost"),
            lost,
            "not given away again at once"
        );
    }

    #[test]
    fn all_addresses_are_given_away_in_turn_but_those_with_a_meaning() {
        let mut names = Names::default();
        let kept = names.address_of("kept");
        let mut seen = std::collections::HashSet::from([kept]);
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
        // The one that is still in use is passed over when the range begins again.
        assert_eq!(names.address_of("again"), Ipv4Addr::new(198, 18, 0, 3));
    }
}

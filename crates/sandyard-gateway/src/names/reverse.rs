//! Reverse names that are not looked up.

use hickory_proto::rr::Name;
use sandyard_core::network::address::closed_class;
use sandyard_wire::egress::NAME_ADDRESSES;

/// Whether a name is the reverse name of a closed address or network: sandboxes may not learn the host's network names, and
/// addresses that stand for names have none.
pub(super) fn is_closed(name: &Name) -> bool {
    let Ok(network) = name.parse_arpa_name() else {
        return false;
    };
    let address = network.addr();
    let (stand_ins, bits) = NAME_ADDRESSES;
    let stands_for_a_name = match address {
        std::net::IpAddr::V4(v4) => {
            let mask = u32::MAX << (32 - bits);
            v4.to_bits() & mask == stand_ins.to_bits()
        }
        std::net::IpAddr::V6(_) => false,
    };
    stands_for_a_name || closed_class(address).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reverse_names_of_closed_addresses_are_recognized() {
        for (name, closed) in [
            ("4.3.2.10.in-addr.arpa.", true),
            ("10.in-addr.arpa.", true),
            ("1.0.18.198.in-addr.arpa.", true),
            ("1.255.19.198.IN-ADDR.ARPA.", true),
            ("1.0.20.198.in-addr.arpa.", false),
            ("254.169.254.169.in-addr.arpa.", true),
            ("8.8.8.8.in-addr.arpa.", false),
            (
                "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa.",
                true,
            ),
            (
                "8.8.8.8.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.6.8.4.0.6.8.4.1.0.0.2.ip6.arpa.",
                false,
            ),
            ("example.com.", false),
            ("1.2.3.4.5.in-addr.arpa.", false),
        ] {
            let name = Name::from_ascii(name).unwrap();
            assert_eq!(is_closed(&name), closed, "{name}");
        }
    }
}

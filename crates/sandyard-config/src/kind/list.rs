//! Values separated by commas: ports, addresses, networks.

use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

use super::Value;
use super::network::Network;

/// More than anybody needs, and few enough to open.
const MOST: usize = 64;

pub(super) fn ports(text: &str) -> Result<Value, String> {
    each(text, "a port number, 0 to 65535", |word| {
        u16::from_str(word).ok()
    })
    .map(Value::Ports)
}

pub(super) fn addresses(text: &str) -> Result<Value, String> {
    // Names are not looked up: what a name means can change, and with it who can reach the server.
    each(text, "an IP address or `localhost`", address).map(Value::Addresses)
}

pub(super) fn networks(text: &str) -> Result<Value, String> {
    each(text, "an IP network like 10.0.0.0/8", |word| {
        Network::from_str(word).ok()
    })
    .map(Value::Networks)
}

fn address(word: &str) -> Option<IpAddr> {
    if word.eq_ignore_ascii_case("localhost") {
        return Some(Ipv4Addr::LOCALHOST.into());
    }
    let bare = word
        .strip_prefix('[')
        .and_then(|word| word.strip_suffix(']'));
    bare.unwrap_or(word).parse().ok()
}

/// Reads every part; doubles are dropped, since two listeners cannot share an address.
fn each<T: PartialEq>(
    text: &str,
    what: &str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, String> {
    let words: Vec<&str> = text.split(',').map(str::trim).collect();
    if words.len() > MOST {
        return Err(format!("has more than {MOST} parts"));
    }
    let mut found = Vec::new();
    for (index, word) in words.iter().enumerate() {
        let Some(value) = read(word) else {
            return Err(match words.len() {
                1 => format!("is not {what}"),
                _ => format!("is wrong in part {}: that is not {what}", index + 1),
            });
        };
        if !found.contains(&value) {
            found.push(value);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_doubles_dropped() {
        assert_eq!(ports("8100, 8080,8100"), Ok(Value::Ports(vec![8100, 8080])));
        let both = vec![Ipv4Addr::LOCALHOST.into(), "::1".parse().unwrap()];
        assert_eq!(addresses("localhost,[::1]"), Ok(Value::Addresses(both)));
    }

    #[test]
    fn the_wrong_part_is_named() {
        assert_eq!(
            ports("http").unwrap_err(),
            "is not a port number, 0 to 65535"
        );
        assert_eq!(
            ports("8100,,1").unwrap_err(),
            "is wrong in part 2: that is not a port number, 0 to 65535"
        );
        assert!(ports(&"1,".repeat(100)).is_err());
    }

    #[test]
    fn host_names_are_not_addresses() {
        assert!(addresses("build-17.example").is_err());
    }
}

//! Values separated by commas: ports, addresses, networks, targets, name servers.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

use sandyard_core::network::Target;

use super::Value;
use super::network::Network;

/// Maximum number of items in most lists: the server opens a listener for each address.
const MAX_ITEMS: usize = 64;
/// Maximum number of targets. Lists of hosts are longer and need no listeners.
const MAX_TARGETS: usize = 1000;
/// Where name servers listen.
const NAME_SERVER_PORT: u16 = 53;

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

pub(super) fn targets(text: &str) -> Result<Value, String> {
    const WHAT: &str = "a name, an address or a network like 10.0.0.0/8, with or without a port";
    at_most(MAX_TARGETS, text, WHAT, |word| word.parse::<Target>().ok()).map(Value::Targets)
}

pub(super) fn name_servers(text: &str) -> Result<Value, String> {
    let server = |word: &str| {
        let alone = || Some(SocketAddr::new(bare_address(word)?, NAME_SERVER_PORT));
        let server = word.parse().ok().or_else(alone)?;
        (server.port() > 0).then_some(server)
    };
    // Names are not looked up: it is these who are asked.
    each(text, "an IP address, with or without a port", server).map(Value::NameServers)
}

pub(super) fn counts(text: &str, max: u64) -> Result<Value, String> {
    let what = format!("a name and a number up to {max}, like `name=1`");
    let counts = each(text, &what, |word| {
        let (name, number) = word.split_once('=')?;
        let (name, number) = (name.trim(), number.trim().parse().ok()?);
        let is_name = !name.is_empty() && !name.chars().any(char::is_control);
        (is_name && number <= max).then(|| (name.to_owned(), number))
    })?;
    check_names_are_unique(&counts)?;
    Ok(Value::Counts(counts))
}

pub(super) fn tokens(text: &str) -> Result<Value, String> {
    let is_word =
        |word: &str| !word.is_empty() && !word.chars().any(|c| c.is_control() || c.is_whitespace());
    each(text, "a word", |word| {
        is_word(word).then(|| word.to_owned())
    })
    .map(Value::Tokens)
}

pub(super) fn choices(text: &str, options: &[&str]) -> Result<Value, String> {
    let what = format!("one of {}", options.join(", "));
    each(text, &what, |word| find_option(word, options)).map(Value::Tokens)
}

pub(super) fn pairs(text: &str, options: &[&str]) -> Result<Value, String> {
    let what = format!(
        "a name and one of {}, like `name={}`",
        options.join(", "),
        options.first().unwrap_or(&"provider")
    );
    let pairs = each(text, &what, |part| {
        // A name may hold `=` itself, a word never does.
        let (name, word) = part.rsplit_once('=')?;
        let name = name.trim();
        let is_name = !name.is_empty() && !name.chars().any(char::is_control);
        let word = find_option(word.trim(), options)?;
        is_name.then(|| (name.to_owned(), word))
    })?;
    check_names_are_unique(&pairs)?;
    Ok(Value::Pairs(pairs))
}

fn check_names_are_unique<T>(items: &[(String, T)]) -> Result<(), String> {
    let is_duplicate = |index: usize| items[..index].iter().any(|item| item.0 == items[index].0);
    match (0..items.len()).any(is_duplicate) {
        true => Err("has a name more than once".to_owned()),
        false => Ok(()),
    }
}

/// The word as it is written in the table, whatever the case of its letters here.
fn find_option(word: &str, options: &[&str]) -> Option<String> {
    let lower = word.to_ascii_lowercase();
    options.contains(&lower.as_str()).then_some(lower)
}

fn address(word: &str) -> Option<IpAddr> {
    if word.eq_ignore_ascii_case("localhost") {
        return Some(Ipv4Addr::LOCALHOST.into());
    }
    bare_address(word)
}

/// Reads an address, in brackets or not.
fn bare_address(word: &str) -> Option<IpAddr> {
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
    at_most(MAX_ITEMS, text, what, read)
}

fn at_most<T: PartialEq>(
    max: usize,
    text: &str,
    what: &str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, String> {
    let words: Vec<&str> = text.split(',').map(str::trim).collect();
    if words.len() > max {
        return Err(format!("must have at most {max} parts"));
    }
    let mut found = Vec::new();
    for (index, word) in words.iter().enumerate() {
        let Some(value) = read(word) else {
            return Err(match words.len() {
                1 => format!("is not {what}"),
                _ => format!("has an invalid part {}: it must be {what}", index + 1),
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
    fn counts_are_names_with_numbers() {
        let found = vec![("a".to_owned(), 1), ("team/b:v2".to_owned(), 0)];
        assert_eq!(counts("a=1, team/b:v2 = 0", 10), Ok(Value::Counts(found)));
        for wrong in ["a", "=1", "a=", "a=-1", "a=11", "a=1,", "a=x"] {
            assert!(counts(wrong, 10).is_err(), "{wrong}");
        }
        assert_eq!(
            counts("a=1,a=2", 10),
            Err("has a name more than once".to_owned())
        );
    }

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
            "has an invalid part 2: it must be a port number, 0 to 65535"
        );
        assert!(ports(&"1,".repeat(100)).is_err());
    }

    #[test]
    fn name_servers_have_their_usual_port_unless_they_say_otherwise() {
        let expected = ["192.0.2.1:53", "192.0.2.1:5353", "[::1]:53", "[::1]:5353"];
        let expected = expected.map(|text| text.parse().unwrap()).to_vec();
        let text = "192.0.2.1, 192.0.2.1:5353, ::1, [::1], [::1]:5353";
        assert_eq!(name_servers(text), Ok(Value::NameServers(expected)));
        for wrong in [
            "dns.example.com",
            "192.0.2.1:0",
            "192.0.2.1:x",
            "::1:5353:x",
        ] {
            assert_eq!(
                name_servers(wrong).unwrap_err(),
                "is not an IP address, with or without a port",
                "{wrong}"
            );
        }
    }

    #[test]
    fn targets_are_names_addresses_and_networks() {
        let text = "example.com, *.example.com:443,10.0.0.0/8,[2001:db8::1]:80,*:25,example.com";
        let Ok(Value::Targets(found)) = targets(text) else {
            panic!("they are targets")
        };
        assert_eq!(found.len(), 5);
        assert!(
            targets("example.com,http://x/")
                .unwrap_err()
                .starts_with("has an invalid part 2: ")
        );
        assert!(targets(&"a.example,".repeat(2000)).is_err());
    }

    #[test]
    fn host_names_are_not_addresses() {
        assert!(addresses("build-17.example").is_err());
    }
}

//! The proxy environment variables of commands.

use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Hosts that programs reach without the proxy: the sandbox itself.
const NOT_PROXIED: &str = "localhost,127.0.0.1,::1";

/// Adds the proxy variables, except those that are set. Some programs read the names in capitals, some in small letters;
/// a user that has set one of them means both.
pub(crate) fn add_proxy_variables(env: &mut BTreeMap<String, String>, proxy: SocketAddr) {
    for (name, value) in [
        ("HTTP_PROXY", format!("http://{proxy}")),
        ("HTTPS_PROXY", format!("http://{proxy}")),
        ("ALL_PROXY", format!("http://{proxy}")),
        ("NO_PROXY", NOT_PROXIED.to_owned()),
    ] {
        let small = name.to_ascii_lowercase();
        if !env.contains_key(name) && !env.contains_key(&small) {
            env.insert(name.to_owned(), value.clone());
            env.insert(small, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_own_variables_stay() {
        let proxy = SocketAddr::from(([127, 0, 0, 1], 49980));
        let mut env = BTreeMap::from([
            ("http_proxy".to_owned(), "http://mine".to_owned()),
            ("NO_PROXY".to_owned(), String::new()),
        ]);
        add_proxy_variables(&mut env, proxy);
        let expected = [
            ("ALL_PROXY", "http://127.0.0.1:49980"),
            ("HTTPS_PROXY", "http://127.0.0.1:49980"),
            ("NO_PROXY", ""),
            ("all_proxy", "http://127.0.0.1:49980"),
            ("http_proxy", "http://mine"),
            ("https_proxy", "http://127.0.0.1:49980"),
        ];
        let found: Vec<_> = env
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(found, expected);
    }
}

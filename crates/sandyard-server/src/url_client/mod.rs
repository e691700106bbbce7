//! URLs that callers name and this server fetches or fills: only what anybody on the internet can reach.
//!
//! Without care such a URL lets a caller use the server's place in the network: its loopback, its neighbours, the
//! metadata service of its cloud, its own public addresses behind a firewall. So names are resolved here, every address is checked, the connection goes to exactly
//! the address that was checked, and each redirect begins again at the first check.
//!
//! | file | holds |
//! |---|---|
//! | `allow_list` | hosts that the operator allows although their addresses are not public |
//! | `address` | which addresses anybody can reach |
//! | `reach` | those, without this host's own and without what the operator denies |
//! | `target` | which URLs are taken: scheme, port, literal addresses, the operator's own list |
//! | `resolver` | names to checked addresses |
//! | `fetch` | one request with its redirects, within limits |

mod address;
mod allow_list;
mod fetch;
mod reach;
mod resolver;
mod target;

pub(crate) use fetch::{FetchedUrl, UrlClient};

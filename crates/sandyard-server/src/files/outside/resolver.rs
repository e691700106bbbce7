//! Names to addresses that were checked; the connection then goes to exactly these.

use std::error::Error;
use std::net::SocketAddr;

use hickory_resolver::TokioResolver;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::address::is_open;
use super::target::AllowList;

/// Refuses a name that leads, with any of its addresses, to a place that is not for everybody.
#[derive(Clone, Debug)]
pub(super) struct CheckedResolver {
    resolver: TokioResolver,
    allowed: AllowList,
}

/// A name that leads to where no caller may send us.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` leads to an address that is not public")]
pub(super) struct ClosedName(pub(super) String);

/// A name that leads nowhere.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` has no address")]
pub(super) struct NoAddress(String);

impl CheckedResolver {
    /// Takes this host's own settings for names.
    pub(super) fn new(allowed: AllowList) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let resolver = TokioResolver::builder_tokio()?.build()?;
        Ok(Self { resolver, allowed })
    }

    async fn look_up(&self, name: &str) -> Result<Vec<SocketAddr>, Box<dyn Error + Send + Sync>> {
        // With a dot at its end a name is whole: the search list of this host's own network is not tried.
        let whole = if name.ends_with('.') || self.allowed.has_host(name) {
            name.to_owned()
        } else {
            format!("{name}.")
        };
        let found = self.resolver.lookup_ip(whole).await?;
        // The port is the URL's; 0 stands for that.
        let addresses: Vec<_> = found.iter().map(|ip| SocketAddr::new(ip, 0)).collect();
        if addresses.is_empty() {
            return Err(NoAddress(name.to_owned()).into());
        }
        if !self.allowed.has_host(name) && addresses.iter().any(|address| !is_open(address.ip())) {
            return Err(ClosedName(name.to_owned()).into());
        }
        Ok(addresses)
    }
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let this = self.clone();
        Box::pin(async move {
            let addresses = this.look_up(name.as_str()).await?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

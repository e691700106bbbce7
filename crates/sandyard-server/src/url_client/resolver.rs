//! Names to addresses that were checked; the connection then goes to exactly these.

use std::error::Error;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use hickory_resolver::TokioResolver;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::reach::Reach;

tokio::task_local! {
    /// The port of the URL that is being fetched: a resolver is asked for a name alone.
    pub(super) static PORT: u16;
}

type Failure = Box<dyn Error + Send + Sync>;
type AddressFuture = Pin<Box<dyn Future<Output = Result<Vec<IpAddr>, Failure>> + Send>>;
/// Finds the addresses of a name.
pub(super) type LookUp = Arc<dyn Fn(String) -> AddressFuture + Send + Sync>;

/// Refuses a name that leads, with any of its addresses, to a place that is not for everybody.
#[derive(Clone)]
pub(super) struct CheckedResolver {
    look_up: LookUp,
    reach: Arc<Reach>,
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
    pub(super) fn new(look_up: LookUp, reach: Arc<Reach>) -> Self {
        Self { look_up, reach }
    }

    /// The addresses of a name, all of them checked.
    pub(super) async fn look_up(&self, name: &str) -> Result<Vec<SocketAddr>, Failure> {
        let is_allowed = self.reach.allowed.has_host(name);
        // With a dot at its end a name is whole: the search list of this host's own network is not tried.
        let whole = if name.ends_with('.') || is_allowed {
            name.to_owned()
        } else {
            format!("{name}.")
        };
        let found = (self.look_up)(whole).await?;
        if found.is_empty() {
            return Err(NoAddress(name.to_owned()).into());
        }
        let is_open = |port: &u16| {
            let addresses = found.iter().copied();
            self.reach.has_addresses(Some(name), addresses, *port)
        };
        // Without a port nothing can be judged.
        if !is_allowed && !PORT.try_with(is_open).unwrap_or(false) {
            return Err(ClosedName(name.to_owned()).into());
        }
        // The port is the URL's; 0 stands for that.
        Ok(found.iter().map(|ip| SocketAddr::new(*ip, 0)).collect())
    }
}

/// Asks as this host's own settings say.
pub(super) fn system() -> Result<LookUp, Failure> {
    let resolver = TokioResolver::builder_tokio()?.build()?;
    Ok(Arc::new(move |name| {
        let resolver = resolver.clone();
        Box::pin(async move { Ok(resolver.lookup_ip(name).await?.iter().collect()) })
    }))
}

impl fmt::Debug for CheckedResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CheckedResolver")
            .field("reach", &self.reach)
            .finish_non_exhaustive()
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

//! The calling side: the provider of another node, by its URL and location.

use std::sync::Arc;

use sandyard_auth::Auth;
use sandyard_provider::Provider;
use sandyard_providers::node::Token;
use sandyard_providers::{NodeConfig, NodeProvider};
use sandyard_service::NodeConnector;

/// Connects this server to other nodes.
pub(crate) fn reach(auth: Auth) -> NodeConnector {
    NodeConnector(Arc::new(move |url, location| {
        let auth = auth.clone();
        let token = Token::new(move || auth.sign_node());
        let config = NodeConfig::new(base(&url, &location), token);
        Box::pin(async move {
            let provider = NodeProvider::connect(config).await?;
            Ok(Arc::new(provider) as Arc<dyn Provider>)
        })
    }))
}

/// The base URL of a node's provider for a location.
fn base(url: &str, location: &str) -> String {
    let segment = sandyard_core::percent::encode(location);
    format!("{}/at/{segment}", url.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_one_segment_of_the_path() {
        assert_eq!(
            base("http://10.0.0.2:8100/", "embedded:a/b c"),
            "http://10.0.0.2:8100/at/embedded%3Aa%2Fb%20c"
        );
    }
}

//! Connects the providers that the settings name.

use std::sync::Arc;

use sandyard_config::Settings;
use sandyard_provider::Provider;
use sandyard_providers::Registry;
use sandyard_providers::registry::ConnectContext;

use super::{ServeError, sealing_key};

/// Connects all providers, the default one first.
///
/// # Errors
/// When the registry lacks one, or one that must be there cannot be connected.
pub async fn connect(
    registry: Registry,
    settings: &Settings,
    installation: &str,
) -> Result<Vec<Arc<dyn Provider>>, ServeError> {
    let context = ConnectContext {
        settings,
        installation,
        sealing_key: sealing_key::sealing_key(settings)?,
    };
    let mut providers = Vec::new();
    for name in &settings.sandbox.providers {
        let registration = registry.get(name);
        let registration = registration.ok_or_else(|| ServeError::UnknownProvider(name.clone()))?;
        let connected = (registration.connect)(context).await;
        let name = name.clone();
        providers.push(connected.map_err(|source| ServeError::Provider { name, source })?);
    }
    Ok(providers)
}

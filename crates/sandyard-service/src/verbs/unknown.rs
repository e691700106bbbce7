//! Lists instances of this installation that the database does not know, and removes one at an admin's request.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use sandyard_core::ErrorKind;
use sandyard_provider::Instance;

use crate::background::reconcile::LIST_WITHIN;
use crate::error::{Result, ServiceError};
use crate::service::Service;

/// An instance that the database does not know.
#[derive(Clone, Debug)]
pub struct UnknownInstance {
    /// The name of its provider.
    pub provider: String,
    /// Its location.
    pub location: String,
    /// The instance, as its provider describes it.
    pub instance: Instance,
}

/// The unknown instances at all reachable locations.
#[derive(Clone, Debug, Default)]
pub struct UnknownInstances {
    /// The instances.
    pub instances: Vec<UnknownInstance>,
    /// Locations that could not be listed.
    pub unreachable: Vec<String>,
}

impl Service {
    /// Lists the instances of this installation that the database does not know, at all locations that a server reaches.
    pub async fn unknown_instances(&self) -> Result<UnknownInstances> {
        let mut locations: BTreeSet<String> =
            self.registry().local_locations().into_iter().collect();
        let nodes = self.nodes().await?;
        locations.extend(nodes.into_iter().flat_map(|node| node.locations));
        let listings = locations
            .iter()
            .map(|location| self.unknown_at_within(location));
        let mut all = UnknownInstances::default();
        for (location, listed) in locations.iter().zip(join_all(listings).await) {
            match listed {
                Ok(found) => all.instances.extend(found),
                Err(error) => {
                    tracing::warn!(%error, location, "Failed to list the instances of a location");
                    all.unreachable.push(location.clone());
                }
            }
        }
        Ok(all)
    }

    async fn unknown_at_within(&self, location: &str) -> Result<Vec<UnknownInstance>> {
        let listed = tokio::time::timeout(LIST_WITHIN, self.unknown_at(location)).await;
        let late = || ServiceError::timed_out("listing instances took too long");
        listed.unwrap_or_else(|_| Err(late()))
    }

    async fn unknown_at(&self, location: &str) -> Result<Vec<UnknownInstance>> {
        let provider = self.registry().provider(location).await?;
        let mut unknown = Vec::new();
        for instance in provider.list().await? {
            let row = match &instance.sandbox_id {
                Some(id) => self.store().sandbox(id).await?,
                None => None,
            };
            if row.is_none() {
                unknown.push(UnknownInstance {
                    provider: provider.info().name.clone(),
                    location: location.to_owned(),
                    instance,
                });
            }
        }
        Ok(unknown)
    }

    /// Removes an unknown instance and its files. Fails for an instance that a row knows, whatever its status.
    pub async fn delete_unknown_instance(&self, id: &str) -> Result<()> {
        let (service, id) = (self.clone(), id.to_owned());
        self.detached(async move { service.delete_unknown_now(&id).await })
            .await
    }

    async fn delete_unknown_now(&self, id: &str) -> Result<()> {
        let all = self.unknown_instances().await?;
        let mut found = all
            .instances
            .iter()
            .filter(|unknown| unknown.instance.id == id);
        let (Some(unknown), None) = (found.next(), found.next()) else {
            let message = format!("no unknown instance `{id}`, or more than one");
            let error = ServiceError::new(ErrorKind::NotFound, message);
            return Err(match all.unreachable.is_empty() {
                true => error.hint("`GET /instances/unknown` lists them"),
                false => error
                    .hint("some locations are unreachable; `GET /instances/unknown` names them"),
            });
        };
        let provider = self.registry().provider(&unknown.location).await?;
        tracing::warn!(
            instance.id = id,
            provider = unknown.provider,
            "Removing an unknown instance at an admin's request"
        );
        Ok(provider.delete(id).await?)
    }
}

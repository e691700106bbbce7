//! Instances of this installation that the database knows nothing of: told of, and removed when an admin says so.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use sandyard_core::ErrorKind;
use sandyard_provider::Instance;

use crate::error::{ServiceError, ServiceResult};
use crate::reconcile::LIST_WITHIN;
use crate::service::Service;

/// An instance that no row was ever written for, as far as this database goes.
#[derive(Clone, Debug)]
pub struct UnknownInstance {
    /// The name of the provider it is with.
    pub provider: String,
    /// Where it is.
    pub location: String,
    /// What its provider tells of it.
    pub instance: Instance,
}

/// All of them, as far as they can be seen.
#[derive(Clone, Debug, Default)]
pub struct UnknownInstances {
    /// They.
    pub instances: Vec<UnknownInstance>,
    /// Places that did not say what they have.
    pub unreachable: Vec<String>,
}

impl Service {
    /// Lists instances of this installation that the database knows nothing of, in all places that a server of it reaches.
    pub async fn unknown_instances(&self) -> ServiceResult<UnknownInstances> {
        let mut places: BTreeSet<String> = self.places().local_locations().into_iter().collect();
        let nodes = self.nodes().await?;
        places.extend(nodes.into_iter().flat_map(|node| node.locations));
        let looks = places.iter().map(|place| self.look_into(place));
        let mut all = UnknownInstances::default();
        for (place, looked) in places.iter().zip(join_all(looks).await) {
            match looked {
                Ok(found) => all.instances.extend(found),
                Err(error) => {
                    tracing::warn!(%error, location = place, "A place does not say what it has");
                    all.unreachable.push(place.clone());
                }
            }
        }
        Ok(all)
    }

    async fn look_into(&self, place: &str) -> ServiceResult<Vec<UnknownInstance>> {
        let looked = tokio::time::timeout(LIST_WITHIN, self.unknown_in(place)).await;
        let late = || ServiceError::new(ErrorKind::TimedOut, "it took too long");
        looked.unwrap_or_else(|_| Err(late()))
    }

    async fn unknown_in(&self, place: &str) -> ServiceResult<Vec<UnknownInstance>> {
        let provider = self.places().provider(place).await?;
        let mut unknown = Vec::new();
        for instance in provider.list().await? {
            let row = match &instance.sandbox_id {
                Some(id) => self.store().sandbox(id).await?,
                None => None,
            };
            if row.is_none() {
                unknown.push(UnknownInstance {
                    provider: provider.info().name.clone(),
                    location: place.to_owned(),
                    instance,
                });
            }
        }
        Ok(unknown)
    }

    /// Removes such an instance with all it holds. One that a row knows is none of them, whatever its status.
    pub async fn delete_unknown_instance(&self, id: &str) -> ServiceResult<()> {
        let (service, id) = (self.clone(), id.to_owned());
        self.detached(async move { service.delete_unknown_now(&id).await })
            .await
    }

    async fn delete_unknown_now(&self, id: &str) -> ServiceResult<()> {
        let all = self.unknown_instances().await?;
        let mut found = all.instances.iter().filter(|one| one.instance.id == id);
        let (Some(one), None) = (found.next(), found.next()) else {
            let message = format!("there is no one unknown instance `{id}`");
            let error = ServiceError::new(ErrorKind::NotFound, message);
            return Err(match all.unreachable.is_empty() {
                true => error.hint("`GET /instances/unknown` lists them"),
                false => {
                    error.hint("some places cannot be reached; `GET /instances/unknown` names them")
                }
            });
        };
        let provider = self.places().provider(&one.location).await?;
        tracing::warn!(
            instance.id = id,
            provider = one.provider,
            "Removing an unknown instance, as an admin wants"
        );
        Ok(provider.delete(id).await?)
    }
}

//! Changes the metadata of a sandbox.

use std::collections::BTreeMap;

use sandyard_core::Caller;
use sandyard_store::model::{Operation, Sandbox, SandboxPatch};
use serde_json::json;

use crate::error::Result;
use crate::service::Service;
use crate::verbs::create::check_map;

impl Service {
    /// Sets labels of a sandbox, and removes those without a value. The others stay.
    pub async fn change_metadata(
        &self,
        caller: &Caller,
        name: &str,
        changes: BTreeMap<String, Option<String>>,
    ) -> Result<Sandbox> {
        let sandbox = self.existing(caller, name).await?;
        let (service, caller) = (self.clone(), caller.clone());
        self.detached(async move {
            let claim = service.claim(&sandbox.id, Operation::Change).await?;
            claim.check_exists()?;
            let names: Vec<&String> = changes.keys().collect();
            let event = claim.event("metadata_set", &caller, json!({ "names": names }));
            let mut metadata = claim.row.metadata.clone();
            for (name, value) in changes {
                match value {
                    Some(value) => metadata.insert(name, value),
                    None => metadata.remove(&name),
                };
            }
            check_map("metadata", &metadata)?;
            let patch = SandboxPatch {
                metadata: Some(metadata),
                ..SandboxPatch::default()
            };
            let timer = claim.timer_after(&patch);
            claim.commit(patch, vec![event], timer).await
        })
        .await
    }
}

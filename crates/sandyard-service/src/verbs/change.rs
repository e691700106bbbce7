//! Changes the name and the metadata of a sandbox.

use sandyard_core::Caller;
use sandyard_store::model::{Operation, Sandbox, SandboxPatch};
use serde_json::json;

use crate::error::Result;
use crate::request::SandboxChange;
use crate::service::Service;
use crate::verbs::create::check_map;

impl Service {
    /// Changes what `change` names; the rest stays.
    pub async fn change(
        &self,
        caller: &Caller,
        name: &str,
        change: SandboxChange,
    ) -> Result<Sandbox> {
        let sandbox = self.existing(caller, name).await?;
        let (service, caller) = (self.clone(), caller.clone());
        self.detached(async move {
            let claim = service.claim(&sandbox.id, Operation::Change).await?;
            claim.check_exists()?;
            let mut patch = SandboxPatch::default();
            let mut events = Vec::new();
            if !change.metadata.is_empty() {
                let names: Vec<&String> = change.metadata.keys().collect();
                events.push(claim.event("metadata_set", &caller, json!({ "names": names })));
                let mut metadata = claim.row.metadata.clone();
                for (name, value) in change.metadata {
                    match value {
                        Some(value) => metadata.insert(name, value),
                        None => metadata.remove(&name),
                    };
                }
                check_map("metadata", &metadata)?;
                patch.metadata = Some(metadata);
            }
            if let Some(alias) = change.alias {
                let old = &claim.row.alias;
                events.push(claim.event("renamed", &caller, json!({ "from": old, "to": alias })));
                patch.alias = Some(alias);
            }
            let timer = claim.timer_after(&patch);
            claim.commit(patch, events, timer).await
        })
        .await
    }
}

//! Makes the preview of a port public or private.

use sandyard_core::Caller;
use sandyard_store::model::{Operation, Sandbox, SandboxPatch, TimerPlan};
use serde_json::json;

use crate::error::{Result, ServiceError};
use crate::service::Service;

/// Most public ports of one sandbox.
const MAX_PUBLIC: usize = 64;

impl Service {
    /// Makes the preview of a port public, or private to the owner.
    pub async fn set_port_public(
        &self,
        caller: &Caller,
        name: &str,
        port: u16,
        is_public: bool,
    ) -> Result<Sandbox> {
        if port == 0 {
            return Err(ServiceError::invalid(
                "port",
                "`port` must be between 1 and 65535",
            ));
        }
        let sandbox = self.existing(caller, name).await?;
        if sandbox.public_ports.contains(&port) == is_public {
            return Ok(sandbox);
        }
        let (service, caller) = (self.clone(), caller.clone());
        self.detached(async move {
            let claim = service.claim(&sandbox.id, Operation::Change).await?;
            claim.check_exists()?;
            let mut ports = claim.row.public_ports.clone();
            ports.retain(|known| *known != port);
            if is_public {
                ports.push(port);
            }
            if ports.len() > MAX_PUBLIC {
                return Err(ServiceError::invalid(
                    "port",
                    format!("a sandbox can have at most {MAX_PUBLIC} public ports"),
                ));
            }
            let event = claim.event(
                "port_shared",
                &caller,
                json!({"port": port, "public": is_public}),
            );
            let patch = SandboxPatch {
                public_ports: Some(ports),
                ..SandboxPatch::default()
            };
            claim.commit(patch, vec![event], TimerPlan::Keep).await
        })
        .await
    }
}

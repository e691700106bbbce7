//! Dials one container's agent.

use sandyard_agent_client::{BoxedStream, Dial, Dialling, EgressDialling};

use super::links::Links;

/// Dials one agent over the current link of its container.
pub(super) struct LinkDialler {
    links: Links,
    id: String,
    name: String,
}

impl LinkDialler {
    pub(super) fn new(links: Links, id: &str) -> Self {
        Self {
            links,
            id: id.to_owned(),
            name: format!("docker:{id}"),
        }
    }
}

impl Dial for LinkDialler {
    fn name(&self) -> &str {
        &self.name
    }

    fn dial(&self) -> Dialling<'_> {
        Box::pin(async {
            let link = self.links.get(&self.id).await?;
            let stream: BoxedStream = Box::new(link.dial().await?);
            Ok(stream)
        })
    }

    fn open_egress(&self) -> Option<EgressDialling<'_>> {
        Some(Box::pin(async {
            let link = self.links.get(&self.id).await?;
            link.open_egress().await
        }))
    }
}

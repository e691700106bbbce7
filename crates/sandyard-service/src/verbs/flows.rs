//! Lists the network flows of a sandbox.

use std::collections::BTreeMap;

use sandyard_core::Caller;
use sandyard_core::network::FlowVerdict;
use sandyard_store::model::{Event, EventFilter};

use crate::background::flows::{FLOW, FLOW_DENIED};
use crate::error::Result;
use crate::request::FlowFilter;
use crate::service::Service;

impl Service {
    /// Lists the network flows of a sandbox, oldest first; also of a deleted one.
    pub async fn flows(
        &self,
        caller: &Caller,
        name: &str,
        filter: FlowFilter,
    ) -> Result<Vec<Event>> {
        let sandbox = self.inspect(caller, name).await?;
        let kinds: &[&str] = match filter.verdict {
            None => &[FLOW, FLOW_DENIED],
            Some(FlowVerdict::Denied) => &[FLOW_DENIED],
            Some(FlowVerdict::Allowed | FlowVerdict::Failed) => &[FLOW],
        };
        let verdict = match filter.verdict {
            Some(FlowVerdict::Allowed) => Some("allowed"),
            Some(FlowVerdict::Failed) => Some("failed"),
            _ => None,
        };
        let filter = EventFilter {
            sandbox_id: Some(sandbox.id),
            kinds: kinds.iter().map(|kind| (*kind).to_owned()).collect(),
            data: verdict
                .map(|verdict| ("verdict".to_owned(), verdict.to_owned()))
                .into_iter()
                .collect::<BTreeMap<_, _>>(),
            after_seq: filter.after_seq,
            is_tail: filter.after_seq.is_none(),
            limit: filter.limit,
            ..EventFilter::default()
        };
        self.history().flush().await;
        Ok(self.store().events(&filter).await?)
    }
}

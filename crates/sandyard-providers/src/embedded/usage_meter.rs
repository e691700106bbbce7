//! Reads counters by the engine's sampler, past the launcher, on a thread where that may block.

use std::collections::{HashMap, HashSet};
use std::mem;
use std::sync::Arc;

use async_trait::async_trait;
use sandyard_core::SandboxId;
use sandyard_engine::{Engine, Sample, Sampler};

use crate::usage_history::{Counters, Meter, Reading};

/// Reads what sandboxes of an engine use.
pub(super) struct EngineMeter {
    engine: Engine,
    /// NewVolumeHelper when it is needed: it looks at the host's control groups.
    sampler: Option<Arc<Sampler>>,
    /// What was read last, which spares looking up what is dear.
    before: HashMap<String, Sample>,
}

impl EngineMeter {
    pub(super) fn new(engine: &Engine) -> Self {
        Self {
            engine: engine.clone(),
            sampler: None,
            before: HashMap::new(),
        }
    }
}

#[async_trait]
impl Meter for EngineMeter {
    async fn read(&mut self, ids: &[String], is_all: bool) -> Vec<Reading> {
        let (engine, sampler) = (self.engine.clone(), self.sampler.take());
        let mut before = mem::take(&mut self.before);
        let ids = ids.to_vec();
        let count = ids.len();
        let pass = tokio::task::spawn_blocking(move || {
            let sampler = sampler.unwrap_or_else(|| Arc::new(engine.sampler()));
            if is_all {
                let there: HashSet<&String> = ids.iter().collect();
                before.retain(|id, _| there.contains(id));
            }
            let read = ids.iter().map(|id| read(&sampler, &mut before, id));
            (read.collect(), sampler, before)
        });
        let Ok((read, sampler, before)) = pass.await else {
            return vec![Reading::Failed; count];
        };
        (self.sampler, self.before) = (Some(sampler), before);
        read
    }
}

fn read(sampler: &Sampler, before: &mut HashMap<String, Sample>, id: &str) -> Reading {
    let Ok(parsed) = id.parse::<SandboxId>() else {
        return Reading::Gone;
    };
    let Some(sample) = sampler.sample(&parsed, before.get(id)) else {
        before.remove(id);
        return Reading::Gone;
    };
    before.insert(id.to_owned(), sample);
    Reading::Counters(Counters {
        cpu_usage_us: sample.cpu_usage_us(),
        memory_bytes: sample.memory_bytes(),
        cache_bytes: sample.cache_bytes(),
        disk_bytes: sample.disk_bytes(),
    })
}

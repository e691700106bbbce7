//! Reads counters with the engine's sampler, without the launcher, on a thread that may block.

use std::collections::{HashMap, HashSet};
use std::mem;
use std::sync::Arc;

use async_trait::async_trait;
use sandyard_core::SandboxId;
use sandyard_engine::{Engine, Sample, Sampler};

use crate::usage_history::{Counters, Meter, Reading};

/// Reads the usage of the engine's sandboxes.
pub(super) struct EngineMeter {
    engine: Engine,
    /// Created when needed: it reads the host's control groups.
    sampler: Option<Arc<Sampler>>,
    /// The last samples, which avoid repeating expensive lookups.
    last_samples: HashMap<String, Sample>,
}

impl EngineMeter {
    pub(super) fn new(engine: &Engine) -> Self {
        Self {
            engine: engine.clone(),
            sampler: None,
            last_samples: HashMap::new(),
        }
    }
}

#[async_trait]
impl Meter for EngineMeter {
    async fn read(&mut self, ids: &[String], is_all: bool) -> Vec<Reading> {
        let (engine, sampler) = (self.engine.clone(), self.sampler.take());
        let mut last_samples = mem::take(&mut self.last_samples);
        let ids = ids.to_vec();
        let count = ids.len();
        let pass = tokio::task::spawn_blocking(move || {
            let sampler = sampler.unwrap_or_else(|| Arc::new(engine.sampler()));
            if is_all {
                let listed: HashSet<&String> = ids.iter().collect();
                last_samples.retain(|id, _| listed.contains(id));
            }
            let read = ids.iter().map(|id| read(&sampler, &mut last_samples, id));
            (read.collect(), sampler, last_samples)
        });
        let Ok((read, sampler, last_samples)) = pass.await else {
            return vec![Reading::Failed; count];
        };
        (self.sampler, self.last_samples) = (Some(sampler), last_samples);
        read
    }
}

fn read(sampler: &Sampler, last_samples: &mut HashMap<String, Sample>, id: &str) -> Reading {
    let Ok(parsed) = id.parse::<SandboxId>() else {
        return Reading::Exited;
    };
    let Some(sample) = sampler.sample(&parsed, last_samples.get(id)) else {
        last_samples.remove(id);
        return Reading::Exited;
    };
    last_samples.insert(id.to_owned(), sample);
    Reading::Counters(Counters {
        cpu_usage_us: sample.cpu_usage_us(),
        memory_bytes: sample.memory_bytes(),
        cache_bytes: sample.cache_bytes(),
        disk_bytes: sample.disk_bytes(),
    })
}

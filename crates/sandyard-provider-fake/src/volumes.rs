//! The volumes of the fake, and the instances that mount them.

use super::world::World;
use sandyard_provider::{Mount, VolumeSpec};
use sandyard_provider::{ProviderError, ProviderErrorKind, Result};

impl World {
    pub(super) fn add_volume(&mut self, volume: &VolumeSpec) -> Result<()> {
        let is_fine = |byte: u8| byte.is_ascii_alphanumeric();
        if volume.id.is_empty() || !volume.id.bytes().all(is_fine) || volume.size_bytes == 0 {
            let message = format!("`{}` is not a valid volume", volume.id);
            return Err(ProviderError::new(ProviderErrorKind::Invalid, message));
        }
        let entry = self.volumes.entry(volume.id.clone());
        entry.or_insert_with(|| volume.clone());
        if let Some(agents) = &mut self.agents {
            agents.add_volume(volume);
        }
        Ok(())
    }

    pub(super) fn remove_volume(&mut self, id: &str) -> Result<()> {
        let has = |mounts: &[Mount]| mounts.iter().any(|mount| mount.volume == id);
        if self
            .instances
            .values()
            .any(|instance| has(&instance.spec.mounts))
        {
            let message = format!("volume `{id}` is in use");
            return Err(ProviderError::new(ProviderErrorKind::Conflict, message));
        }
        self.volumes.remove(id);
        if let Some(agents) = &mut self.agents {
            agents.remove_volume(id);
        }
        Ok(())
    }

    pub(super) fn volume(&self, id: &str) -> Result<()> {
        let found = self.volumes.get(id).map(drop);
        found.ok_or_else(|| {
            ProviderError::new(ProviderErrorKind::NotFound, format!("no volume `{id}`"))
        })
    }

    pub(super) fn check_mounts(&self, mounts: &[Mount]) -> Result<()> {
        let components = |path: &str| -> Vec<String> {
            let components = path.split('/').filter(|component| !component.is_empty());
            components.map(str::to_owned).collect()
        };
        let is_invalid = |path: &str| {
            let components = components(path);
            let reserved = ["proc", "sys", "dev"];
            !path.starts_with('/')
                || components
                    .first()
                    .is_none_or(|first| reserved.contains(&first.as_str()))
                || components
                    .iter()
                    .any(|component| component == "." || component == "..")
        };
        for (index, mount) in mounts.iter().enumerate() {
            let path = components(&mount.path);
            let others = mounts[..index].iter().map(|other| components(&other.path));
            let is_nested =
                |other: Vec<String>| other.starts_with(&path) || path.starts_with(&other);
            if is_invalid(&mount.path) || others.into_iter().any(is_nested) {
                let message = format!("`{}` is not a valid mount path", mount.path);
                return Err(ProviderError::new(ProviderErrorKind::Invalid, message));
            }
        }
        mounts
            .iter()
            .try_for_each(|mount| self.volume(&mount.volume))
    }
}

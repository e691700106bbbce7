//! Volumes of a fake place: names, and who has them.

use super::world::World;
use sandyard_provider::{Mount, VolumeSpec};
use sandyard_provider::{ProviderError, ProviderErrorKind, Result};

impl World {
    pub(super) fn add_volume(&mut self, volume: &VolumeSpec) -> Result<()> {
        let is_fine = |byte: u8| byte.is_ascii_alphanumeric();
        if volume.id.is_empty() || !volume.id.bytes().all(is_fine) || volume.size_bytes == 0 {
            let message = format!("`{}` cannot be a volume", volume.id);
            return Err(ProviderError::new(ProviderErrorKind::Invalid, message));
        }
        let known = self.volumes.entry(volume.id.clone());
        known.or_insert_with(|| volume.clone());
        if let Some(inside) = &mut self.inside {
            inside.add_volume(volume);
        }
        Ok(())
    }

    pub(super) fn remove_volume(&mut self, id: &str) -> Result<()> {
        let has = |mounts: &[Mount]| mounts.iter().any(|mount| mount.volume == id);
        if self.instances.values().any(|one| has(&one.spec.mounts)) {
            let message = format!("volume `{id}` is in use");
            return Err(ProviderError::new(ProviderErrorKind::Conflict, message));
        }
        self.volumes.remove(id);
        if let Some(inside) = &mut self.inside {
            inside.remove_volume(id);
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
        let pieces = |path: &str| -> Vec<String> {
            let pieces = path.split('/').filter(|piece| !piece.is_empty());
            pieces.map(str::to_owned).collect()
        };
        let is_odd = |path: &str| {
            let pieces = pieces(path);
            let taken = ["proc", "sys", "dev"];
            !path.starts_with('/')
                || pieces
                    .first()
                    .is_none_or(|first| taken.contains(&first.as_str()))
                || pieces.iter().any(|piece| piece == "." || piece == "..")
        };
        for (nth, mount) in mounts.iter().enumerate() {
            let path = pieces(&mount.path);
            let others = mounts[..nth].iter().map(|other| pieces(&other.path));
            let is_nested =
                |other: Vec<String>| other.starts_with(&path) || path.starts_with(&other);
            if is_odd(&mount.path) || others.into_iter().any(is_nested) {
                let message = format!("no volume can be at `{}`", mount.path);
                return Err(ProviderError::new(ProviderErrorKind::Invalid, message));
            }
        }
        mounts
            .iter()
            .try_for_each(|mount| self.volume(&mount.volume))
    }
}

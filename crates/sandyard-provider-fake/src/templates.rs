//! The templates of the fake.

use super::TEMPLATE;
use super::world::World;
use sandyard_provider::TemplateInfo;
use sandyard_provider::{ProviderError, ProviderErrorKind, Result};

impl World {
    /// Saves an instance's files as a template.
    pub(super) fn snapshot(&mut self, id: &str, name: &str) -> Result<TemplateInfo> {
        let machine = self.find(id)?.machine.clone();
        let size_bytes = machine.as_ref().map_or(0, |machine| machine.disk_used());
        let created = self.add_template(name, Some(size_bytes))?;
        if let (Some(agents), Some(machine)) = (&mut self.agents, machine) {
            agents.save_template(name, &machine);
        }
        Ok(created)
    }

    pub(super) fn add_template(
        &mut self,
        name: &str,
        size_bytes: Option<u64>,
    ) -> Result<TemplateInfo> {
        let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if name.is_empty() || name.starts_with('.') || !name.bytes().all(is_fine) {
            return Err(ProviderError::new(
                ProviderErrorKind::Invalid,
                format!("`{name}` cannot be the name of a template"),
            ));
        }
        if self.templates.contains_key(name) {
            return Err(ProviderError::new(
                ProviderErrorKind::Conflict,
                format!("template `{name}` exists"),
            ));
        }
        let created = template(name, Some(self.clock.now_ms()), size_bytes);
        self.templates.insert(name.to_owned(), created.clone());
        Ok(created)
    }

    pub(super) fn remove_template(&mut self, name: &str) -> Result<()> {
        if name == TEMPLATE {
            return Err(ProviderError::new(
                ProviderErrorKind::Invalid,
                format!("the default template `{name}` cannot be removed"),
            ));
        }
        let removed = self.templates.remove(name);
        if let Some(agents) = &mut self.agents {
            agents.remove_template(name);
        }
        removed.map(drop).ok_or_else(|| no_template(name))
    }
}

pub(super) fn template(
    name: &str,
    created_ms: Option<i64>,
    size_bytes: Option<u64>,
) -> TemplateInfo {
    TemplateInfo {
        is_ours: true,
        name: name.to_owned(),
        created_ms,
        size_bytes,
        note: None,
    }
}

pub(super) fn no_template(name: &str) -> ProviderError {
    ProviderError::new(ProviderErrorKind::NotFound, format!("no template `{name}`"))
}

//! API keys: who may create them, listing and revoking.

use sandyard_core::{Caller, Role, Scope};
use sandyard_store::model::ApiKey;

use crate::auth::Auth;
use crate::error::{AuthError, Result};
use crate::key_text;
use crate::random;
use crate::user_name;

const MAX_NAME_LEN: usize = 64;
/// Most valid keys of one user.
const MAX_KEYS: usize = 100;

/// A new key. It can be seen only now.
#[derive(Clone, PartialEq, Eq)]
pub struct NewKey {
    /// Everything but the key itself.
    pub key: ApiKey,
    /// The key itself.
    pub secret: String,
}

sandyard_core::debug_fields!(NewKey: key);

/// Says whether a caller may create a key for `owner` with these scopes.
///
/// A caller may create keys for itself, and with the scope `admin` for anybody, but never with a scope that its own credentials do not
/// have. A key without the scope `admin` creates no keys: they would outlive it.
pub fn may_create_key(caller: &Caller, owner: &str, scopes: &[Scope]) -> Result<()> {
    if !caller.name.eq_ignore_ascii_case(owner) && !caller.has(Scope::Admin) {
        return Err(AuthError::ForeignKey {
            owner: owner.to_owned(),
        });
    }
    let is_login = caller.via == "local" || caller.via.starts_with("session:");
    if !is_login && !caller.has(Scope::Admin) {
        return Err(AuthError::KeyMakesKey);
    }
    match scopes.iter().find(|scope| !caller.has(**scope)) {
        Some(scope) => Err(AuthError::ScopeBeyondCaller(*scope)),
        None => Ok(()),
    }
}

impl Auth {
    /// Creates a key. The caller checks [`may_create_key`] first.
    pub async fn create_key(
        &self,
        owner: &str,
        name: &str,
        scopes: &[Scope],
        expires_ms: Option<i64>,
    ) -> Result<NewKey> {
        let now_ms = self.now_ms();
        let scopes = check_scopes(scopes)?;
        check_name(name)?;
        if expires_ms.is_some_and(|end| end <= now_ms) {
            return Err(AuthError::Invalid {
                field: "expires",
                detail: "must be in the future",
            });
        }
        let owner = self.existing_user(owner).await?;
        if scopes.contains(&Scope::Admin) && owner.role != Role::Admin {
            return Err(AuthError::AdminScope { owner: owner.name });
        }
        let is_valid = |key: &ApiKey| {
            key.revoked_ms.is_none() && key.expires_ms.is_none_or(|end| end > now_ms)
        };
        let keys = self.store().keys(Some(&owner.name)).await?;
        if keys.iter().filter(|key| is_valid(key)).count() >= MAX_KEYS {
            return Err(AuthError::TooManyKeys {
                owner: owner.name,
                limit: MAX_KEYS,
            });
        }
        let id = random::hex_text::<8>()?;
        let (new, stored) = key_text::make(id, owner.name, name, scopes, now_ms, expires_ms)?;
        if !self.store().insert_key(&stored).await? {
            return Err(AuthError::Busy);
        }
        Ok(new)
    }

    /// Lists keys, newest first, including revoked ones; only those of `owner`, if given.
    pub async fn list_keys(&self, owner: Option<&str>) -> Result<Vec<ApiKey>> {
        match owner.map(user_name::parse) {
            None => Ok(self.store().keys(None).await?),
            Some(Some(owner)) => Ok(self.store().keys(Some(&owner)).await?),
            Some(None) => Ok(Vec::new()),
        }
    }

    /// Revokes a key; only one of `owner`, if given.
    pub async fn revoke_key(&self, id: &str, owner: Option<&str>) -> Result<()> {
        let not_found = || AuthError::KeyNotFound(id.chars().take(MAX_NAME_LEN).collect());
        let owner = match owner {
            Some(owner) => Some(user_name::parse(owner).ok_or_else(not_found)?),
            None => None,
        };
        let is_revoked = self
            .store()
            .revoke_key(id, owner.as_deref(), self.now_ms())
            .await?;
        self.inner.key_cache.clear();
        if is_revoked { Ok(()) } else { Err(not_found()) }
    }
}

fn check_scopes(scopes: &[Scope]) -> Result<Vec<Scope>> {
    let mut scopes = scopes.to_vec();
    scopes.sort_unstable();
    scopes.dedup();
    if scopes.is_empty() {
        return Err(AuthError::Invalid {
            field: "scopes",
            detail: "must have at least one scope",
        });
    }
    Ok(scopes)
}

fn check_name(name: &str) -> Result<()> {
    let is_valid = !name.trim().is_empty()
        && name.len() <= MAX_NAME_LEN
        && !name.chars().any(char::is_control);
    if is_valid {
        return Ok(());
    }
    Err(AuthError::Invalid {
        field: "name",
        detail: "must have 1 to 64 bytes and no control characters",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(role: Role, scopes: &[Scope]) -> Caller {
        Caller {
            name: "alice".to_owned(),
            role,
            scopes: scopes.to_vec(),
            via: "key:1".to_owned(),
        }
    }

    #[test]
    fn no_caller_grants_a_scope_that_it_does_not_have() {
        let login = |role, scopes: &[Scope]| Caller {
            via: "session:1".to_owned(),
            ..caller(role, scopes)
        };
        let weak = login(Role::Admin, &[Scope::Read, Scope::Manage]);
        assert!(may_create_key(&weak, "alice", &[Scope::Read]).is_ok());
        assert!(may_create_key(&weak, "Alice", &[Scope::Manage]).is_ok());
        assert!(matches!(
            may_create_key(&weak, "alice", &[Scope::Read, Scope::Use]),
            Err(AuthError::ScopeBeyondCaller(Scope::Use))
        ));
        assert!(matches!(
            may_create_key(&weak, "bob", &[Scope::Read]),
            Err(AuthError::ForeignKey { .. })
        ));
        let user = login(Role::User, &Scope::ALL);
        assert!(matches!(
            may_create_key(&user, "alice", &[Scope::Admin]),
            Err(AuthError::ScopeBeyondCaller(Scope::Admin))
        ));
        assert!(may_create_key(&user, "bob", &[Scope::Read]).is_err());
        assert!(may_create_key(&Caller::local(), "bob", &Scope::ALL).is_ok());
    }

    #[test]
    fn a_key_makes_keys_only_if_it_is_an_admins() {
        for role in [Role::User, Role::Admin] {
            let key = caller(role, &[Scope::Read, Scope::Use, Scope::Manage]);
            assert!(matches!(
                may_create_key(&key, "alice", &[Scope::Read]),
                Err(AuthError::KeyMakesKey)
            ));
        }
        // The scope alone makes no admin.
        let user = caller(Role::User, &Scope::ALL);
        assert!(may_create_key(&user, "alice", &[Scope::Read]).is_err());
        let admin = caller(Role::Admin, &Scope::ALL);
        assert!(may_create_key(&admin, "bob", &[Scope::Read]).is_ok());
    }

    #[test]
    fn names_of_keys_are_bounded() {
        assert!(check_name("ci runner ✓").is_ok());
        for name in ["", "  ", "a\nb", &"a".repeat(65)] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
    }
}

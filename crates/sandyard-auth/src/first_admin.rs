//! Creates the first admin when the server starts for the first time.

use sandyard_core::{Role, Scope};
use sandyard_store::model::NewUser;

use crate::auth::Auth;
use crate::error::Result;
use crate::key_text;
use crate::keys::NewKey;

const ADMIN: &str = "admin";
/// Records that the admin was created, so that a deleted `admin` does not come back at the next start.
const META_NAME: &str = "auth.first_admin";
/// All servers use this id, so that the store accepts the key of only one of them.
const KEY_ID: &str = "first";

impl Auth {
    /// Creates the user `admin`, without a password, and a key for it. Returns the key the first time only. If several servers start at
    /// once, one of them gets it.
    pub async fn ensure_admin(&self) -> Result<Option<NewKey>> {
        if self.store().meta(META_NAME).await?.is_some() {
            return Ok(None);
        }
        let now_ms = self.now_ms();
        let admin = NewUser {
            name: ADMIN.to_owned(),
            password_hash: None,
            role: Role::Admin,
            max_sandboxes: None,
            created_ms: now_ms,
        };
        // Fails harmlessly if another server was faster, or an earlier start was interrupted.
        self.store().insert_user(&admin).await?;
        let scopes = Scope::ALL.to_vec();
        let (new, stored) = key_text::make(
            KEY_ID.to_owned(),
            admin.name,
            "first start",
            scopes,
            now_ms,
            None,
        )?;
        let is_ours = self.store().insert_key(&stored).await?;
        // Last: a server that dies before this line leaves the rest to the next start.
        self.store()
            .meta_or_insert(META_NAME, &now_ms.to_string())
            .await?;
        Ok(is_ours.then_some(new))
    }
}

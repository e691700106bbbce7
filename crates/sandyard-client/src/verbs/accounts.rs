//! Users and keys.

use reqwest::Method;

use super::listing::Wrapped;
use crate::Result;
use crate::client::Client;
use crate::model::{ApiKey, KeyRequest, NewKey, User, UserChange, UserRequest};
use crate::request::Patience;

impl Client {
    /// Lists users; for admins.
    ///
    /// # Errors
    ///
    /// When the caller is none.
    pub async fn users(&self) -> Result<Vec<User>> {
        let operation = "listing users";
        let answer: Wrapped = self.get(operation, ["users"]).await?;
        Ok(answer.page(operation, "users")?.items)
    }

    /// Makes a user; for admins.
    ///
    /// # Errors
    ///
    /// When the name is taken or makes no sense.
    pub async fn add_user(&self, user: &UserRequest) -> Result<User> {
        self.post("making a user", ["users"], user).await
    }

    /// Changes a user; for admins.
    ///
    /// # Errors
    ///
    /// When there is no such user.
    pub async fn change_user(&self, name: &str, change: &UserChange) -> Result<User> {
        let request = self.request(Method::PATCH, ["users", name]).json(change);
        self.fetch("changing a user", Patience::Short, request)
            .await
    }

    /// Removes a user; for admins.
    ///
    /// # Errors
    ///
    /// When there is no such user.
    pub async fn remove_user(&self, name: &str) -> Result<()> {
        let request = self.request(Method::DELETE, ["users", name]);
        self.send("removing a user", Patience::Short, request)
            .await?;
        Ok(())
    }

    /// Lists keys.
    ///
    /// # Errors
    ///
    /// When the caller may not.
    pub async fn keys(&self) -> Result<Vec<ApiKey>> {
        let operation = "listing keys";
        let answer: Wrapped = self.get(operation, ["keys"]).await?;
        Ok(answer.page(operation, "keys")?.items)
    }

    /// Makes a key, and shows it this once.
    ///
    /// # Errors
    ///
    /// When the scopes or the owner are not the caller's to give.
    pub async fn add_key(&self, key: &KeyRequest) -> Result<NewKey> {
        self.post("making a key", ["keys"], key).await
    }

    /// Revokes a key.
    ///
    /// # Errors
    ///
    /// When there is no such key.
    pub async fn remove_key(&self, id: &str) -> Result<()> {
        let request = self.request(Method::DELETE, ["keys", id]);
        self.send("revoking a key", Patience::Short, request)
            .await?;
        Ok(())
    }
}

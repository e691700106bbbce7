//! Users and keys.

use reqwest::Method;

use super::wrapped::Wrapped;
use crate::Result;
use crate::client::Client;
use crate::model::{ApiKey, KeyRequest, NewKey, User, UserChange, UserRequest};
use crate::request::TimeLimit;

impl Client {
    /// Lists users. Requires an admin.
    ///
    /// # Errors
    ///
    /// If the caller is not an admin.
    pub async fn users(&self) -> Result<Vec<User>> {
        let operation = "listing users";
        let answer: Wrapped = self.get(operation, ["users"]).await?;
        Ok(answer.page(operation, "users")?.items)
    }

    /// Creates a user. Requires an admin.
    ///
    /// # Errors
    ///
    /// If the name is taken or not valid.
    pub async fn add_user(&self, user: &UserRequest) -> Result<User> {
        self.post("creating a user", ["users"], user).await
    }

    /// Changes a user. Requires an admin.
    ///
    /// # Errors
    ///
    /// If the user does not exist.
    pub async fn change_user(&self, name: &str, change: &UserChange) -> Result<User> {
        let request = self.request(Method::PATCH, ["users", name]).json(change);
        self.fetch("changing a user", TimeLimit::Short, request)
            .await
    }

    /// Deletes a user. Requires an admin.
    ///
    /// # Errors
    ///
    /// If the user does not exist.
    pub async fn remove_user(&self, name: &str) -> Result<()> {
        let request = self.request(Method::DELETE, ["users", name]);
        self.send("deleting a user", TimeLimit::Short, request)
            .await?;
        Ok(())
    }

    /// Lists API keys.
    ///
    /// # Errors
    ///
    /// If the caller may not list keys.
    pub async fn keys(&self) -> Result<Vec<ApiKey>> {
        let operation = "listing keys";
        let answer: Wrapped = self.get(operation, ["keys"]).await?;
        Ok(answer.page(operation, "keys")?.items)
    }

    /// Creates an API key. The key itself is returned only here.
    ///
    /// # Errors
    ///
    /// If the caller may not grant the scopes, or not to this owner.
    pub async fn add_key(&self, key: &KeyRequest) -> Result<NewKey> {
        self.post("creating a key", ["keys"], key).await
    }

    /// Revokes an API key.
    ///
    /// # Errors
    ///
    /// If the key does not exist.
    pub async fn remove_key(&self, id: &str) -> Result<()> {
        let request = self.request(Method::DELETE, ["keys", id]);
        self.send("revoking a key", TimeLimit::Short, request)
            .await?;
        Ok(())
    }
}

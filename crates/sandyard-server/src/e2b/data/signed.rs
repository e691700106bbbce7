//! Which sandbox a signature is of: the one whose token it was made with; or a token, where a client shows nothing else.
//!
//! Without domains a signed link names no sandbox, so every token is tried. That is a hash each, about a millisecond for
//! some thousands, one search at a time; and who is wrong too often is not served for a while.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Instant;

use axum::extract::Query;
use axum::http::Method;
use axum::http::request::Parts;
use sandyard_agent_client::wire::routes::header::ACCESS_TOKEN;
use sandyard_agent_client::wire::routes::{FILES, query};
use sandyard_agent_client::wire::signature::{
    Operation, Signature, SignedUrl, Unsigned, secrets_match,
};
use sandyard_core::SandboxId;
use tokio::sync::Semaphore;

use super::misses::Misses;
use super::tokens::{Known, Tokens};
use crate::app::{App, Listener};

/// Tokens tried before others get a turn.
const AT_ONCE: usize = 1000;

/// Why no sandbox is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It is nobody's signature.
    Unknown,
    /// This client was wrong too often.
    TooMany,
    /// The store cannot be asked.
    Failed,
}

/// Finds sandboxes by signatures.
#[derive(Debug)]
pub(crate) struct Signatures {
    tokens: Tokens,
    misses: Misses,
    searches: Semaphore,
}

impl Default for Signatures {
    fn default() -> Self {
        Self {
            tokens: Tokens::default(),
            misses: Misses::default(),
            searches: Semaphore::new(1),
        }
    }
}

impl Signatures {
    /// Finds the sandbox whose token made the signature of a request.
    pub(super) async fn find(&self, app: &App, parts: &Parts) -> Result<SandboxId, Refusal> {
        let signed = Signed::of(parts).ok_or(Refusal::Unknown)?;
        self.find_by(app, parts, &Proof::Signature(signed)).await
    }

    /// Finds the sandbox whose token a request shows.
    pub(super) async fn find_by_token(
        &self,
        app: &App,
        parts: &Parts,
    ) -> Result<SandboxId, Refusal> {
        let token = parts.headers.get(ACCESS_TOKEN);
        let token = token.and_then(|token| token.to_str().ok());
        let token = token.filter(|token| !token.is_empty());
        let token = token.ok_or(Refusal::Unknown)?.to_owned();
        self.find_by(app, parts, &Proof::Token(token)).await
    }

    async fn find_by(
        &self,
        app: &App,
        parts: &Parts,
        proof: &Proof,
    ) -> Result<SandboxId, Refusal> {
        let listener = parts.extensions.get::<Listener>();
        let address = listener.map_or(Ipv4Addr::UNSPECIFIED.into(), |it| it.peer.ip());
        let known = self.tokens.known();
        if let Some(id) = self.search(proof, &known, address).await? {
            return Ok(id);
        }
        // Counted before the wait: all who wait count.
        self.misses.note(address, Instant::now());
        let news = self.tokens.news(app.store(), &known).await;
        let news = news.map_err(|error| {
            tracing::warn!(%error, "Sandboxes cannot be looked up by signature");
            Refusal::Failed
        })?;
        let id = proof.owner(&news).ok_or(Refusal::Unknown)?;
        self.misses.forgive(address, Instant::now());
        Ok(id)
    }

    async fn search(
        &self,
        proof: &Proof,
        known: &[Known],
        address: IpAddr,
    ) -> Result<Option<SandboxId>, Refusal> {
        let _turn = self.searches.acquire().await;
        if !self.misses.may_try(address, Instant::now()) {
            return Err(Refusal::TooMany);
        }
        // The newest first: they are asked for most.
        for some in known.rchunks(AT_ONCE) {
            if let Some(id) = proof.owner(some) {
                return Ok(Some(id));
            }
            tokio::task::yield_now().await;
        }
        Ok(None)
    }
}

/// Says whether a request has a signature made with this token; whether its time is over is the agent's to say.
pub(super) fn is_signed(parts: &Parts, token: &str) -> bool {
    !token.is_empty()
        && parts.uri.path() == FILES
        && Signed::of(parts).is_some_and(|signed| signed.is_by(token))
}

/// A request with a signature.
struct Signed {
    url: Unsigned,
    signature: Signature,
}

impl Signed {
    fn of(parts: &Parts) -> Option<Self> {
        let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri).ok()?;
        let get = |key: &str| {
            let found = pairs.iter().find(|(name, _)| name == key);
            found.map(|(_, value)| value.as_str())
        };
        let url = SignedUrl {
            path: get(query::PATH).unwrap_or_default(),
            operation: if parts.method == Method::POST {
                Operation::Write
            } else {
                Operation::Read
            },
            user: get(query::USERNAME).unwrap_or_default(),
            expiration: get(query::SIGNATURE_EXPIRATION).and_then(|text| text.parse().ok()),
        };
        Some(Self {
            url: url.unsigned(),
            signature: Signature::parse(get(query::SIGNATURE)?)?,
        })
    }

    fn is_by(&self, token: &str) -> bool {
        self.url.is_signed_by(token, &self.signature)
    }

}

/// What shows which sandbox is meant.
enum Proof {
    Signature(Signed),
    Token(String),
}

impl Proof {
    fn owner(&self, known: &[Known]) -> Option<SandboxId> {
        let is_of = |known: &&Known| match self {
            Self::Signature(signed) => signed.is_by(&known.token),
            Self::Token(token) => secrets_match(token, &known.token),
        };
        let found = known.iter().rev().find(is_of);
        found.map(|known| known.id.clone())
    }
}

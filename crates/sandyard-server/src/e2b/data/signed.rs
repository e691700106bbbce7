//! Which sandbox a signature is of: the one whose token it was made with; or a token, where a client shows nothing else.
//!
//! Without domains a signed link names no sandbox, so every token is tried. That is a hash each, about a millisecond for
//! some thousands, one search at a time; and who is wrong too often may not search for a while. What was found lately needs no
//! search.

use std::hash::{BuildHasher, RandomState};
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

use super::hits::Hits;
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
    hits: Hits,
    misses: Misses,
    /// Makes hashes that nobody can foresee.
    hasher: RandomState,
    searches: Semaphore,
}

impl Default for Signatures {
    fn default() -> Self {
        Self {
            tokens: Tokens::default(),
            hits: Hits::default(),
            misses: Misses::default(),
            hasher: RandomState::new(),
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

    async fn find_by(&self, app: &App, parts: &Parts, proof: &Proof) -> Result<SandboxId, Refusal> {
        let listener = parts.extensions.get::<Listener>();
        let address = listener.map_or(Ipv4Addr::UNSPECIFIED.into(), |it| it.peer.ip());
        let hash = self.hasher.hash_one(proof.text());
        if let Some(hit) = self.hits.find(hash)
            && proof.is_of(&hit)
        {
            return Ok(hit.id);
        }
        let known = self.tokens.known();
        if let Some(found) = self.search(proof, &known, address).await? {
            self.hits.keep(hash, found.clone());
            return Ok(found.id);
        }
        // Counted before the wait: all who wait count.
        self.misses.note(address, Instant::now());
        let news = self.tokens.news(app.store(), &known).await;
        let news = news.map_err(|error| {
            tracing::warn!(%error, "Sandboxes cannot be looked up by signature");
            Refusal::Failed
        })?;
        let found = proof.owner(&news).ok_or(Refusal::Unknown)?;
        self.misses.forgive(address, Instant::now());
        self.hits.keep(hash, found.clone());
        Ok(found.id)
    }

    async fn search(
        &self,
        proof: &Proof,
        known: &[Known],
        address: IpAddr,
    ) -> Result<Option<Known>, Refusal> {
        let _turn = self.searches.acquire().await;
        if !self.misses.may_try(address, Instant::now()) {
            return Err(Refusal::TooMany);
        }
        // The newest first: they are asked for most.
        for some in known.rchunks(AT_ONCE) {
            if let Some(found) = proof.owner(some) {
                return Ok(Some(found));
            }
            tokio::task::yield_now().await;
        }
        Ok(None)
    }
}

/// Says whether a request has a signature made with this token; whether its time is over is the agent's to say.
pub(super) fn is_signed(parts: &Parts, token: &str) -> bool {
    let is_meant = matches!(parts.method, Method::GET | Method::HEAD | Method::POST);
    !token.is_empty()
        && is_meant
        && parts.uri.path() == FILES
        && Signed::of(parts).is_some_and(|signed| signed.is_by(token))
}

/// What an agent says of a URL whose time is over.
pub(super) const IS_OVER: &str = "signature is already expired";

/// Says whether the time of a request's signature is over: for agents that do not know our signatures.
pub(super) fn is_over(parts: &Parts, now_ms: i64) -> bool {
    let expiration = Signed::of(parts).and_then(|signed| signed.expiration);
    expiration.is_some_and(|seconds| seconds.saturating_mul(1000) < now_ms)
}

/// A request with a signature.
struct Signed {
    url: Unsigned,
    text: String,
    signature: Signature,
    /// Seconds since 1970.
    expiration: Option<i64>,
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
        let text = get(query::SIGNATURE)?;
        Some(Self {
            expiration: url.expiration,
            url: url.unsigned(),
            signature: Signature::parse(text)?,
            text: text.to_owned(),
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
    /// The text that was shown.
    fn text(&self) -> &str {
        match self {
            Self::Signature(signed) => &signed.text,
            Self::Token(token) => token,
        }
    }

    fn is_of(&self, known: &Known) -> bool {
        match self {
            Self::Signature(signed) => signed.is_by(&known.token),
            Self::Token(token) => secrets_match(token, &known.token),
        }
    }

    fn owner(&self, known: &[Known]) -> Option<Known> {
        let found = known.iter().rev().find(|known| self.is_of(known));
        found.cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_signature_is_over_when_its_second_is() {
        let parts = |query: &str| {
            let request = axum::http::Request::get(format!("/files?path=/a{query}"));
            request.body(()).expect("a request").into_parts().0
        };
        let signed = "&signature=v1_47DEQpj8HBSa%2B/TImW%2B5JCeuQeRkm5NMpJWZG3hSuFU";
        let expiring = parts(&format!("{signed}&signature_expiration=100"));
        assert!(!is_over(&expiring, 100_000));
        assert!(is_over(&expiring, 100_001));
        assert!(!is_over(&parts(signed), i64::MAX));
        assert!(!is_over(&parts("&signature_expiration=100"), i64::MAX));
    }
}

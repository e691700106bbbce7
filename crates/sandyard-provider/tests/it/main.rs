//! The fake, the layers around a provider, and providers that come late.

mod common;
mod conformance;
mod layers;
mod pending;
mod script;
mod users;

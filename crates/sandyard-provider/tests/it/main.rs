//! The layers around a provider, and providers that are connected later.

mod common;
mod layers;
mod pending;

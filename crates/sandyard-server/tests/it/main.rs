//! The whole router over an in-memory store and a provider in memory.
#![expect(
    clippy::unwrap_used,
    reason = "a test that meets what cannot be has failed"
)]

mod accounts;
mod api_reference;
mod app;
mod architecture;
mod contract;
mod docker;
mod e2b_control;
mod e2b_data;
mod e2b_hostile;
mod e2b_lying;
mod edges;
mod enveloped;
mod extra_provider;
mod files;
mod listen;
mod live;
mod matrix;
mod mcp;
mod native;
mod network;
mod nodes;
mod openapi;
mod preview;
mod providers;
mod registry;
mod streams;
mod token_scopes;
mod volume_content;
mod volumes;

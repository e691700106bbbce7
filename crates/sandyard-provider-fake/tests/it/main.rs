//! The fake: faults on demand, the agent for users' own tests, and the conformance suite.

mod common;
mod conformance;
mod script;
mod users;

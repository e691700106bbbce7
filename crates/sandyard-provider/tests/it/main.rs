//! The fake: that it is a provider like any other, and that it fails as it is told.

mod conformance;
mod script;

//! The first process of a container, in namespaces that the tests make in place of a container engine.

mod container;
mod egress;
mod setup;

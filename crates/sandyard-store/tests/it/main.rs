//! One list of promises, kept by SQLite in memory, SQLite in a file and a real PostgreSQL; timers with and without a real
//! Redis.
//!
//! Both servers are started here, on sockets in a temporary directory, and stopped when the last test is through.
//! Needed: `apt-get install postgresql redis-server`.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a failed step of a test is a failed test"
)]

mod access;
mod cluster;
mod engines;
mod full_disk;
mod history;
mod interrupted;
mod locations;
mod opening;
mod outages;
mod races;
mod sample;
mod sandboxes;
mod secrets;
mod servers;
mod speed;
mod timers;
mod volumes;

/// Makes a test of each check for each engine.
macro_rules! on_every_engine {
    ($($check:ident),* $(,)?) => {
        mod memory {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $check() {
                super::$check(crate::engines::Home::memory()).await;
            })*
        }
        mod file {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $check() {
                super::$check(crate::engines::Home::file()).await;
            })*
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $check() {
                super::$check(crate::engines::Home::postgres().await).await;
            })*
        }
    };
}
pub(crate) use on_every_engine;

//! The engine of this host as a provider.

use std::sync::Arc;
use std::time::Duration;

use sandyard_core::SandboxState::{Running, Stopped};
use sandyard_provider::ProviderErrorKind::{NotFound, TimedOut};
use sandyard_provider::conformance::{self, Options};
use sandyard_provider::prelude::*;
use sandyard_providers::{CallTimeouts, Embedded, EmbeddedConfig};

use crate::agent_client;
use crate::env::{TestEnv, create_foreign_instances, is_root, spec};

#[tokio::test]
async fn the_embedded_engine_passes_the_conformance_suite() {
    let env = TestEnv::new().await;
    let options = Options {
        foreign_instances: create_foreign_instances(&env).await,
        ..Options::default()
    };
    let provider = Arc::new(env.provider("ours").await);
    let report = conformance::run(provider, &options).await;
    report.assert();
    // Sandboxes of an ordinary user may have no limits: that is the only check that may be skipped.
    let untried = report.0.len() - report.passed();
    assert!(untried == 0 || (untried == 1 && !is_root()), "\n{report}");
    let remaining = env.engine.list().await.expect("list").len();
    assert_eq!(
        remaining,
        options.foreign_instances.len(),
        "foreign sandboxes are untouched"
    );
    env.finish().await;
}

#[tokio::test]
async fn every_call_works_after_the_launcher_died() {
    let env = TestEnv::new().await;
    let provider = env.provider("ours").await;
    let made = provider.create(&spec(&provider, "one")).await;
    let id = made.expect("create").id;
    env.kill_launcher().await;
    provider.pause(&id).await.expect("pause");
    env.kill_launcher().await;
    assert_eq!(provider.list().await.expect("list").len(), 1);
    env.kill_launcher().await;
    // Not a call that may be repeated blindly: it checks first.
    let second = provider.create(&spec(&provider, "two")).await;
    let second = second.expect("create").id;
    env.kill_launcher().await;
    let third = provider.fork(&second, &spec(&provider, "three")).await;
    assert_eq!(third.expect("fork").state, Running);
    assert_eq!(provider.list().await.expect("list").len(), 3);
    env.finish().await;
}

#[tokio::test]
async fn creates_while_launchers_die_make_each_sandbox_once() {
    let env = TestEnv::new().await;
    let provider = env.provider("ours").await;
    for round in 0..10 {
        let spec = spec(&provider, &format!("round{round}"));
        let (made, ()) = tokio::join!(provider.create(&spec), env.kill_launcher());
        let instances = provider.list().await.expect("list");
        let of_it = instances
            .iter()
            .filter(|one| one.sandbox_id.as_ref() == Some(&spec.sandbox_id));
        let found: Vec<_> = of_it.map(|one| &one.id).collect();
        match &made {
            Ok(made) => assert_eq!(found, [&made.id], "round {round}"),
            // Two launchers died in a row: the instance is found by its sandbox.
            Err(_) => assert!(found.len() <= 1, "round {round}: {found:?}"),
        }
    }
    env.finish().await;
}

#[tokio::test]
async fn a_killed_first_process_is_reported_with_its_reason() {
    let env = TestEnv::new().await;
    let provider = env.provider("ours").await;
    let made = provider.create(&spec(&provider, "one")).await;
    let id = made.expect("create").id;
    let parsed = id.parse().expect("an id");
    let info = env.engine.inspect(&parsed).await.expect("inspect");
    let pid = info.init.expect("a first process").pid;
    std::process::Command::new("kill")
        .args(["-KILL", &pid.to_string()])
        .status()
        .expect("kill");
    let is_gone = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ")
    };
    for _ in 0..6000 {
        if is_gone() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let found = provider.inspect(&id).await.expect("inspect");
    let found = found.expect("there");
    assert_eq!((found.state, found.reason.is_some()), (Stopped, true));
    assert_eq!(provider.start(&id).await.expect("start").state, Running);
    env.finish().await;
}

#[tokio::test]
async fn a_slow_call_times_out() {
    let env = TestEnv::new().await;
    let config = EmbeddedConfig {
        engine: env.config.clone(),
        timeouts: CallTimeouts {
            copy: Duration::from_millis(50),
            ..CallTimeouts::default()
        },
        installation: None,
        limits: sandyard_core::LimitPolicy::default(),
    };
    let provider = Embedded::connect(config).await.expect("connect");
    let (_never_written, archive) = tokio::io::duplex(1);
    let late = provider.import_template("late", Box::pin(archive)).await;
    assert_eq!(late.unwrap_err().kind, TimedOut);
    env.finish().await;
}

#[tokio::test]
async fn the_location_contains_the_id_of_the_data_directory() {
    let env = TestEnv::new().await;
    let one = env.provider("one").await;
    let two = env.provider("two").await;
    assert_eq!(one.info().location, two.info().location);
    let id = env.engine.hello().await.expect("hello").installation_id;
    assert_eq!(one.info().location, format!("embedded:{id}"));
    env.finish().await;
}

#[tokio::test]
async fn messages_contain_no_host_paths() {
    let env = TestEnv::new().await;
    let provider = env.provider("ours").await;
    let address = agent_client::address("../etc");
    let refused = provider.agent(&address).await.expect_err("no such id");
    assert_eq!(refused.kind, NotFound);
    let made = provider.create(&spec(&provider, "one")).await;
    let id = made.expect("create").id;
    let record = env.config.data_dir.join("sandboxes").join(&id);
    std::fs::write(record.join("state.json"), "{").expect("damage the record");
    let failed = provider.pause(&id).await.expect_err("a damaged record");
    let data = env.config.data_dir.display().to_string();
    assert!(!failed.to_string().contains(&data), "{failed}");
    let log = std::error::Error::source(&failed).expect("a cause");
    assert!(log.to_string().contains(&data), "{log}");
    provider.delete(&id).await.expect("it can still be deleted");
    env.finish().await;
}

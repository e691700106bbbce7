//! Volumes: folders that outlive sandboxes.

use sandyard_core::{ErrorKind, Role};
use sandyard_provider::{Mount, ProviderErrorKind, Verb};
use sandyard_service::{CreateRequest, ForkRequest, MountRequest};
use sandyard_store::model::{NewUser, UserPatch, VolumeStatus};

use crate::harness::{TestEnv, admin, alice, user};

const MINUTE_MS: i64 = 60_000;

fn with(mounts: &[(&str, &str)]) -> CreateRequest {
    let mount = |(volume, path): &(&str, &str)| MountRequest {
        volume: (*volume).to_owned(),
        path: (*path).to_owned(),
    };
    CreateRequest {
        mounts: mounts.iter().map(mount).collect(),
        ..CreateRequest::default()
    }
}

/// Names of alice's volumes.
async fn names(env: &TestEnv) -> Vec<String> {
    let volumes = env.service.volumes(&alice(), None).await;
    let volumes = volumes.expect("the service answers").into_iter();
    volumes.map(|volume| volume.name).collect()
}

/// Whether neither the store nor the provider has any volume.
async fn is_empty(env: &TestEnv) -> bool {
    let rows = env.store.volumes(None).await;
    rows.expect("the store answers").is_empty() && env.provider.volumes().is_empty()
}

#[tokio::test]
async fn a_volume_is_made_found_and_removed() {
    let env = TestEnv::new().await;
    let service = &env.service;
    let volume = service.create_volume(&alice(), "data").await.unwrap();
    assert_eq!(
        (volume.owner.as_str(), volume.size_bytes),
        ("alice", 1 << 30)
    );
    assert_eq!(volume.status, VolumeStatus::Ready);
    assert_eq!(volume.location, "fake:1");
    assert_eq!(env.provider.volumes()[0].id, volume.id);
    for name in ["data", &volume.id] {
        assert_eq!(service.volume(&alice(), name).await.unwrap(), volume);
    }
    service.open_volume(&alice(), "data").await.unwrap();
    let repeated = service.create_volume(&alice(), "data").await.unwrap_err();
    assert_eq!(repeated.kind, ErrorKind::Conflict);
    service.delete_volume(&alice(), "data").await.unwrap();
    assert!(is_empty(&env).await);
    let repeated_delete = service.delete_volume(&alice(), "data").await.unwrap_err();
    assert_eq!(repeated_delete.kind, ErrorKind::NotFound);
    service.create_volume(&alice(), "data").await.unwrap();
}

#[tokio::test]
async fn another_users_volume_is_not_found() {
    let env = TestEnv::new().await;
    let service = &env.service;
    let volume = service.create_volume(&alice(), "data").await.unwrap();
    let bob = user("bob");
    for name in ["data", &volume.id] {
        let seen = service.volume(&bob, name).await.unwrap_err();
        assert_eq!(seen.kind, ErrorKind::NotFound);
        let opened = service.open_volume(&bob, name).await.unwrap_err();
        assert_eq!(opened.kind, ErrorKind::NotFound);
        let deleted = service.delete_volume(&bob, name).await.unwrap_err();
        assert_eq!(deleted.kind, ErrorKind::NotFound);
        let mounted = service.create(&bob, with(&[(name, "/data")])).await;
        assert_eq!(mounted.unwrap_err().field, Some("mounts"));
    }
    assert_eq!(service.volumes(&bob, Some("alice")).await.unwrap(), []);
    let seen = service.volumes(&admin(), Some("alice")).await.unwrap();
    assert_eq!(seen, std::slice::from_ref(&volume));
    assert!(service.volume(&admin(), "data").await.is_err());
    // An admin's sandbox for a user has the user's volumes, and not the admin's.
    let for_alice = CreateRequest {
        owner: Some("alice".to_owned()),
        ..with(&[("data", "/data")])
    };
    let sandbox = service.create(&admin(), for_alice).await.unwrap();
    assert_eq!(sandbox.mounts[0].volume_id, volume.id);
    let own = service
        .create(&admin(), with(&[(&volume.id, "/data")]))
        .await;
    assert!(own.is_err());
    service.delete(&admin(), sandbox.id.as_str()).await.unwrap();
    service.delete_volume(&admin(), &volume.id).await.unwrap();
    assert!(is_empty(&env).await);
}

#[tokio::test]
async fn a_token_opens_one_volume() {
    let env = TestEnv::new().await;
    let service = &env.service;
    let one = service.create_volume(&alice(), "one").await.unwrap();
    let other = service.create_volume(&alice(), "other").await.unwrap();
    let opened = service.volume_opened_by(&one.id, &one.token).await;
    assert_eq!(opened.unwrap(), one);
    for token in [&other.token, "", "vol_", &one.token[1..]] {
        let refused = service.volume_opened_by(&one.id, token).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Unauthenticated, "{token}");
    }
    service.delete_volume(&alice(), "one").await.unwrap();
    let refused = service.volume_opened_by(&one.id, &one.token).await;
    assert_eq!(refused.unwrap_err().kind, ErrorKind::NotFound);
    assert!(!format!("{other:?}").contains(&other.token));
}

#[tokio::test]
async fn a_token_opens_nothing_while_the_owner_is_disabled() {
    let env = TestEnv::new().await;
    let service = &env.service;
    let volume = service.create_volume(&alice(), "data").await.unwrap();
    let open = async || service.volume_opened_by(&volume.id, &volume.token).await;
    assert_eq!(open().await.unwrap(), volume, "an owner without a row");
    let user = NewUser {
        name: "alice".to_owned(),
        password_hash: None,
        role: Role::User,
        max_sandboxes: None,
        created_ms: 0,
    };
    assert!(env.store.insert_user(&user).await.unwrap());
    for is_disabled in [false, true, false] {
        let patch = UserPatch {
            is_disabled: Some(is_disabled),
            ..UserPatch::default()
        };
        assert!(env.store.update_user("alice", &patch).await.unwrap());
        match open().await {
            Ok(opened) => assert!(opened == volume && !is_disabled),
            Err(error) => {
                assert_eq!(
                    (error.kind, is_disabled),
                    (ErrorKind::Unauthenticated, true)
                );
            }
        }
    }
}

#[tokio::test]
async fn odd_names_and_too_many_are_refused() {
    let env = TestEnv::new().await;
    let service = &env.service;
    let long = "a".repeat(129);
    for name in ["", "a b", "a/b", "ü", "a\0", "-a", ".a", "a:b", &long] {
        let refused = service.create_volume(&alice(), name).await.unwrap_err();
        assert_eq!(
            (refused.kind, refused.field),
            (ErrorKind::Invalid, Some("name"))
        );
    }
    for number in 0..100 {
        let name = format!("v{number}");
        service.create_volume(&alice(), &name).await.unwrap();
        service.create_volume(&admin(), &name).await.unwrap();
    }
    let refused = service.create_volume(&alice(), "more").await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::QuotaExceeded);
    service.create_volume(&admin(), "more").await.unwrap();
    service.create_volume(&user("bob"), "more").await.unwrap();
}

#[tokio::test]
async fn a_place_without_volumes_says_so() {
    let env = TestEnv::new().await;
    let provider = env.provider.clone();
    let unable = TestEnv {
        provider: provider.with_info(|info| info.capabilities.can_mount = false),
        ..env
    };
    let service = unable.second_server().await;
    let refused = service.create_volume(&alice(), "data").await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Unsupported);
    assert!(is_empty(&unable).await);
}

#[tokio::test]
async fn a_sandbox_has_its_volumes_and_so_has_its_fork() {
    let env = TestEnv::new().await;
    let service = &env.service;
    let one = service.create_volume(&alice(), "one").await.unwrap();
    let two = service.create_volume(&alice(), "two").await.unwrap();
    let sandbox = env
        .make(with(&[("one", "/mnt//one/"), (&two.id, "/mnt/two")]))
        .await;
    let expected = [(&one.id, "/mnt/one"), (&two.id, "/mnt/two")].map(|(volume, path)| Mount {
        volume: volume.clone(),
        path: path.to_owned(),
    });
    let mounts = async |sandbox: &sandyard_service::Sandbox| {
        let row = env.row(&sandbox.id).await;
        env.provider
            .spec_of(row.provider_id.as_deref().unwrap())
            .unwrap()
            .mounts
    };
    assert_eq!(mounts(&sandbox).await, expected);
    assert_eq!(env.row(&sandbox.id).await.mounts[1].name, "two");
    let fork = service
        .fork(&alice(), sandbox.id.as_str(), ForkRequest::default())
        .await
        .unwrap();
    assert_eq!(mounts(&fork).await, expected);
    service.delete(&alice(), sandbox.id.as_str()).await.unwrap();
    let refused = service.delete_volume(&alice(), "one").await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Conflict);
    assert!(refused.message.contains(fork.id.as_str()), "{refused}");
    service
        .pause(&alice(), fork.id.as_str(), None)
        .await
        .unwrap();
    assert!(service.delete_volume(&alice(), "one").await.is_err());
    service.delete(&alice(), fork.id.as_str()).await.unwrap();
    service.delete_volume(&alice(), "one").await.unwrap();
    assert_eq!(names(&env).await, ["two"]);
}

#[tokio::test]
async fn odd_mounts_are_refused_and_nothing_is_left() {
    let env = TestEnv::new().await;
    env.service.create_volume(&alice(), "data").await.unwrap();
    let many: Vec<String> = (0..17).map(|number| format!("/m{number}")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|path| ("data", path.as_str())).collect();
    for mounts in [
        &[("data", "mnt")][..],
        &[("data", "/")],
        &[("data", "/a/../b")],
        &[("data", "/proc/x")],
        &[("nothing", "/mnt")],
        &[("", "/mnt")],
        &[("data", "/mnt"), ("data", "/mnt/")],
        &[("data", "/mnt"), ("data", "/mnt/deeper")],
        &many,
    ] {
        let refused = env
            .service
            .create(&alice(), with(mounts))
            .await
            .unwrap_err();
        assert_eq!(
            (refused.kind, refused.field),
            (ErrorKind::Invalid, Some("mounts")),
            "{mounts:?}"
        );
    }
    assert_eq!(env.provider.count(Verb::Create), 0);
    env.service.delete_volume(&alice(), "data").await.unwrap();
}

#[tokio::test]
async fn a_key_means_the_same_volumes() {
    let env = TestEnv::new().await;
    env.service.create_volume(&alice(), "one").await.unwrap();
    env.service.create_volume(&alice(), "two").await.unwrap();
    let keyed = |mounts: &[(&str, &str)]| CreateRequest {
        idempotency_key: Some("once".to_owned()),
        ..with(mounts)
    };
    let first = env.make(keyed(&[("one", "/mnt")])).await;
    let same = env.make(keyed(&[("one", "/mnt/")])).await;
    assert_eq!(first.id, same.id);
    for other in [&[("two", "/mnt")][..], &[("one", "/other")], &[]] {
        let refused = env
            .service
            .create(&alice(), keyed(other))
            .await
            .unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Conflict);
    }
}

#[tokio::test]
async fn a_failed_create_leaves_nothing() {
    let env = TestEnv::new().await;
    for is_made in [false, true] {
        match is_made {
            false => env
                .provider
                .fail_next(Verb::CreateVolume, ProviderErrorKind::NoCapacity),
            true => env
                .provider
                .lose_next_answer(Verb::CreateVolume, ProviderErrorKind::TimedOut),
        }
        assert!(env.service.create_volume(&alice(), "data").await.is_err());
        assert!(is_empty(&env).await);
    }
    env.service.create_volume(&alice(), "data").await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_undone_at_once_is_undone_later() {
    let env = TestEnv::new().await;
    env.provider
        .lose_next_answer(Verb::CreateVolume, ProviderErrorKind::Unavailable);
    env.provider
        .fail_next(Verb::DeleteVolume, ProviderErrorKind::Unavailable);
    assert!(env.service.create_volume(&alice(), "data").await.is_err());
    assert_eq!(env.provider.volumes().len(), 1);
    assert_eq!(names(&env).await, [""; 0]);
    env.pass(MINUTE_MS).await;
    assert!(is_empty(&env).await);
}

#[tokio::test]
async fn a_server_that_dies_at_any_moment_leaves_what_another_finishes() {
    for moment in 0..4 {
        let env = TestEnv::new().await;
        let volume = env.service.create_volume(&alice(), "kept").await.unwrap();
        let (verb, is_before) = match moment {
            0 => (Verb::CreateVolume, true),
            1 => (Verb::CreateVolume, false),
            2 => (Verb::DeleteVolume, true),
            _ => (Verb::DeleteVolume, false),
        };
        let gate = match is_before {
            true => env.provider.hold(verb),
            false => env.provider.hold_answer(verb),
        };
        let service = env.service.clone();
        // The runtime goes, and with it all that the server was at.
        let dying = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let work = tokio::spawn(async move {
                    match verb {
                        Verb::CreateVolume => drop(service.create_volume(&alice(), "new").await),
                        _ => drop(service.delete_volume(&alice(), "kept").await),
                    }
                });
                gate.reached_by(1).await;
                work.abort();
            });
            runtime.shutdown_timeout(std::time::Duration::from_secs(120));
            gate
        });
        drop(
            tokio::task::spawn_blocking(|| dying.join().unwrap())
                .await
                .unwrap(),
        );
        let other = env.second_server().await;
        env.clock.advance_ms(5 * MINUTE_MS);
        // A lease of the dead one may be in the way of the first round.
        other.sweep().await.unwrap();
        let volumes = other.volumes(&alice(), None).await.unwrap();
        match verb {
            Verb::CreateVolume => assert_eq!(volumes, std::slice::from_ref(&volume), "{moment}"),
            _ => assert_eq!(volumes, [], "{moment}"),
        }
        let rows = env.store.volumes(None).await.unwrap();
        assert_eq!(rows.len(), volumes.len(), "{moment}");
        assert_eq!(env.provider.volumes().len(), volumes.len(), "{moment}");
    }
}

#[tokio::test]
async fn a_volume_being_made_is_left_alone() {
    let env = TestEnv::new().await;
    let gate = env.provider.hold(Verb::CreateVolume);
    let service = env.service.clone();
    let making = tokio::spawn(async move { service.create_volume(&alice(), "data").await });
    gate.reached_by(1).await;
    assert!(env.service.volume(&alice(), "data").await.is_err());
    let early = env
        .service
        .delete_volume(&alice(), "data")
        .await
        .unwrap_err();
    assert_eq!(early.kind, ErrorKind::NotFound);
    let early = env
        .service
        .create(&alice(), with(&[("data", "/mnt")]))
        .await;
    assert_eq!(early.unwrap_err().field, Some("mounts"));
    env.pass(MINUTE_MS).await;
    gate.release();
    making.await.unwrap().unwrap();
    assert_eq!(names(&env).await, ["data"]);
}

#[tokio::test]
async fn a_removal_that_failed_can_be_asked_for_again() {
    let env = TestEnv::new().await;
    env.service.create_volume(&alice(), "data").await.unwrap();
    env.provider
        .fail_next(Verb::DeleteVolume, ProviderErrorKind::Failed);
    assert!(env.service.delete_volume(&alice(), "data").await.is_err());
    assert_eq!(names(&env).await, [""; 0]);
    let late = env
        .service
        .create(&alice(), with(&[("data", "/mnt")]))
        .await;
    assert!(late.is_err());
    env.service.delete_volume(&alice(), "data").await.unwrap();
    assert!(is_empty(&env).await);
}

#[tokio::test]
async fn a_volume_goes_or_is_given_to_a_sandbox_never_both() {
    for _ in 0..10 {
        let env = TestEnv::new().await;
        let other = env.second_server().await;
        env.service.create_volume(&alice(), "data").await.unwrap();
        let making =
            tokio::spawn(async move { other.create(&alice(), with(&[("data", "/mnt")])).await });
        let removal = env.service.delete_volume(&alice(), "data").await;
        match (making.await.unwrap(), removal) {
            (Ok(_), Err(error)) => {
                assert_eq!(error.kind, ErrorKind::Conflict);
                assert_eq!(names(&env).await, ["data"]);
            }
            (Err(error), Ok(())) => {
                assert_eq!(error.field, Some("mounts"));
                assert!(is_empty(&env).await);
                assert!(env.provider.instances().is_empty());
            }
            (made, removed) => panic!("{made:?} and {removed:?}"),
        }
    }
}

//! Volumes: folders that outlive instances.

use super::subject::{CheckError, CheckResult, Subject, fails, printed, same, works};
use crate::ProviderErrorKind::{self, Conflict, Invalid, NotFound, Unsupported};
use crate::volumes::VOLUME_PATH;
use crate::volumes::VolumeSpec;

pub(super) async fn a_missing_volume_is_not_found(subject: &Subject) -> CheckResult {
    let provider = &subject.provider;
    let existing = subject.volume().await?;
    let mounts = [(existing.as_str(), "/mnt/a"), ("nosuchvolume", "/mnt/b")];
    let spec = subject.spec_with(&mounts);
    fails("create", NotFound, provider.create(&spec).await)?;
    subject.lists(&spec.sandbox_id, &[]).await?;
    works("delete", provider.delete_volume("nosuchvolume").await)?;
    match provider.open_volume("nosuchvolume").await {
        // The provider has no agents.
        Err(error) if error.kind == Unsupported => Ok(()),
        opened => fails("open", NotFound, opened),
    }
}

pub(super) async fn bad_mounts_and_volumes_are_invalid(subject: &Subject) -> CheckResult {
    let provider = &subject.provider;
    let id = subject.volume().await?;
    for paths in [
        &["relative"][..],
        &[""],
        &["/"],
        &["/a/../b"],
        &["/proc/sys"],
        &["/sys"],
        &["/dev/x"],
        &["/a", "/a"],
        &["/a", "/a/b"],
        &["/a/b", "/a/"],
    ] {
        let mounts: Vec<_> = paths.iter().map(|path| (id.as_str(), *path)).collect();
        let spec = subject.spec_with(&mounts);
        let made = provider.create(&spec).await;
        fails(&format!("create with {paths:?}"), Invalid, made)?;
        subject.lists(&spec.sandbox_id, &[]).await?;
    }
    for (id, size_bytes) in [("", 1 << 25), ("..", 1 << 25), ("a/b", 1 << 25), ("a", 0)] {
        let id = id.to_owned();
        let spec = VolumeSpec { id, size_bytes };
        let made = provider.create_volume(&spec).await;
        fails("create_volume", Invalid, made)?;
    }
    Ok(())
}

pub(super) async fn a_volume_is_deleted_when_no_instance_mounts_it(
    subject: &Subject,
) -> CheckResult {
    let provider = &subject.provider;
    let id = subject.volume().await?;
    let spec = subject.spec_with(&[(&id, "/mnt/data")]);
    let made = works("create", provider.create(&spec).await)?;
    fails("delete", Conflict, provider.delete_volume(&id).await)?;
    if provider.info().capabilities.can_stop {
        works("stop", provider.stop(&made.id).await)?;
        let deleted = provider.delete_volume(&id).await;
        fails(
            "delete while a stopped instance mounts it",
            Conflict,
            deleted,
        )?;
    }
    works("delete it", provider.delete(&made.id).await)?;
    for _ in 0..2 {
        works("delete", provider.delete_volume(&id).await)?;
    }
    fails("create", NotFound, provider.create(&spec).await)
}

pub(super) async fn a_volume_is_shared_and_outlives_its_instances(
    subject: &Subject,
) -> CheckResult {
    let provider = &subject.provider;
    let id = subject.volume().await?;
    let one = subject.spec_with(&[(&id, "/mnt/data")]);
    let two = subject.spec_with(&[(&id, "/home/user/data")]);
    let (one, two) = tokio::join!(provider.create(&one), provider.create(&two));
    let (one, two) = (works("create", one)?.id, works("create", two)?.id);
    let output = subject
        .sh(&one, "ls -A /mnt/data; echo 1 > /mnt/data/x")
        .await?;
    same("in a new volume", output.as_str(), "")?;
    let output = subject.sh(&two, "cat ~/data/x; echo 2 > ~/data/x").await?;
    same("in the second instance", output.as_str(), "1")?;
    let output = subject.sh(&one, "cat /mnt/data/x").await?;
    same("in the first instance", output.as_str(), "2")?;
    for id in [&one, &two] {
        works("delete", provider.delete(id).await)?;
    }
    // Creating it again changes nothing.
    let size_bytes = 32 << 20;
    let second = VolumeSpec { id, size_bytes };
    works("create_volume", provider.create_volume(&second).await)?;
    let spec = subject.spec_with(&[(&second.id, "/data")]);
    let made = works("create", provider.create(&spec).await)?;
    let output = subject.sh(&made.id, "cat /data/x").await?;
    same("in a later instance", output.as_str(), "2")
}

pub(super) async fn stops_and_forks_keep_a_volume(subject: &Subject) -> CheckResult {
    let provider = &subject.provider;
    let id = subject.volume().await?;
    let spec = subject.spec_with(&[(&id, "/data")]);
    let made = works("create", provider.create(&spec).await)?.id;
    subject.sh(&made, "echo 1 > /data/x").await?;
    works("stop", provider.stop(&made).await)?;
    works("start", provider.start(&made).await)?;
    let output = subject.sh(&made, "cat /data/x").await?;
    same("after a stop", output.as_str(), "1")?;
    // A fork has the volumes of its source, whatever its spec.
    let fork = works("fork", provider.fork(&made, &subject.spec()).await)?.id;
    let output = subject.sh(&fork, "cat /data/x; echo 2 > /data/x").await?;
    same("in a fork", output.as_str(), "1")?;
    let output = subject.sh(&made, "cat /data/x").await?;
    same("shared with the fork", output.as_str(), "2")
}

pub(super) async fn files_are_accessible_without_instances(subject: &Subject) -> CheckResult {
    let provider = &subject.provider;
    let id = subject.volume().await?;
    let before = works("list", provider.list().await)?.len();
    let (agent, other) = tokio::join!(provider.open_volume(&id), provider.open_volume(&id));
    let agent = match agent {
        Err(error) if error.kind == ProviderErrorKind::Unsupported => {
            return Err(CheckError::NotApplicable);
        }
        other => works("open", other)?,
    };
    let other = works("open twice", other)?;
    let line = format!("id -u; cd {VOLUME_PATH} && ls -A && echo 1 > x");
    same("as root", printed(&agent, &line).await?.as_str(), "0")?;
    let line = format!("cat {VOLUME_PATH}/x");
    same("shared", printed(&other, &line).await?.as_str(), "1")?;
    let after = works("list", provider.list().await)?.len();
    same("listed", after, before)?;
    // While an instance mounts it.
    let spec = subject.spec_with(&[(&id, "/data")]);
    let made = works("create", provider.create(&spec).await)?.id;
    let output = subject.sh(&made, "cat /data/x; echo 2 > /data/y").await?;
    same("in an instance", output.as_str(), "1")?;
    let line = format!("cat {VOLUME_PATH}/y");
    same("and back", printed(&agent, &line).await?.as_str(), "2")?;
    works("delete it", provider.delete(&made).await)?;
    same("after", printed(&agent, &line).await?.as_str(), "2")?;
    // An open volume can be deleted.
    works("delete", provider.delete_volume(&id).await)?;
    fails("open", NotFound, provider.open_volume(&id).await)
}

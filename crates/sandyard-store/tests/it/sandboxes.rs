//! What is promised of sandboxes.

use std::collections::BTreeMap;

use sandyard_core::SandboxStatus;
use sandyard_store::StoreError;
use sandyard_store::model::{
    ClaimOutcome, Expiry, Idempotency, InsertOutcome, Operation, SandboxFilter, SandboxPatch,
    TimeoutAction, TimerPlan,
};

use crate::engines::Home;
use crate::sample::{MAKER, delete, event, finish, id, insert, insert_running, new, sandbox};

crate::on_every_engine![
    a_sandbox_is_read_back_whole,
    a_key_repeats_one_create_and_no_other,
    an_alias_is_free_again_after_deletion,
    the_quota_counts_all_but_the_deleted,
    a_sandbox_is_found_by_its_three_names,
    pages_follow_each_other_without_gap,
    filters_leave_out_the_rest,
    metadata_is_matched_exactly,
    a_claim_is_held_until_its_end,
    only_the_holder_commits,
    an_alias_of_another_sandbox_is_refused,
    a_patch_changes_what_it_names_only,
    claims_of_dead_nodes_only_are_broken,
    activity_never_moves_back,
    the_deleted_are_forgotten_after_a_while,
];

async fn a_sandbox_is_read_back_whole(home: Home) {
    let store = home.open().await;
    let expected = sandbox("one", "alice", 1000);
    insert(&store, expected.clone()).await;
    let found = store.sandbox(&expected.id).await.unwrap().unwrap();
    assert!(found == expected, "{found:?}");
    assert_eq!(store.sandbox(&id("other")).await.unwrap(), None);
    let output = format!("{found:?} {:?}", new(expected));
    assert!(!output.contains("SECRET") && !output.contains("token-of-agent"));
}

async fn a_key_repeats_one_create_and_no_other(home: Home) {
    let store = home.open().await;
    let create = async |name: &str, owner: &str, fingerprint: &str| {
        let idempotency = Idempotency {
            key: "key".to_owned(),
            fingerprint: fingerprint.to_owned(),
        };
        let sandbox = new(sandbox(name, owner, 1000));
        let created = event(name, owner, "created", 1000);
        store
            .insert_sandbox(
                &sandbox,
                Some(&idempotency),
                Some(1),
                &created,
                TimerPlan::Keep,
            )
            .await
            .unwrap()
    };
    assert_eq!(create("one", "alice", "f").await, InsertOutcome::Inserted);
    // A repetition is one even when the quota is full.
    assert_eq!(
        create("two", "alice", "f").await,
        InsertOutcome::Repeated(id("one"))
    );
    assert_eq!(create("two", "alice", "g").await, InsertOutcome::KeyReused);
    assert_eq!(create("two", "bob", "g").await, InsertOutcome::Inserted);
}

async fn an_alias_is_free_again_after_deletion(home: Home) {
    let store = home.open().await;
    let create = async |name: &str, owner: &str| {
        let mut sandbox = sandbox(name, owner, 1000);
        sandbox.alias = Some("web".to_owned());
        let created = event(name, owner, "created", 1000);
        let outcome = store
            .insert_sandbox(&new(sandbox), None, None, &created, TimerPlan::Keep)
            .await
            .unwrap();
        if outcome == InsertOutcome::Inserted {
            finish(&store, &id(name), SandboxStatus::Running).await;
        }
        outcome
    };
    assert_eq!(create("one", "alice").await, InsertOutcome::Inserted);
    assert_eq!(create("two", "alice").await, InsertOutcome::AliasTaken);
    assert_eq!(create("bobs", "bob").await, InsertOutcome::Inserted);
    delete(&store, &id("one")).await;
    assert_eq!(create("two", "alice").await, InsertOutcome::Inserted);
    delete(&store, &id("two")).await;
    assert_eq!(create("three", "alice").await, InsertOutcome::Inserted);
}

async fn the_quota_counts_all_but_the_deleted(home: Home) {
    let store = home.open().await;
    insert_running(&store, sandbox("one", "alice", 1000)).await;
    insert(&store, sandbox("two", "alice", 1000)).await;
    insert(&store, sandbox("bobs", "bob", 1000)).await;
    let create = async || {
        let created = event("three", "alice", "created", 1000);
        let sandbox = new(sandbox("three", "alice", 1000));
        store
            .insert_sandbox(&sandbox, None, Some(2), &created, TimerPlan::Keep)
            .await
            .unwrap()
    };
    assert_eq!(create().await, InsertOutcome::OverQuota { count: 2 });
    delete(&store, &id("one")).await;
    assert_eq!(create().await, InsertOutcome::Inserted);
    let mut counts = store.count_sandboxes(Some("here")).await.unwrap();
    counts.sort_by_key(|(status, _)| status.as_str());
    assert_eq!(
        counts,
        [(SandboxStatus::Creating, 3), (SandboxStatus::Deleted, 1)]
    );
    assert_eq!(store.count_sandboxes(Some("there")).await.unwrap(), []);
}

async fn a_sandbox_is_found_by_its_three_names(home: Home) {
    let store = home.open().await;
    let mut one = sandbox("one", "alice", 1000);
    one.alias = Some("web".to_owned());
    // An alias that is another's id: the id goes first.
    let mut two = sandbox("two", "alice", 2000);
    two.alias = Some("one".to_owned());
    let mut bobs = sandbox("bobs", "bob", 3000);
    bobs.alias = Some("web".to_owned());
    for sandbox in [one, two, bobs] {
        insert_running(&store, sandbox).await;
    }
    let find = async |name: &str, owner: Option<&str>| {
        let found = store.find_sandbox(name, owner).await.unwrap();
        found.map(|sandbox| sandbox.id.to_string())
    };
    assert_eq!(find("one", None).await.as_deref(), Some("one"));
    assert_eq!(find("ptwo", Some("alice")).await.as_deref(), Some("two"));
    assert_eq!(find("web", Some("alice")).await.as_deref(), Some("one"));
    assert_eq!(find("web", Some("bob")).await.as_deref(), Some("bobs"));
    assert_eq!(
        find("web", None).await.as_deref(),
        Some("bobs"),
        "the newest"
    );
    assert_eq!(store.count_alias("web").await.unwrap(), 2);
    assert_eq!(store.count_alias("nobody's").await.unwrap(), 0);
    assert_eq!(find("one", Some("bob")).await, None, "not bob's");
    assert_eq!(find("x' OR '1'='1", None).await, None);
    assert_eq!(find("nul\0", None).await, None);
    delete(&store, &id("one")).await;
    assert_eq!(find("web", Some("alice")).await, None);
    assert_eq!(find("pone", Some("alice")).await, None);
    assert_eq!(find("one", Some("alice")).await.as_deref(), Some("one"));
}

async fn pages_follow_each_other_without_gap(home: Home) {
    let store = home.open().await;
    for number in 0..7 {
        // Some of the same millisecond.
        insert(
            &store,
            sandbox(&format!("s{number}"), "alice", 1000 + number / 3),
        )
        .await;
    }
    let mut names = Vec::new();
    let mut filter = SandboxFilter {
        owner: Some("alice".to_owned()),
        limit: 2,
        ..SandboxFilter::default()
    };
    loop {
        let page = store.list_sandboxes(&filter).await.unwrap();
        names.extend(page.items.iter().map(|sandbox| sandbox.id.to_string()));
        filter.cursor = page.next;
        if filter.cursor.is_none() {
            break;
        }
        assert!(names.len() < 8, "the list does not end");
    }
    assert_eq!(names, ["s6", "s5", "s4", "s3", "s2", "s1", "s0"]);
    names.clear();
    filter.is_oldest_first = true;
    loop {
        let page = store.list_sandboxes(&filter).await.unwrap();
        names.extend(page.items.iter().map(|sandbox| sandbox.id.to_string()));
        assert_eq!(store.count_matching(&filter).await.unwrap(), 7);
        filter.cursor = page.next;
        if filter.cursor.is_none() {
            break;
        }
        assert!(names.len() < 8, "the list does not end");
    }
    assert_eq!(names, ["s0", "s1", "s2", "s3", "s4", "s5", "s6"]);
    for cursor in ["", "x", "1", "x-s1", "-"] {
        filter.cursor = Some(cursor.to_owned());
        let listed = store.list_sandboxes(&filter).await;
        assert!(
            matches!(listed, Err(StoreError::BadCursor { .. })),
            "{cursor}"
        );
    }
}

async fn filters_leave_out_the_rest(home: Home) {
    let store = home.open().await;
    insert_running(&store, sandbox("runs", "alice", 1)).await;
    insert(&store, sandbox("made", "alice", 2)).await;
    let mut remote = sandbox("elsewhere", "bob", 3);
    remote.location = "there".to_owned();
    remote.project = None;
    remote.stopped_ms = Some(50);
    remote.template = "other".to_owned();
    insert_running(&store, remote).await;
    insert_running(&store, sandbox("gone", "alice", 4)).await;
    delete(&store, &id("gone")).await;
    let list = async |filter: SandboxFilter| -> Vec<String> {
        let page = store.list_sandboxes(&filter).await.unwrap();
        page.items
            .iter()
            .map(|sandbox| sandbox.id.to_string())
            .collect()
    };
    let all = SandboxFilter::default;
    assert_eq!(list(all()).await, ["elsewhere", "made", "runs"]);
    let statuses = vec![SandboxStatus::Creating, SandboxStatus::Deleted];
    assert_eq!(
        list(SandboxFilter { statuses, ..all() }).await,
        ["gone", "made"]
    );
    let owner = Some("bob".to_owned());
    assert_eq!(list(SandboxFilter { owner, ..all() }).await, ["elsewhere"]);
    let project = Some("proj'ekt \"1\" ü".to_owned());
    assert_eq!(
        list(SandboxFilter { project, ..all() }).await,
        ["made", "runs"]
    );
    let location = Some("here".to_owned());
    assert_eq!(
        list(SandboxFilter { location, ..all() }).await,
        ["made", "runs"]
    );
    let template = Some("other".to_owned());
    let of_template = SandboxFilter { template, ..all() };
    assert_eq!(store.count_matching(&of_template).await.unwrap(), 1);
    assert_eq!(list(of_template).await, ["elsewhere"]);
    let created_from_ms = Some(2);
    let later = SandboxFilter {
        created_from_ms,
        ..all()
    };
    assert_eq!(list(later).await, ["elsewhere", "made"]);
    let stopped_before_ms = Some(51);
    assert_eq!(
        list(SandboxFilter {
            stopped_before_ms,
            ..all()
        })
        .await,
        ["elsewhere"]
    );
    for (claim_ended_before_ms, expected) in [(1002, &[][..]), (1003, &["made"][..])] {
        let claim_ended_before_ms = Some(claim_ended_before_ms);
        assert_eq!(
            list(SandboxFilter {
                claim_ended_before_ms,
                ..all()
            })
            .await,
            expected
        );
    }
}

async fn metadata_is_matched_exactly(home: Home) {
    let store = home.open().await;
    insert(&store, sandbox("one", "alice", 1)).await;
    let matches = async |pairs: &[(&str, &str)]| {
        let metadata: BTreeMap<_, _> = pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let filter = SandboxFilter {
            metadata,
            ..SandboxFilter::default()
        };
        !store
            .list_sandboxes(&filter)
            .await
            .unwrap()
            .items
            .is_empty()
    };
    assert!(matches(&[("team", "red")]).await);
    assert!(matches(&[("team", "red"), ("q\"uote", "va\\l:\"ue")]).await);
    for (name, value) in [
        ("team", "re"),
        ("eam", "red"),
        ("Team", "red"),
        ("team", "RED"),
        ("team", "%"),
        ("", ""),
        ("uote", "va"),
        // A part of the name `q"uote` and its value as they are written down.
        ("uote", "va\\l:\"ue"),
    ] {
        assert!(!matches(&[(name, value)]).await, "{name}={value}");
    }
    assert!(!matches(&[("team", "red"), ("more", "x")]).await);
}

async fn a_claim_is_held_until_its_end(home: Home) {
    let store = home.open().await;
    let one = insert_running(&store, sandbox("one", "alice", 1000))
        .await
        .id;
    let claim = async |holder: &str, now_ms: i64| {
        store
            .claim_sandbox(&one, Operation::Pause, holder, now_ms, now_ms + 100)
            .await
            .unwrap()
    };
    let ClaimOutcome::Claimed(sandbox) = claim("a/1", 1000).await else {
        panic!("nobody has it");
    };
    assert_eq!(
        sandbox.claim,
        Some((Operation::Pause, "a/1".to_owned(), 1100))
    );
    assert_eq!(sandbox.version, 2, "a claim is no commit");
    let held = ClaimOutcome::Busy {
        operation: Operation::Pause,
        holder: "a/1".to_owned(),
        until_ms: 1100,
    };
    assert_eq!(claim("b/1", 1099).await, held);
    assert_eq!(
        claim("a/1", 1099).await,
        held,
        "each operation has its own holder"
    );
    assert!(store.extend_claim(&one, "a/1", 1200).await.unwrap());
    assert!(matches!(
        claim("b/1", 1199).await,
        ClaimOutcome::Busy { until_ms: 1200, .. }
    ));
    assert!(matches!(claim("b/1", 1200).await, ClaimOutcome::Claimed(_)));
    assert!(!store.extend_claim(&one, "a/1", 9999).await.unwrap());
    store.release_claim(&one, "a/1").await.unwrap();
    assert!(matches!(
        claim("c/1", 1201).await,
        ClaimOutcome::Busy { .. }
    ));
    store.release_claim(&one, "b/1").await.unwrap();
    assert!(matches!(claim("c/1", 1201).await, ClaimOutcome::Claimed(_)));
    let missing = store
        .claim_sandbox(&id("none"), Operation::Wake, "a", 0, 1)
        .await
        .unwrap();
    assert_eq!(missing, ClaimOutcome::Missing);
}

async fn only_the_holder_commits(home: Home) {
    let store = home.open().await;
    insert(&store, sandbox("one", "alice", 1000)).await;
    let one = id("one");
    let running = SandboxPatch {
        status: Some(SandboxStatus::Running),
        ..SandboxPatch::default()
    };
    let events = [event("one", "alice", "running", 1001)];
    let timer = TimerPlan::Set { due_ms: 2000 };
    let refused = store
        .commit_sandbox(&one, "node-b/1", &running, &events, timer, true)
        .await
        .unwrap();
    assert_eq!(refused, None);
    let untouched = store.sandbox(&one).await.unwrap().unwrap();
    assert_eq!(
        (untouched.status, untouched.version),
        (SandboxStatus::Creating, 1)
    );
    let committed = store
        .commit_sandbox(&one, MAKER, &running, &events, timer, false)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (committed.status, committed.version),
        (SandboxStatus::Running, 2)
    );
    assert!(committed.claim.is_some());
    let last = store
        .commit_sandbox(
            &one,
            MAKER,
            &SandboxPatch::default(),
            &[],
            TimerPlan::Clear,
            true,
        )
        .await
        .unwrap()
        .unwrap();
    assert_eq!((last.version, last.claim.clone()), (3, None));
    assert_eq!(store.sandbox(&one).await.unwrap(), Some(last));
}

async fn an_alias_of_another_sandbox_is_refused(home: Home) {
    let store = home.open().await;
    for (name, owner, alias) in [
        ("one", "alice", "web"),
        ("two", "alice", "db"),
        ("bobs", "bob", "api"),
    ] {
        let mut sandbox = sandbox(name, owner, 1000);
        sandbox.alias = Some(alias.to_owned());
        insert(&store, sandbox).await;
    }
    let rename = async |alias: Option<&str>| {
        let patch = SandboxPatch {
            alias: Some(alias.map(str::to_owned)),
            ..SandboxPatch::default()
        };
        let two = id("two");
        store
            .commit_sandbox(&two, MAKER, &patch, &[], TimerPlan::Keep, false)
            .await
    };
    assert!(matches!(
        rename(Some("web")).await,
        Err(StoreError::AliasTaken)
    ));
    for alias in [Some("api"), Some("db"), None] {
        let renamed = rename(alias).await.unwrap().unwrap();
        assert_eq!(renamed.alias.as_deref(), alias);
    }
}

async fn a_patch_changes_what_it_names_only(home: Home) {
    let store = home.open().await;
    let mut expected = sandbox("one", "alice", 1000);
    insert(&store, expected.clone()).await;
    let one = id("one");
    let commit = async |patch: SandboxPatch| {
        store
            .commit_sandbox(&one, MAKER, &patch, &[], TimerPlan::Keep, false)
            .await
            .unwrap()
            .unwrap()
    };
    let patch = SandboxPatch {
        status: Some(SandboxStatus::Paused),
        reason: Some(None),
        provider: Some("docker".to_owned()),
        location: Some("docker:7".to_owned()),
        template: Some("python".to_owned()),
        provider_id: Some("engine7".to_owned()),
        limits: Some(sandyard_core::Limits::LEAST),
        limitations: Some(Vec::new()),
        started_ms: Some(1100),
        stopped_ms: Some(Some(1200)),
        last_activity_ms: Some(1300),
        timeout_s: Some(60),
        timeout_action: Some(TimeoutAction::Delete),
        expiry: Some(Expiry::Fixed),
        fixed_end_ms: Some(Some(9000)),
        is_auto_resumed: Some(false),
        deleted_ms: Some(9001),
        alias: Some(Some("renamed".to_owned())),
        metadata: Some(BTreeMap::new()),
        network: Some(None),
        public_ports: Some(vec![1]),
        forget_secrets: true,
    };
    expected.status = SandboxStatus::Paused;
    expected.reason = None;
    expected.provider = "docker".to_owned();
    expected.location = "docker:7".to_owned();
    expected.template = "python".to_owned();
    expected.provider_id = Some("engine7".to_owned());
    expected.limits = sandyard_core::Limits::LEAST;
    expected.limitations.clear();
    expected.started_ms = Some(1100);
    expected.stopped_ms = Some(1200);
    expected.last_activity_ms = 1300;
    expected.timeout_s = 60;
    expected.timeout_action = TimeoutAction::Delete;
    expected.expiry = Expiry::Fixed;
    expected.fixed_end_ms = Some(9000);
    expected.is_auto_resumed = false;
    expected.deleted_ms = Some(9001);
    expected.alias = Some("renamed".to_owned());
    expected.metadata.clear();
    expected.network = None;
    expected.public_ports = vec![1];
    expected.env.clear();
    expected.secrets.clear();
    expected.access_token.clear();
    expected.version = 2;
    let patched = commit(patch).await;
    assert!(patched == expected, "{patched:?}");
    let patch = SandboxPatch {
        stopped_ms: Some(None),
        last_activity_ms: Some(1299),
        reason: Some(Some("why".to_owned())),
        ..SandboxPatch::default()
    };
    expected.stopped_ms = None;
    expected.reason = Some("why".to_owned());
    expected.version = 3;
    assert!(
        commit(patch).await == expected,
        "activity does not move back"
    );
}

async fn claims_of_dead_nodes_only_are_broken(home: Home) {
    let store = home.open().await;
    let holders = [
        ("s0", "node-1"),
        ("s1", "node-1/7"),
        ("s2", "node-10/7"),
        ("s3", "node-1x"),
        ("s4", "NODE-1/7"),
        ("s5", "node_1/7"),
        ("s6", "ünode/7"),
        ("s7", "ünod/7"),
    ];
    for (name, holder) in holders {
        let one = insert_running(&store, sandbox(name, "alice", 1)).await.id;
        let claim = store
            .claim_sandbox(&one, Operation::Wake, holder, 1, 99)
            .await;
        assert!(matches!(claim, Ok(ClaimOutcome::Claimed(_))));
    }
    insert_running(&store, sandbox("free", "alice", 1)).await;
    let dead = ["node-1".to_owned(), "ünode".to_owned(), "node%".to_owned()];
    let broken = |mut ids: Vec<sandyard_core::SandboxId>| -> Vec<String> {
        ids.sort();
        ids.iter().map(ToString::to_string).collect()
    };
    assert_eq!(broken(store.break_claims(&[]).await.unwrap()), [""; 0]);
    let first = store.break_claims(&dead).await.unwrap();
    assert_eq!(broken(first), ["s0", "s1", "s6"]);
    assert_eq!(store.sandbox(&id("s1")).await.unwrap().unwrap().claim, None);
    assert!(
        store
            .sandbox(&id("s2"))
            .await
            .unwrap()
            .unwrap()
            .claim
            .is_some()
    );
    assert_eq!(broken(store.break_claims(&dead).await.unwrap()), [""; 0]);
}

async fn activity_never_moves_back(home: Home) {
    let store = home.open().await;
    for name in ["one", "two"] {
        insert(&store, sandbox(name, "alice", 1000)).await;
    }
    store.touch_sandboxes(&[]).await.unwrap();
    // More than fits into one statement; most of them are not there.
    let mut used: Vec<_> = (0..2500)
        .map(|number| (id(&format!("x{number}")), 5))
        .collect();
    used.extend([(id("one"), 2000), (id("one"), 1500), (id("two"), 999)]);
    store.touch_sandboxes(&used).await.unwrap();
    let one = store.sandbox(&id("one")).await.unwrap().unwrap();
    assert_eq!((one.last_activity_ms, one.version), (2000, 1));
    let two = store.sandbox(&id("two")).await.unwrap().unwrap();
    assert_eq!(two.last_activity_ms, 1000);
}

async fn the_deleted_are_forgotten_after_a_while(home: Home) {
    let store = home.open().await;
    for name in ["gone", "kept"] {
        insert_running(&store, sandbox(name, "alice", 1)).await;
    }
    delete(&store, &id("gone")).await;
    assert_eq!(store.purge_deleted(5000).await.unwrap(), 0);
    assert_eq!(store.purge_deleted(5001).await.unwrap(), 1);
    assert_eq!(store.sandbox(&id("gone")).await.unwrap(), None);
    assert!(store.sandbox(&id("kept")).await.unwrap().is_some());
    let filter = sandyard_store::model::EventFilter {
        sandbox_id: Some(id("gone")),
        ..Default::default()
    };
    assert_eq!(
        store.events(&filter).await.unwrap().len(),
        1,
        "its history stays"
    );
}

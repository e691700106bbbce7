//! What is promised of events and the audit.

use std::collections::BTreeMap;

use sandyard_store::model::{EventFilter, NewAuditEntry, NewEvent};
use serde_json::json;

use crate::engines::Home;
use crate::sample::{event, id};

crate::on_every_engine![
    events_are_listed_in_their_order,
    events_are_filtered_by_kind_and_data,
    many_events_are_added_at_once,
    numbers_are_never_given_twice,
    however_much_is_old_is_forgotten,
    the_audit_is_listed_backwards,
];

async fn events_are_listed_in_their_order(home: Home) {
    let store = home.open().await;
    let added = [
        event("one", "alice", "created", 10),
        event("two", "bob", "created", 11),
        event("one", "alice", "paused", 12),
    ];
    assert_eq!(store.add_events(&[]).await.unwrap(), 0);
    let last = store.add_events(&added).await.unwrap();
    let all = store.events(&EventFilter::default()).await.unwrap();
    assert_eq!(
        all.iter().map(|event| event.seq).collect::<Vec<_>>(),
        [last - 2, last - 1, last]
    );
    assert_eq!(all[0].data, added[0].data);
    assert_eq!((all[0].kind.as_str(), all[0].at_ms), ("created", 10));
    let kinds = async |filter: EventFilter| -> Vec<String> {
        let events = store.events(&filter).await.unwrap();
        events
            .into_iter()
            .map(|event| format!("{} {}", event.sandbox_id, event.kind))
            .collect()
    };
    let any = EventFilter::default;
    let sandbox_id = Some(id("one"));
    assert_eq!(
        kinds(EventFilter {
            sandbox_id,
            ..any()
        })
        .await,
        ["one created", "one paused"]
    );
    let owner = Some("bob".to_owned());
    assert_eq!(kinds(EventFilter { owner, ..any() }).await, ["two created"]);
    let requested_kinds = vec!["paused".to_owned(), "woken".to_owned()];
    assert_eq!(
        kinds(EventFilter {
            kinds: requested_kinds,
            ..any()
        })
        .await,
        ["one paused"]
    );
    let after_seq = Some(last - 1);
    assert_eq!(
        kinds(EventFilter { after_seq, ..any() }).await,
        ["one paused"]
    );
    assert_eq!(
        kinds(EventFilter { limit: 1, ..any() }).await,
        ["one created"]
    );
    let tail = EventFilter {
        limit: 2,
        is_tail: true,
        ..any()
    };
    assert_eq!(kinds(tail).await, ["two created", "one paused"]);
}

async fn events_are_filtered_by_kind_and_data(home: Home) {
    let store = home.open().await;
    let flow = |verdict: &str, at_ms: i64| NewEvent {
        data: json!({"verdict": verdict, "failure": "said \"verdict\":\"allowed\" itself"}),
        ..event("one", "alice", "flow", at_ms)
    };
    let added = [
        event("one", "alice", "created", 1),
        flow("allowed", 2),
        flow("failed", 3),
    ];
    store.add_events(&added).await.unwrap();
    let times = async |filter: EventFilter| -> Vec<i64> {
        let events = store.events(&filter).await.unwrap();
        events.into_iter().map(|event| event.at_ms).collect()
    };
    let except_kinds = vec!["flow".to_owned()];
    let others = EventFilter {
        except_kinds,
        ..EventFilter::default()
    };
    assert_eq!(times(others).await, [1]);
    let data = BTreeMap::from([("verdict".to_owned(), "allowed".to_owned())]);
    let allowed = EventFilter {
        data,
        ..EventFilter::default()
    };
    assert_eq!(times(allowed).await, [2]);
}

async fn many_events_are_added_at_once(home: Home) {
    let store = home.open().await;
    let many: Vec<_> = (0..1200)
        .map(|at_ms| event("one", "alice", "command", at_ms))
        .collect();
    assert_eq!(store.add_events(&many).await.unwrap(), 1200);
    let tail = EventFilter {
        is_tail: true,
        ..EventFilter::default()
    };
    let events = store.events(&tail).await.unwrap();
    assert_eq!(
        (events.len(), events[999].at_ms, events[999].seq),
        (1000, 1199, 1200)
    );
}

async fn numbers_are_never_given_twice(home: Home) {
    let store = home.open().await;
    let last = store
        .add_events(&[event("one", "alice", "created", 1)])
        .await
        .unwrap();
    assert_eq!(store.purge_history(2).await.unwrap(), 1);
    let next = store
        .add_events(&[event("one", "alice", "paused", 3)])
        .await
        .unwrap();
    assert!(
        next > last,
        "a reader that goes on after {last} misses {next}"
    );
}

async fn however_much_is_old_is_forgotten(home: Home) {
    let store = home.open().await;
    // More than one statement forgets.
    let mut events: Vec<_> = (0..5_100)
        .map(|_| event("one", "alice", "flow", 1))
        .collect();
    events.push(event("one", "alice", "paused", 2));
    store.add_events(&events).await.unwrap();
    assert_eq!(store.purge_history(2).await.unwrap(), 5_100);
    let remaining = store.events(&EventFilter::default()).await.unwrap();
    assert_eq!((remaining.len(), remaining[0].kind.as_str()), (1, "paused"));
    assert_eq!(store.purge_history(2).await.unwrap(), 0);
}

async fn the_audit_is_listed_backwards(home: Home) {
    let store = home.open().await;
    let entry = |actor: &str, at_ms: i64| NewAuditEntry {
        at_ms,
        actor: actor.to_owned(),
        via: "key:1".to_owned(),
        action: "create_sandbox".to_owned(),
        target: Some("one".to_owned()),
        status: 201,
        request_id: "r1".to_owned(),
        address: None,
    };
    store.add_audit(&[]).await.unwrap();
    store
        .add_audit(&[entry("alice", 1), entry("bob", 2)])
        .await
        .unwrap();
    store.add_audit(&[entry("alice", 3)]).await.unwrap();
    let all = store.audit(None, None, 10).await.unwrap();
    assert_eq!(
        all.iter()
            .map(|entry| entry.entry.at_ms)
            .collect::<Vec<_>>(),
        [3, 2, 1]
    );
    assert_eq!(all[1].entry, entry("bob", 2));
    let before = store
        .audit(Some("alice"), Some(all[0].seq), 10)
        .await
        .unwrap();
    assert_eq!(before, [all[2].clone()]);
    assert_eq!(store.audit(None, None, 1).await.unwrap().len(), 1);
    assert_eq!(store.purge_history(3).await.unwrap(), 2);
    assert_eq!(store.audit(None, None, 10).await.unwrap(), [all[0].clone()]);
}

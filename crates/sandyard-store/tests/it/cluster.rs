//! What is promised to servers that share a store.

use sandyard_store::model::Node;

use crate::engines::Home;

crate::on_every_engine![
    a_shared_word_is_the_first_ones,
    a_lease_has_one_holder,
    nodes_come_and_go,
];

async fn a_shared_word_is_the_first_ones(home: Home) {
    let (one, other) = home.open_two().await;
    assert_eq!(one.meta("secret").await.unwrap(), None);
    assert_eq!(one.meta_or_insert("secret", "a").await.unwrap(), "a");
    assert_eq!(other.meta_or_insert("secret", "b").await.unwrap(), "a");
    assert_eq!(other.meta("secret").await.unwrap().as_deref(), Some("a"));
}

async fn a_lease_has_one_holder(home: Home) {
    let (one, other) = home.open_two().await;
    assert!(one.take_lease("sweep", "a", 0, 100).await.unwrap());
    assert!(!other.take_lease("sweep", "b", 99, 200).await.unwrap());
    assert!(
        one.take_lease("sweep", "a", 99, 150).await.unwrap(),
        "it may keep it"
    );
    assert!(!other.take_lease("sweep", "b", 149, 250).await.unwrap());
    assert!(other.take_lease("sweep", "b", 150, 250).await.unwrap());
    assert!(!one.take_lease("sweep", "a", 151, 250).await.unwrap());
    assert!(one.take_lease("other", "a", 151, 250).await.unwrap());
}

async fn nodes_come_and_go(home: Home) {
    let store = home.open().await;
    let mut node = Node {
        id: "b".to_owned(),
        url: Some("http://10.0.0.1:1".to_owned()),
        locations: vec!["here".to_owned(), "there".to_owned()],
        version: "1".to_owned(),
        started_ms: 1,
        seen_ms: 10,
    };
    store.upsert_node(&node).await.unwrap();
    node.seen_ms = 20;
    node.url = None;
    store.upsert_node(&node).await.unwrap();
    let old = Node {
        id: "a".to_owned(),
        seen_ms: 5,
        ..node.clone()
    };
    store.upsert_node(&old).await.unwrap();
    assert_eq!(store.nodes(6).await.unwrap(), [node.clone()]);
    assert_eq!(store.nodes(5).await.unwrap(), [old, node]);
    store.remove_node("b").await.unwrap();
    store.remove_node("b").await.unwrap();
    assert_eq!(store.nodes(6).await.unwrap(), []);
}

//! Many sessions at once.

use futures_util::future::join_all;
use serde_json::json;

use super::super::sessions::MAX_SESSIONS;
use super::Bench;

#[tokio::test]
async fn sessions_work_side_by_side_and_there_are_only_so_many() {
    let bench = Bench::new();
    for round in 0..4 {
        let calls = (0..MAX_SESSIONS).map(|number| {
            let command = format!(
                "n={number}; for i in 1 2 3; do echo $n.$i; sleep 0.05; done; (exit {number})"
            );
            bench.call(
                "Bash",
                json!({"session_name": format!("s{number}"), "command": command}),
            )
        });
        for (number, reply) in join_all(calls).await.into_iter().enumerate() {
            let reply = reply.unwrap();
            let ran = reply.structured().unwrap();
            assert_eq!(
                ran["output"],
                format!("{number}.1\n{number}.2\n{number}.3"),
                "round {round}"
            );
            assert_eq!(ran["exit_code"], number);
        }
    }
    let problem = bench
        .call("Bash", json!({"session_name": "more", "command": "true"}))
        .await
        .unwrap_err();
    assert!(problem.to_string().contains("32 sessions"), "{problem}");
    let list = bench.call("BashList", json!({})).await.unwrap();
    assert_eq!(
        list.structured().unwrap()["sessions"]
            .as_array()
            .unwrap()
            .len(),
        MAX_SESSIONS
    );
    // One that has ended makes room.
    bench
        .call("Bash", json!({"session_name": "s0", "command": "exit"}))
        .await
        .unwrap();
    bench
        .call("Bash", json!({"session_name": "more", "command": "true"}))
        .await
        .unwrap();
}

#[tokio::test]
async fn of_two_at_once_in_one_session_one_is_told_that_it_is_busy() {
    let bench = Bench::new();
    let calls = (0..5).map(|_| {
        bench.call(
            "Bash",
            json!({"session_name": "s", "command": "sleep 0.3; echo ran"}),
        )
    });
    let answers = join_all(calls).await;
    let ran = answers.iter().filter(|answer| answer.is_ok()).count();
    assert_eq!(ran, 1, "{answers:?}");
    for problem in answers.iter().filter_map(|answer| answer.as_ref().err()) {
        assert!(problem.to_string().contains("busy"), "{problem}");
    }
}

#[tokio::test]
async fn views_of_unknown_sessions_name_those_there_are() {
    let bench = Bench::new();
    bench.run("true").await;
    let problem = bench
        .call("BashView", json!({"session_names": ["other"]}))
        .await
        .unwrap_err();
    assert!(problem.to_string().contains("there are: s"), "{problem}");
    let all = bench.call("BashView", json!({})).await.unwrap();
    assert!(all.all_text().starts_with("[s: idle"), "{}", all.all_text());
}

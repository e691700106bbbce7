//! Many sessions at once.

use futures_util::future::join_all;
use serde_json::json;

use super::super::sessions::MAX_SESSIONS;
use super::TestEnv;
use crate::reply::MAX_TEXT;

#[tokio::test]
async fn sessions_run_in_parallel_up_to_a_limit() {
    let env = TestEnv::new();
    for round in 0..4 {
        let calls = (0..MAX_SESSIONS).map(|number| {
            let command = format!(
                "n={number}; for i in 1 2 3; do echo $n.$i; sleep 0.05; done; (exit {number})"
            );
            env.call(
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
    let problem = env
        .call("Bash", json!({"session_name": "more", "command": "true"}))
        .await
        .unwrap_err();
    assert!(problem.to_string().contains("32 sessions"), "{problem}");
    let list = env.call("BashList", json!({})).await.unwrap();
    assert_eq!(
        list.structured().unwrap()["sessions"]
            .as_array()
            .unwrap()
            .len(),
        MAX_SESSIONS
    );
    // One that has ended makes room.
    env.call("Bash", json!({"session_name": "s0", "command": "exit"}))
        .await
        .unwrap();
    env.call("Bash", json!({"session_name": "more", "command": "true"}))
        .await
        .unwrap();
}

#[tokio::test]
async fn of_two_calls_at_once_in_one_session_one_is_refused_as_busy() {
    let env = TestEnv::new();
    let calls = (0..5).map(|_| {
        env.call(
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
    let env = TestEnv::new();
    env.run("true").await;
    let problem = env
        .call("BashView", json!({"session_names": ["other"]}))
        .await
        .unwrap_err();
    assert!(problem.to_string().contains("existing: s"), "{problem}");
    let all = env.call("BashView", json!({})).await.unwrap();
    assert!(all.all_text().starts_with("[s: idle"), "{}", all.all_text());
    // A name that is repeated is shown once; and no caller has 10,000 sessions.
    let twice = json!({"session_names": vec!["s"; 10_000]});
    let once = env.call("BashView", twice).await.unwrap();
    assert_eq!(once.all_text(), all.all_text());
    let names: Vec<_> = (0..=MAX_SESSIONS)
        .map(|number| format!("s{number}"))
        .collect();
    let problem = env
        .call("BashView", json!({"session_names": names}))
        .await
        .unwrap_err();
    assert!(problem.to_string().contains("33 names"), "{problem}");
}

#[tokio::test]
async fn long_commands_and_the_output_of_many_sessions_are_truncated() {
    let env = TestEnv::new();
    let long = format!("sleep 1000; : {}", "x".repeat(100_000));
    env.start(&long).await;
    for tool in ["BashList", "BashView"] {
        let reply = env.call(tool, json!({})).await.unwrap();
        let command = &reply.structured().unwrap()["sessions"][0]["command"];
        let command = command.as_str().unwrap();
        assert!(command.starts_with("sleep 1000; : xxx") && command.len() < 200);
    }
    env.stop().await.unwrap();
    let calls = (0..20).map(|number| {
        let command = "yes payload | head -n 4000; echo the end";
        env.call(
            "Bash",
            json!({"session_name": format!("s{number}"), "command": command}),
        )
    });
    for reply in join_all(calls).await {
        assert_eq!(reply.unwrap().structured().unwrap()["exit_code"], 0);
    }
    let reply = env.call("BashView", json!({})).await.unwrap();
    let sessions = reply.structured().unwrap()["sessions"].clone();
    let result = serde_json::to_vec(&reply.into_result()).unwrap();
    assert!(result.len() < 2 * MAX_TEXT, "{}", result.len());
    for session in sessions.as_array().unwrap().iter().skip(1) {
        let output = session["output"].as_str().unwrap();
        assert!(output.starts_with("[truncated: the last 6") && output.ends_with("the end"));
    }
}

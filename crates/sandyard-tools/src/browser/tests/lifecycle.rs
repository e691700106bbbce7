//! How the browser begins and ends.

use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};

use super::super::running::Running;
use super::*;

impl TestEnv {
    /// The browser's process and its folder.
    async fn process(&self) -> (u32, PathBuf) {
        let slot = self.tool_state.browser.slot.lock().await;
        let process = &slot.running.as_ref().expect("it runs").process;
        (process.id().unwrap(), process.profile().to_owned())
    }
}

/// Processes that have this folder among their arguments.
fn users_of(folder: &Path) -> Vec<String> {
    let folder = folder.to_str().unwrap();
    let lines = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| {
            let line = std::fs::read(entry.path().join("cmdline")).ok()?;
            Some(String::from_utf8_lossy(&line).into_owned())
        });
    lines.filter(|line| line.contains(folder)).collect()
}

async fn until_unused(folder: &Path) {
    let until = Instant::now() + Duration::from_secs(90);
    loop {
        let users = users_of(folder);
        if users.is_empty() && !folder.exists() {
            return;
        }
        assert!(Instant::now() < until, "{users:?}, {}", folder.exists());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn one_that_ends_at_its_start_is_started_once_more() {
    use std::os::unix::fs::PermissionsExt;
    let env = TestEnv::new().await;
    let browser = super::super::program::find(|name| std::env::var_os(name)).unwrap();
    let program = env.folder.path().join("program");
    for (times, starts) in [(1, true), (2, false)] {
        let attempts = env.folder.path().join(format!("tries{times}"));
        let text = format!(
            "#!/bin/sh\necho >> {attempts}\n[ $(wc -l < {attempts}) -gt {times} ] || {{ echo oh >&2; exit 1; }}\nexec {} \"$@\"\n",
            browser.display(),
            attempts = attempts.display(),
        );
        std::fs::write(&program, text).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        match Running::start_program(&program, &env.tool_state).await {
            Ok(running) => {
                assert!(starts);
                running.end().await;
            }
            Err(problem) => {
                assert!(!starts, "{problem}");
                assert!(
                    problem.to_string().contains("ended immediately"),
                    "{problem}"
                );
            }
        }
        assert_eq!(std::fs::read_to_string(&attempts).unwrap(), "\n\n");
    }
}

#[tokio::test]
async fn a_browser_that_was_killed_is_replaced() {
    let env = TestEnv::new().await;
    env.show("<title>One</title>").await;
    let (id, folder) = env.process().await;
    assert!(!users_of(&folder).is_empty());
    kill_process(Pid::from_raw(id.cast_signed()).unwrap(), Signal::KILL).unwrap();
    let until = Instant::now() + Duration::from_secs(90);
    while !env
        .tool_state
        .browser
        .slot
        .lock()
        .await
        .running
        .as_ref()
        .unwrap()
        .is_ended()
    {
        assert!(Instant::now() < until);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let url = env.site.page("<title>Two</title>");
    let seen = env.call("browser_navigation", json!({ "url": url })).await;
    seen.titled("Two").has("was restarted").has_not("[1]");
    assert_ne!(env.process().await.0, id);
    until_unused(&folder).await;
    env.call("browser_wait", json!({}))
        .await
        .has_not("was restarted");
}

#[tokio::test]
async fn a_browser_that_is_killed_during_a_call_is_reported() {
    let env = TestEnv::new().await;
    env.show("<title>One</title>").await;
    let (id, _) = env.process().await;
    let url = format!("{}/never", env.site.root);
    let kill = async {
        env.site.until_never_is_asked_for().await;
        kill_process(Pid::from_raw(id.cast_signed()).unwrap(), Signal::KILL).unwrap();
    };
    let (seen, ()) = tokio::join!(env.call("browser_navigation", json!({ "url": url })), kill);
    seen.refused("the browser ended during this call");
    env.show("<title>Two</title>").await.titled("Two");
}

#[tokio::test]
async fn a_page_that_crashes_costs_its_tab_only() {
    let env = TestEnv::new().await;
    env.show("<title>Other</title>").await;
    env.call("browser_open_new_tab", json!({})).await;
    env.show("<title>Crashes</title>").await;
    {
        let browser = env
            .tool_state
            .browser
            .acquire(&env.tool_state)
            .await
            .unwrap();
        let page = browser.running().unwrap().page().await.unwrap();
        let failure = page.send("Page.crash", json!({})).await.unwrap_err();
        assert_eq!(failure, super::super::pipe::Failure::Crashed);
    }
    let seen = env.call("browser_wait", json!({})).await;
    seen.has("had crashed").has("URL: about:blank").has("Other");
    env.show("<title>Goes on</title>")
        .await
        .titled("Goes on")
        .has_not("crashed")
        .has_not("[2]");
}

#[tokio::test]
async fn a_restart_forgets_everything() {
    let env = TestEnv::new().await;
    let html = "<script>document.title = 'had ' + (document.cookie || 'nothing'); document.cookie = 'a=b; \
         max-age=1000'</script>";
    env.show(html).await.titled("had nothing");
    env.show(html).await.titled("had a=b");
    let (id, folder) = env.process().await;
    let url = env.site.page(html);
    env.call("browser_restart", json!({ "url": url }))
        .await
        .titled("had nothing")
        .has_not("started again");
    assert_ne!(env.process().await.0, id);
    until_unused(&folder).await;
}

#[tokio::test]
async fn an_unused_browser_ends_and_comes_back() {
    // Longer than a busy machine takes from the end of a call to the next line.
    let env = TestEnv::with_limits(|limits| limits.idle = Duration::from_secs(10)).await;
    env.show("<title>One</title>").await;
    let (_, folder) = env.process().await;
    until_unused(&folder).await;
    assert!(env.tool_state.browser.slot.lock().await.running.is_none());
    env.show("<title>Two</title>").await.titled("Two");
}

#[tokio::test]
async fn it_ends_with_the_tool_server_and_leaves_nothing() {
    let env = TestEnv::new().await;
    env.show("<title>One</title>").await;
    let (_, folder) = env.process().await;
    drop(env);
    until_unused(&folder).await;
}

#[tokio::test]
async fn it_ends_at_once_when_it_is_closed() {
    let env = TestEnv::new().await;
    env.show("<title>One</title>").await;
    let (_, folder) = env.process().await;
    env.tool_state.browser.end_now();
    assert!(!folder.exists());
    until_unused(&folder).await;
}

#[tokio::test]
async fn a_cancelled_call_waits_no_longer_and_the_next_works() {
    // Longer than any test takes: one that does wait is stopped by the limit below.
    let env = TestEnv::with_limits(|limits| limits.navigation = Duration::from_secs(3600)).await;
    env.show("<title>One</title>").await;
    let call = Call::quiet();
    let cancelled = call.cancelled.clone();
    let url = format!("{}/never", env.site.root);
    let cancel = async {
        env.site.until_never_is_asked_for().await;
        cancelled.cancel();
    };
    let both = async {
        tokio::join!(
            env.call_with("browser_navigation", json!({ "url": url }), call),
            cancel
        )
    };
    let both = tokio::time::timeout(Duration::from_secs(300), both).await;
    let (seen, ()) = both.expect("it waits no longer");
    seen.refused("was cancelled");
    env.show("<title>Two</title>").await.titled("Two");
}

#[tokio::test]
async fn many_calls_at_once_start_one_browser_and_take_turns() {
    let env = TestEnv::new().await;
    let urls = (0..8).map(|number| env.site.page(&format!("<title>Page {number}</title>")));
    let calls = urls.map(|url| env.call("browser_navigation", json!({ "url": url })));
    let all = futures_util::future::join_all(calls.collect::<Vec<_>>()).await;
    for (number, seen) in all.iter().enumerate() {
        seen.titled(&format!("Page {number}"));
    }
    assert_eq!(env.tool_state.browser.slot.lock().await.started, 1);
}

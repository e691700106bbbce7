//! How the browser begins and ends.

use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};

use super::super::running::Running;
use super::*;

impl Yard {
    /// The browser's process and its folder.
    async fn process(&self) -> (u32, PathBuf) {
        let slot = self.workshop.browser.slot.lock().await;
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

async fn until_nobody_uses(folder: &Path) {
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
    let yard = Yard::new().await;
    let browser = super::super::find::find(|name| std::env::var_os(name)).unwrap();
    let program = yard.folder.path().join("program");
    for (times, starts) in [(1, true), (2, false)] {
        let tries = yard.folder.path().join(format!("tries{times}"));
        let text = format!(
            "#!/bin/sh\necho >> {tries}\n[ $(wc -l < {tries}) -gt {times} ] || {{ echo oh >&2; exit 1; }}\nexec {} \"$@\"\n",
            browser.display(),
            tries = tries.display(),
        );
        std::fs::write(&program, text).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        match Running::start_program(&program, &yard.workshop).await {
            Ok(running) => {
                assert!(starts);
                running.end().await;
            }
            Err(problem) => {
                assert!(!starts, "{problem}");
                assert!(problem.to_string().contains("ended at once"), "{problem}");
            }
        }
        assert_eq!(std::fs::read_to_string(&tries).unwrap(), "\n\n");
    }
}

#[tokio::test]
async fn a_browser_that_was_killed_is_replaced() {
    let yard = Yard::new().await;
    yard.show("<title>One</title>").await;
    let (id, folder) = yard.process().await;
    assert!(!users_of(&folder).is_empty());
    kill_process(Pid::from_raw(id.cast_signed()).unwrap(), Signal::KILL).unwrap();
    let until = Instant::now() + Duration::from_secs(90);
    while !yard
        .workshop
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
    let url = yard.site.page("<title>Two</title>");
    let seen = yard.call("browser_navigation", json!({ "url": url })).await;
    seen.titled("Two").has("was started again").lacks("[1]");
    assert_ne!(yard.process().await.0, id);
    until_nobody_uses(&folder).await;
    yard.call("browser_wait", json!({}))
        .await
        .lacks("was started again");
}

#[tokio::test]
async fn a_browser_that_is_killed_while_it_works_is_told() {
    let yard = Yard::new().await;
    yard.show("<title>One</title>").await;
    let (id, _) = yard.process().await;
    let url = format!("{}/never", yard.site.root);
    let kill = async {
        yard.site.until_never_is_asked_for().await;
        kill_process(Pid::from_raw(id.cast_signed()).unwrap(), Signal::KILL).unwrap();
    };
    let (seen, ()) = tokio::join!(yard.call("browser_navigation", json!({ "url": url })), kill);
    seen.refused("the browser ended in the middle of this");
    yard.show("<title>Two</title>").await.titled("Two");
}

#[tokio::test]
async fn a_page_that_crashes_costs_its_tab_only() {
    let yard = Yard::new().await;
    yard.show("<title>Other</title>").await;
    yard.call("browser_open_new_tab", json!({})).await;
    yard.show("<title>Crashes</title>").await;
    {
        let turn = yard.workshop.browser.turn(&yard.workshop).await.unwrap();
        let page = turn.running().unwrap().page().await.unwrap();
        let failure = page.send("Page.crash", json!({})).await.unwrap_err();
        assert_eq!(failure, super::super::pipe::Failure::Crashed);
    }
    let seen = yard.call("browser_wait", json!({})).await;
    seen.has("had crashed").has("URL: about:blank").has("Other");
    yard.show("<title>Goes on</title>")
        .await
        .titled("Goes on")
        .lacks("crashed")
        .lacks("[2]");
}

#[tokio::test]
async fn a_restart_forgets_everything() {
    let yard = Yard::new().await;
    let html = "<script>document.title = 'had ' + (document.cookie || 'nothing'); document.cookie = 'a=b; \
         max-age=1000'</script>";
    yard.show(html).await.titled("had nothing");
    yard.show(html).await.titled("had a=b");
    let (id, folder) = yard.process().await;
    let url = yard.site.page(html);
    yard.call("browser_restart", json!({ "url": url }))
        .await
        .titled("had nothing")
        .lacks("started again");
    assert_ne!(yard.process().await.0, id);
    until_nobody_uses(&folder).await;
}

#[tokio::test]
async fn an_unused_browser_ends_and_comes_back() {
    // Longer than a busy machine takes from the end of a call to the next line.
    let yard = Yard::with_limits(|limits| limits.idle = Duration::from_secs(10)).await;
    yard.show("<title>One</title>").await;
    let (_, folder) = yard.process().await;
    until_nobody_uses(&folder).await;
    assert!(yard.workshop.browser.slot.lock().await.running.is_none());
    yard.show("<title>Two</title>").await.titled("Two");
}

#[tokio::test]
async fn it_ends_with_the_tool_server_and_leaves_nothing() {
    let yard = Yard::new().await;
    yard.show("<title>One</title>").await;
    let (_, folder) = yard.process().await;
    drop(yard);
    until_nobody_uses(&folder).await;
}

#[tokio::test]
async fn it_ends_at_once_when_it_is_told_to() {
    let yard = Yard::new().await;
    yard.show("<title>One</title>").await;
    let (_, folder) = yard.process().await;
    yard.workshop.browser.end_now();
    assert!(!folder.exists());
    until_nobody_uses(&folder).await;
}

#[tokio::test]
async fn a_cancelled_call_waits_no_longer_and_the_next_works() {
    // Longer than any test takes: one that does wait is stopped by the limit below.
    let yard = Yard::with_limits(|limits| limits.navigation = Duration::from_secs(3600)).await;
    yard.show("<title>One</title>").await;
    let call = Call::quiet();
    let cancelled = call.cancelled.clone();
    let url = format!("{}/never", yard.site.root);
    let cancel = async {
        yard.site.until_never_is_asked_for().await;
        cancelled.cancel();
    };
    let both = async {
        tokio::join!(
            yard.call_with("browser_navigation", json!({ "url": url }), call),
            cancel
        )
    };
    let both = tokio::time::timeout(Duration::from_secs(300), both).await;
    let (seen, ()) = both.expect("it waits no longer");
    seen.refused("was cancelled");
    yard.show("<title>Two</title>").await.titled("Two");
}

#[tokio::test]
async fn many_calls_at_once_start_one_browser_and_take_turns() {
    let yard = Yard::new().await;
    let urls = (0..8).map(|number| yard.site.page(&format!("<title>Page {number}</title>")));
    let calls = urls.map(|url| yard.call("browser_navigation", json!({ "url": url })));
    let all = futures_util::future::join_all(calls.collect::<Vec<_>>()).await;
    for (number, seen) in all.iter().enumerate() {
        seen.titled(&format!("Page {number}"));
    }
    assert_eq!(yard.workshop.browser.slot.lock().await.started, 1);
}

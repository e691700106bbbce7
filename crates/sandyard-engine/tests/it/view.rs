//! What a sandbox sees: enough to work with, and nothing of the host.

use sandyard_core::SandboxId;

use crate::test_env::{TestEnv, ready, small};

#[tokio::test]
async fn the_default_template_shows_programs_and_nothing_private_of_the_host() {
    let env = TestEnv::new().await;
    let secret = tempfile::NamedTempFile::new().expect("a file of the host");
    let id = env.create().await.id;
    assert_eq!(
        env.out(
            &id,
            &format!(
                "ls {} 2>&1 | grep -c 'No such file'",
                secret.path().display()
            )
        )
        .await,
        "1"
    );
    assert_eq!(env.out(&id, "python3 -c 'print(6*7)'").await, "42");
    assert_eq!(
        env.out(&id, "ls -A /root /home; ls /var/lib | grep -c sandyard")
            .await
            .lines()
            .last(),
        Some("0")
    );
    assert_eq!(
        env.out(
            &id,
            "stat -c '%U %a' /usr/bin /etc/sudoers 2>/dev/null | head -n 1"
        )
        .await,
        "root 755"
    );
    assert_eq!(
        env.out(
            &id,
            "ls /proc | grep -c '^[0-9]'; cat /proc/1/comm > /dev/null && echo ok"
        )
        .await
        .lines()
        .last(),
        Some("ok")
    );
    assert_eq!(env.out(&id, "ls /sys/class/net").await, "lo");
    assert_eq!(
        env.out(
            &id,
            "cat /proc/kcore | wc -c; ls /sys/firmware | wc -l; ls /dev | sort | tr '\\n' ' '"
        )
        .await,
        "0\n0\ncore fd full mqueue null ptmx pts random shm stderr stdin stdout tty urandom zero"
    );
    env.finish().await;
}

#[tokio::test]
async fn nothing_of_the_engine_is_mounted_or_open_inside() {
    let env = TestEnv::new().await;
    let id = env.create().await.id;
    let data = env.data.display().to_string();
    let mounts = env.out(&id, "cat /proc/self/mounts").await;
    assert!(!mounts.contains(&data), "{mounts}");
    let fds = env
        .sh_as(
            &id,
            "root",
            "for fd in /proc/1/fd/*; do readlink $fd; done; ls -l /proc/self/fd",
        )
        .await;
    let fds = String::from_utf8_lossy(&fds.stdout).into_owned();
    assert!(!fds.contains(&data) && !fds.contains("launcher"), "{fds}");
    env.finish().await;
}

#[tokio::test]
async fn programs_of_all_kinds_run() {
    let env = TestEnv::new().await;
    let id = env.create().await.id;
    for line in [
        "git init -q ~/repo && cd ~/repo && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git log --oneline | wc -l",
        "perl -e 'print 1'",
        "script -qc 'tty' /dev/null | grep -c /dev/pts/",
        "python3 -c 'import socket; s = socket.create_server((\"127.0.0.1\", 80)); print(1)'",
        "python3 -c 'import multiprocessing as m; m.Queue(); print(1)'",
        "setfattr -n user.test -v 1 ~/repo 2>/dev/null || python3 -c 'import os; os.setxattr(\"/home/user/repo\", \"user.test\", b\"1\")'; python3 -c 'import os; print(int(os.getxattr(\"/home/user/repo\", \"user.test\")))'",
        "mkfifo ~/fifo && (echo 1 > ~/fifo &) && cat ~/fifo",
        "node -e 'console.log(1)'",
    ] {
        let result = env.sh(&id, line).await;
        assert_eq!(
            crate::test_env::text(&result.stdout),
            "1",
            "{line}: {}",
            String::from_utf8_lossy(&result.stderr)
        );
    }
    env.finish().await;
}

/// Looks for a text in all of the agent's memory, as root inside can.
const SEARCH: &str = r#"python3 - "$NEEDLE" <<'END'
import re, sys
needle = sys.argv[1].encode()
found = 0
with open("/proc/1/maps") as maps, open("/proc/1/mem", "rb", 0) as memory:
    for line in maps:
        start, end = (int(part, 16) for part in re.match("([0-9a-f]+)-([0-9a-f]+) r", line).groups()) if " r" in line[:40] else (0, 0)
        if "[v" in line:
            continue
        try:
            memory.seek(start)
            found += memory.read(end - start).count(needle)
        except (OSError, ValueError):
            pass
print(found)
END"#;

async fn occurrences(env: &TestEnv, id: &SandboxId, needle: &str) -> u32 {
    // In pieces, so that the command that looks does not itself bring what it looks for.
    let (head, tail) = needle.split_at(5);
    let line = format!("a={head}; NEEDLE=${{a}}{tail}; {SEARCH}");
    let output = env.sh_as(id, "root", &line).await;
    let text = crate::test_env::text(&output.stdout);
    text.parse()
        .unwrap_or_else(|_| panic!("{text} {}", String::from_utf8_lossy(&output.stderr)))
}

#[tokio::test]
async fn nothing_of_another_sandbox_or_the_launcher_is_in_the_agents_memory() {
    let env = TestEnv::new().await;
    let mut spec = small();
    spec.env
        .insert("KEY".into(), "first-sandboxes-secret-value".into());
    let first = env.engine.create(&spec).await.expect("create").id;
    // Long enough for everything that the launcher does now and then.
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    let second = env.create().await.id;
    // Proves that the search finds something: the first one's secret is in its own agent.
    assert!(occurrences(&env, &first, "first-sandboxes-secret-value").await > 0);
    assert_eq!(
        occurrences(&env, &second, "first-sandboxes-secret-value").await,
        0
    );
    assert_eq!(occurrences(&env, &second, first.as_str()).await, 0);
    let output = env
        .sh_as(
            &second,
            "root",
            "cat /proc/1/cmdline /proc/1/environ | tr '\\0' ' '",
        )
        .await;
    assert_eq!(crate::test_env::text(&output.stdout), "sandyard-agent");
    env.finish().await;
}

/// A worker that fills the pool, or that lost a race for a spare, may become the first process of another sandbox.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_another_sandbox_comes_through_the_pool() {
    let env = TestEnv::new().await;
    let pool = vec![ready("host", 3)];
    env.engine.set_pool(pool.clone()).await.expect("fill");
    let mut reported = Vec::new();
    let mut others = Vec::new();
    for _ in 0..4 {
        let create = |secret: Option<&str>| {
            let (engine, mut spec) = (env.engine.clone(), small());
            let secret = secret.map(|secret| ("KEY".to_owned(), secret.to_owned()));
            spec.env.extend(secret);
            async move { engine.create(&spec).await.expect("create").id }
        };
        let secret = Some("pooled-sandboxes-secret-value");
        let (one, two, other, filled, another) = tokio::join!(
            create(secret),
            create(secret),
            create(None),
            env.engine.set_pool(pool.clone()),
            create(None)
        );
        filled.expect("fill");
        reported.extend([one, two]);
        others.extend([other, another]);
    }
    env.engine.set_pool(pool).await.expect("fill");
    let spares = std::fs::read_dir(env.data.join("spares")).expect("spares");
    let is_ready = |spare: &std::fs::DirEntry| spare.metadata().is_ok_and(|mark| mark.len() > 0);
    others.extend(spares.flatten().filter(is_ready).map(|spare| {
        let name = spare.file_name().into_string().expect("text");
        name.parse().expect("an id")
    }));
    assert_eq!(others.len(), 8 + 3, "as many are ready");
    for id in &reported {
        assert!(occurrences(&env, id, "pooled-sandboxes-secret-value").await > 0);
    }
    for id in &others {
        let found = occurrences(&env, id, "pooled-sandboxes-secret-value").await;
        assert_eq!(found, 0, "{id}");
    }
    env.finish().await;
}

#[tokio::test]
async fn a_link_in_place_of_a_folder_leads_nowhere_on_the_host() {
    let env = TestEnv::new().await;
    let target = tempfile::tempdir().expect("a folder of the host");
    std::fs::set_permissions(
        target.path(),
        std::os::unix::fs::PermissionsExt::from_mode(0o777),
    )
    .expect("open it");
    std::fs::write(target.path().join("hosts"), "of the host").expect("write");
    for (folder, starts) in [
        ("etc", true),
        ("run", true),
        ("dev", false),
        ("proc", false),
    ] {
        let id = env.create().await.id;
        let place = target.path().display();
        // Mounted ones cannot be moved away while it runs: those are replaced on its disk, as a snapshot's author could.
        let replaced = env
            .sh_as(
                &id,
                "root",
                &format!("mv /{folder} /{folder}.old && ln -s {place} /{folder}"),
            )
            .await;
        env.engine.stop(&id).await.expect("stop");
        let started = env.engine.start(&id).await;
        if replaced.exit.exit_code == 0 {
            assert_eq!(started.is_ok(), starts, "{folder}: {started:?}");
        }
        env.engine.delete(&id).await.expect("delete");
    }
    let found: Vec<_> = std::fs::read_dir(target.path())
        .expect("list")
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(found, ["hosts"]);
    assert_eq!(
        std::fs::read_to_string(target.path().join("hosts")).expect("read"),
        "of the host"
    );
    env.finish().await;
}

#[tokio::test]
async fn one_sandbox_cannot_exhaust_what_the_host_counts_for_all_users() {
    let env = TestEnv::new().await;
    let id = env.create().await.id;
    let count = |call: &str| {
        format!(
            "python3 -c \"\nimport ctypes, os\nlibc = ctypes.CDLL(None)\nn = 0\nwhile n < 1000 and {call} >= 0: n += 1\nprint(n)\n\""
        )
    };
    let inotify: u32 = env
        .out(&id, &count("libc.inotify_init1(0)"))
        .await
        .parse()
        .expect("a count");
    assert!(inotify <= 128, "{inotify} inotify instances");
    assert_eq!(
        env.out(&id, &count("libc.open(b'/dev/ptmx', 2)")).await,
        "32",
        "terminals"
    );
    assert_eq!(
        env.out(
            &id,
            &count("libc.syscall(206, 1, ctypes.byref(ctypes.c_ulong(0)))")
        )
        .await,
        "0",
        "aio contexts"
    );
    assert_eq!(
        env.out(
            &id,
            "ls /sys/block | wc -l; cat /proc/cmdline /proc/diskstats | wc -c"
        )
        .await,
        "0\n0"
    );
    env.finish().await;
}

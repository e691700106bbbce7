use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::super::inspection::Inspection;
use super::*;

/// Takes callers at once, and lasts for a minute. `$3` is where the settings are.
const SERVER: &str = "#!/bin/sh\nrm \"$3\"\nfor _ in $(seq 600); do sleep 0.1; done\n";

/// A home with our folder.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().expect("a home"));
        fs::create_dir(home.at("")).expect("a folder");
        home
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(".sandyard").join(name)
    }

    fn text(&self, name: &str) -> String {
        self.at(name).to_str().expect("text").to_owned()
    }

    /// Runs a command as an agent would, and returns whether it went well and what it said.
    fn run(&self, config: &ProcessConfig) -> (bool, String) {
        let mut command = Command::new(&config.cmd);
        command.args(&config.args).env("HOME", self.0.path());
        let output = command.output().expect("a shell");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.success(), said)
    }

    fn look(&self, program: &str, size: u64, port: u16, replace: bool) -> Inspection {
        let workspace = self.0.path().join("workspace");
        let workspace = workspace.to_str().expect("text");
        Inspection::read(&self.run(&look(program, size, port, replace, workspace)).1)
    }

    /// Runs a line of shell: what this process itself writes, a thread of its may still have open when it is to be run.
    fn sh(&self, line: &str) {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", line]).current_dir(self.at(""));
        assert!(command.status().expect("a shell").success(), "{line}");
    }

    /// Starts a program that was brought in.
    fn start(&self, program: &str, part: &str) -> (bool, String) {
        fs::write(self.at("source"), program).expect("written");
        fs::write(self.at("tools-1.json"), "{}").expect("written");
        match part.ends_with(".gz") {
            true => self.sh(&format!("gzip -c source >{part}; rm source")),
            false => self.sh(&format!("cp source {part}; rm source")),
        }
        let (size, settings) = (program.len() as u64, self.text("tools-1.json"));
        let part = self.text(part);
        let folder = self.at("");
        let folder = folder.to_str().expect("text").trim_end_matches('/');
        self.run(&start(folder, "agent-1", size, &settings, Some(&part)))
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.at("")).expect("a folder");
        let name = |entry: fs::DirEntry| entry.file_name().into_string().expect("text");
        let mut names: Vec<_> = entries.map(|entry| name(entry.expect("a file"))).collect();
        names.sort();
        names
    }
}

#[test]
fn a_look_tells_what_there_is() {
    let home = Home::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("a port").port();
    let seen = home.look("agent-1", 3, port, false);
    assert_eq!(Path::new(&seen.folder), home.0.path().join(".sandyard"));
    assert_eq!(seen.machine, std::env::consts::ARCH);
    assert!(seen.is_taken && !seen.has_program && !seen.is_running);
    assert!(seen.has_gzip && seen.free_kib.is_some() && seen.workspace.ends_with("/workspace"));
    drop(listener);
    fs::write(home.at("agent-1"), "abc").expect("written");
    // Whoever has that number now is nobody of ours.
    fs::write(home.at("tools.pid"), std::process::id().to_string()).expect("written");
    // A program that another test starts has a copy of our socket for a moment.
    let give_up = Instant::now() + Duration::from_secs(60);
    let seen = loop {
        let seen = home.look("agent-1", 3, port, true);
        if !seen.is_taken {
            break seen;
        }
        assert!(Instant::now() < give_up, "the port stays taken");
    };
    assert!(seen.has_program && !seen.is_running);
    assert!(!home.look("agent-1", 4, port, false).has_program);
}

#[test]
fn what_is_started_is_known_and_what_fails_says_why() {
    let home = Home::new();
    for part in ["agent-1.part-1", "agent-1.part-1.gz"] {
        let (is_well, said) = home.start(SERVER, part);
        assert!(is_well, "{said}");
        assert_eq!(home.names(), ["agent-1", "tools.log", "tools.pid"]);
        let first = fs::read_to_string(home.at("tools.pid")).expect("a number");
        assert!(home.look("agent-1", 1, 1, false).is_running);
        // Another that comes too late takes nothing from it.
        let (is_well, said) = home.start("#!/bin/sh\necho no such luck >&2\nexit 1\n", part);
        assert!(!is_well && said.contains("no such luck"), "{said}");
        let (is_well, said) = home.run(&start(
            &home.text(""),
            "agent-1",
            999,
            &home.text("tools-2.json"),
            Some(&home.text(part)),
        ));
        let why = if part.ends_with(".gz") {
            "unpacked"
        } else {
            "whole"
        };
        assert!(!is_well && said.contains(why), "{said}");
        assert_eq!(home.names(), ["agent-1", "tools.log", "tools.pid"]);
        let kept = fs::read_to_string(home.at("tools.pid")).expect("a number");
        assert_eq!(kept, first);
        home.sh(&format!("kill {}", first.trim()));
    }
}

#[test]
fn one_that_is_being_started_is_seen_and_a_copys_is_ended() {
    let home = Home::new();
    let (is_well, said) = home.start(SERVER, "agent-1.part-1");
    assert!(is_well, "{said}");
    fs::rename(home.at("tools.pid"), home.at("tools-1.pid")).expect("renamed");
    assert!(home.look("agent-1", 1, 1, false).is_running);
    // Even if nothing tells its number.
    fs::remove_file(home.at("tools-1.pid")).expect("removed");
    assert!(!home.look("agent-1", 1, 1, true).is_running);
    let server = format!("{} tool-server", home.text("agent-1"));
    home.sh(&format!(
        "! cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -q '[{}]{}'",
        &server[..1],
        &server[1..]
    ));
}

#[test]
fn what_nobody_needs_is_removed() {
    let home = Home::new();
    // What any process of this machine names is kept, and other runs of this test have the same names.
    let own = |name: &str| name.replacen('-', &format!("-{}x", std::process::id()), 1);
    let gone = [
        "agent-2",
        "agent-1.part-2",
        "agent-3.part",
        "agent-1.part-2.gz",
        "tools-2.json",
        "tools-2.pid",
    ];
    let kept = ["agent-1", "agent-4", "settings.json", "tools.log"];
    let program = own("agent-4");
    home.sh(&format!("printf '#!/bin/sh\\nfor _ in $(seq 600); do sleep 0.1; done\\n' >{program}; chmod 700 {program}"));
    for name in gone.into_iter().chain(kept) {
        home.sh(&format!("touch -d '1 hour ago' {}", own(name)));
    }
    let fresh = ["agent-1.part-6", "agent-5", "tools-6.json"];
    home.sh(&format!("touch {}", fresh.map(own).join(" ")));
    let mut agent = Command::new(home.at(&program));
    let mut agent = agent.arg("agent").spawn().expect("an agent");
    home.look(&own("agent-1"), 1, 1, false);
    let left = home.names();
    agent.kill().expect("killed");
    agent.wait().expect("its end");
    let mut expected: Vec<_> = kept.into_iter().chain(fresh).map(own).collect();
    expected.sort_unstable();
    assert_eq!(left, expected);
    home.look(&own("agent-1"), 1, 1, false);
    assert!(!home.at(&program).exists());
}

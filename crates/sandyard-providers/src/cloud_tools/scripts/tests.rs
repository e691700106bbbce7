use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::super::inspection::Inspection;
use super::*;

/// A server that listens at once and runs for a minute. `$3` is the path of the settings.
const SERVER: &str = "#!/bin/sh\nrm \"$3\"\nfor _ in $(seq 600); do sleep 0.1; done\n";

/// A home directory with the folder.
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

    /// Runs a command as an agent would; returns whether it succeeded, and its output.
    fn run(&self, config: &ProcessConfig) -> (bool, String) {
        let mut command = Command::new(&config.cmd);
        command.args(&config.args).env("HOME", self.0.path());
        let output = command.output().expect("a shell");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.success(), text)
    }

    fn inspect(&self, program: &str, size: u64, port: u16, replace: bool) -> Inspection {
        let workspace = self.0.path().join("workspace");
        let workspace = workspace.to_str().expect("text");
        Inspection::read(
            &self
                .run(&inspect(program, size, port, replace, workspace))
                .1,
        )
    }

    /// Runs a shell line. A file that this process writes itself may still be open in another thread when it is to be run.
    fn sh(&self, line: &str) {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", line]).current_dir(self.at(""));
        assert!(command.status().expect("a shell").success(), "{line}");
    }

    /// Starts a program that was sent.
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
fn an_inspection_reports_the_facts() {
    let home = Home::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("a port").port();
    let inspection = home.inspect("agent-1", 3, port, false);
    assert_eq!(
        Path::new(&inspection.folder),
        home.0.path().join(".sandyard")
    );
    assert_eq!(inspection.machine, std::env::consts::ARCH);
    assert!(inspection.is_port_in_use && !inspection.has_program && !inspection.is_running);
    assert!(
        inspection.has_gzip
            && inspection.free_kib.is_some()
            && inspection.workspace.ends_with("/workspace")
    );
    drop(listener);
    fs::write(home.at("agent-1"), "abc").expect("written");
    // The process that has this number now is not a tool server.
    fs::write(home.at("tools.pid"), std::process::id().to_string()).expect("written");
    // A child process of another test has a copy of the socket for a moment.
    let give_up = Instant::now() + Duration::from_secs(60);
    let inspection = loop {
        let inspection = home.inspect("agent-1", 3, port, true);
        if !inspection.is_port_in_use {
            break inspection;
        }
        assert!(Instant::now() < give_up, "the port stays in use");
    };
    assert!(inspection.has_program && !inspection.is_running);
    assert!(!home.inspect("agent-1", 4, port, false).has_program);
}

#[test]
fn a_started_server_is_found_and_a_failed_start_gives_its_reason() {
    let home = Home::new();
    for part in ["agent-1.part-1", "agent-1.part-1.gz"] {
        let (is_well, output) = home.start(SERVER, part);
        assert!(is_well, "{output}");
        assert_eq!(home.names(), ["agent-1", "tools.log", "tools.pid"]);
        let first = fs::read_to_string(home.at("tools.pid")).expect("a number");
        assert!(home.inspect("agent-1", 1, 1, false).is_running);
        // A second start that comes too late takes nothing from the first.
        let (is_well, output) = home.start("#!/bin/sh\necho no such luck >&2\nexit 1\n", part);
        assert!(!is_well && output.contains("no such luck"), "{output}");
        let (is_well, output) = home.run(&start(
            &home.text(""),
            "agent-1",
            999,
            &home.text("tools-2.json"),
            Some(&home.text(part)),
        ));
        let reason = if part.ends_with(".gz") {
            "unpacked"
        } else {
            "complete"
        };
        assert!(!is_well && output.contains(reason), "{output}");
        assert_eq!(home.names(), ["agent-1", "tools.log", "tools.pid"]);
        let after = fs::read_to_string(home.at("tools.pid")).expect("a number");
        assert_eq!(after, first);
        home.sh(&format!("kill {}", first.trim()));
    }
}

#[test]
fn a_starting_server_is_found_and_that_of_a_copied_sandbox_is_ended() {
    let home = Home::new();
    let (is_well, output) = home.start(SERVER, "agent-1.part-1");
    assert!(is_well, "{output}");
    fs::rename(home.at("tools.pid"), home.at("tools-1.pid")).expect("renamed");
    assert!(home.inspect("agent-1", 1, 1, false).is_running);
    // Also when no file contains its pid.
    fs::remove_file(home.at("tools-1.pid")).expect("removed");
    assert!(!home.inspect("agent-1", 1, 1, true).is_running);
    let server = format!("{} tool-server", home.text("agent-1"));
    home.sh(&format!(
        "! cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -q '[{}]{}'",
        &server[..1],
        &server[1..]
    ));
}

#[test]
fn unused_files_are_removed() {
    let home = Home::new();
    // Files that any process on this machine names are retained, and other runs of this test use the same names.
    let own_name = |name: &str| name.replacen('-', &format!("-{}x", std::process::id()), 1);
    let removed = [
        "agent-2",
        "agent-1.part-2",
        "agent-3.part",
        "agent-1.part-2.gz",
        "tools-2.json",
        "tools-2.pid",
    ];
    let remaining = ["agent-1", "agent-4", "settings.json", "tools.log"];
    let program = own_name("agent-4");
    home.sh(&format!("printf '#!/bin/sh\\nfor _ in $(seq 600); do sleep 0.1; done\\n' >{program}; chmod 700 {program}"));
    for name in removed.into_iter().chain(remaining) {
        home.sh(&format!("touch -d '1 hour ago' {}", own_name(name)));
    }
    let fresh = ["agent-1.part-6", "agent-5", "tools-6.json"];
    home.sh(&format!("touch {}", fresh.map(own_name).join(" ")));
    let mut agent = Command::new(home.at(&program));
    let mut agent = agent.arg("agent").spawn().expect("an agent");
    home.inspect(&own_name("agent-1"), 1, 1, false);
    let names_after = home.names();
    agent.kill().expect("killed");
    agent.wait().expect("its end");
    let mut expected: Vec<_> = remaining.into_iter().chain(fresh).map(own_name).collect();
    expected.sort_unstable();
    assert_eq!(names_after, expected);
    home.inspect(&own_name("agent-1"), 1, 1, false);
    assert!(!home.at(&program).exists());
}

//! A process with a word in its environment.

use std::io;
use std::process::{Child, Command, Stdio};

use crate::plan::HostProcess;
use crate::search::start_time;

#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    target: HostProcess,
}

impl Process {
    /// `cat` waiting on a pipe of ours: should we die without a drop, it ends with the pipe.
    pub(super) fn plant(word: &str) -> io::Result<Self> {
        let marker = format!("planted-word-{word}");
        let mut child = Command::new("cat")
            .env("SANDYARD_PLANT", &marker)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let pid = i32::try_from(child.id()).unwrap_or(0);
        let Some(start_time) = start_time(pid) else {
            let _ = child.kill();
            let _ = child.wait();
            return Err(io::Error::other("the process was gone at once"));
        };
        Ok(Self {
            child,
            target: HostProcess {
                pid,
                start_time,
                marker,
            },
        })
    }

    pub(super) fn target(&self) -> HostProcess {
        self.target.clone()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

//! The user's terminal: its size and raw mode.

use std::io::IsTerminal;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use sandyard_wire::process::PtySize;

/// The size of the user's terminal, or 80 by 24.
pub(super) fn terminal_size() -> PtySize {
    let size = tcgetwinsize(std::io::stdout()).or_else(|_| tcgetwinsize(std::io::stdin()));
    match size {
        Ok(size) if size.ws_col > 0 => PtySize {
            cols: size.ws_col.into(),
            rows: size.ws_row.into(),
        },
        _ => PtySize { cols: 80, rows: 24 },
    }
}

/// The terminal in raw mode: keystrokes are read unprocessed. Dropping it restores the terminal.
#[derive(Debug)]
pub(super) struct RawTerminal {
    before: Termios,
}

impl RawTerminal {
    /// Switches to raw mode; `None` when standard input is not a terminal.
    pub(super) fn enter() -> Option<Self> {
        if !std::io::stdin().is_terminal() {
            return None;
        }
        let before = tcgetattr(std::io::stdin()).ok()?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(std::io::stdin(), OptionalActions::Now, &raw).ok()?;
        Some(Self { before })
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.before);
    }
}

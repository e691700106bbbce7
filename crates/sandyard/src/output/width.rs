//! The width of the terminal.

use std::io::IsTerminal;

use rustix::termios::tcgetwinsize;

/// The number of columns of the terminal that standard output is; none if it is not a terminal.
pub(crate) fn terminal_width() -> Option<usize> {
    let stdout = std::io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    let columns = tcgetwinsize(stdout).ok()?.ws_col;
    (columns > 0).then_some(columns.into())
}

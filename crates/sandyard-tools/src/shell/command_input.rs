//! How a command is typed into a shell, and how its end is detected.
//!
//! The command is typed as the value of a variable, so that an open quote, a here-document or a control character in it has no
//! effect, and is then evaluated. Before and after it, the shell writes a marker with a random number to the terminal. Exactly the
//! output between the markers is the command's output, because both pass through the same terminal. This needs no file and no
//! process, so a shell can still run `rm` when the disk is full.
//!
//! The closing marker is written twice: by the command line itself, and by what the shell runs or prints before it reads the next
//! line. The second one is for commands that are interrupted (Ctrl-C, an error that discards the rest of the line). The first one to
//! arrive counts.

use std::fmt::Write as _;

/// Kinds of shells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// GNU bash.
    Bash,
    /// Any other POSIX shell.
    Sh,
}

/// First part of every marker: an operating system command (OSC) that no terminal uses.
const MARKER: &str = "5379";
/// Maximum length of a typed line: a terminal accepts 4,095 bytes, small shells less.
const MAX_LINE_BASH: usize = 3_500;
const MAX_LINE_SH: usize = 700;
/// A prompt that prints nothing but is not empty: start-up files treat an empty prompt as a non-interactive shell.
const SILENT_PROMPT: &str = "'${0:+}'";

/// A random number for one command.
pub(super) fn nonce() -> String {
    // Every kernel that we run on has random bytes.
    let bytes = sandyard_core::random::bytes().unwrap_or_default();
    format!("{:039}", u128::from_ne_bytes(bytes))
}

/// The first bytes of markers with this number.
pub(super) fn marker_start(nonce: &str) -> Vec<u8> {
    format!("\x1b]{MARKER};{nonce};").into_bytes()
}

/// The lines to type to run a command, each with its newline.
///
/// `last` is the exit code of the previous command, the value of `$?` for this one.
pub(super) fn lines(kind: Kind, nonce: &str, command: &str, last: i32) -> Vec<String> {
    // Each on its own line, because assigning to a read-only variable discards the rest of the line.
    let mut lines = match kind {
        Kind::Bash => vec![" unset PROMPT_COMMAND\n".to_owned()],
        Kind::Sh => Vec::new(),
    };
    lines.extend([
        format!(" PS1={SILENT_PROMPT}\n"),
        " PS2=\n".into(),
        " __sandyard=\n".into(),
    ]);
    lines.extend(pieces(kind, command).into_iter().map(|piece| match kind {
        Kind::Bash => format!(" __sandyard+=$'{piece}'\n"),
        // The letter protects trailing newlines, which a substitution would remove.
        Kind::Sh => format!(
            " __sandyard=$__sandyard$(printf '%bx' '{piece}'); __sandyard=${{__sandyard%x}}\n"
        ),
    }));
    lines.push(format!(
        " {watch}; {begin}; {status}eval \"$__sandyard\"; {end}\n",
        watch = watch(kind, nonce),
        begin = begin(nonce),
        status = status(last),
        end = end(kind, nonce),
    ));
    lines
}

/// Writes the opening marker to the terminal, even if the shell's output is redirected, without a trace of it (`set -x`).
fn begin(nonce: &str) -> String {
    format!("{{ \\command printf '\\033]{MARKER};{nonce};B\\007'; }} >/dev/tty 2>/dev/null || :")
}

/// Writes the closing marker. Discards unread input first, because the shell would run it as commands. It must do so only once:
/// after a late interrupt the shell runs this again, and the next command may already have been typed.
fn end(kind: Kind, nonce: &str) -> String {
    let (drain, once) = match kind {
        Kind::Bash => (
            format!(
                "[[ ${{__sandyard_end-}} = {nonce} ]] || \
                 {{ while \\command read -t 0; do IFS= \\command read -r -t 1 __sandyard_rest || break; done; \
                 __sandyard_end={nonce}; }}; "
            ),
            "; unset PROMPT_COMMAND",
        ),
        Kind::Sh => (String::new(), ""),
    };
    format!(
        "{{ __sandyard=$?; {drain}\\command printf '\\033]{MARKER};{nonce};E%d\\007' \"$__sandyard\"{once}; }} \
         </dev/tty >/dev/tty 2>/dev/null || :"
    )
}

/// Makes the shell write the closing marker when the line is interrupted.
fn watch(kind: Kind, nonce: &str) -> String {
    match kind {
        Kind::Bash => format!(
            "declare PROMPT_COMMAND='{}' 2>/dev/null || :",
            end(kind, nonce).replace('\'', "'\\''")
        ),
        Kind::Sh => {
            format!("PS1=\"$(printf '\\033]{MARKER};{nonce};E')\"'$?'\"$(printf '\\007')\"")
        }
    }
}

/// Sets `$?` to the last command's exit code, unless `set -e` would end the shell.
fn status(last: i32) -> String {
    if last == 0 {
        return String::new();
    }
    format!("{{ case $- in *e*) ;; *) (exit {last});; esac; }} 2>/dev/null; ")
}

/// A command in pieces that fit into a line, quoted for the shell.
fn pieces(kind: Kind, command: &str) -> Vec<String> {
    let max_line = match kind {
        Kind::Bash => MAX_LINE_BASH,
        Kind::Sh => MAX_LINE_SH,
    };
    let mut pieces = Vec::new();
    let mut piece = String::new();
    for char in command.chars() {
        if piece.len() + 8 > max_line {
            pieces.push(std::mem::take(&mut piece));
        }
        let written = match (kind, char) {
            (Kind::Bash, '\'' | '\\' | '!' | '\0'..='\x1f' | '\x7f') => {
                write!(piece, "\\{:03o}", u32::from(char))
            }
            (Kind::Sh, '\'' | '\\' | '!' | '\0'..='\x1f' | '\x7f') => {
                write!(piece, "\\0{:03o}", u32::from(char))
            }
            _ => {
                piece.push(char);
                Ok(())
            }
        };
        debug_assert!(written.is_ok(), "writing to a string does not fail");
    }
    pieces.push(piece);
    pieces
}

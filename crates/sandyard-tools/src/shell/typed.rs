//! How a command is given to a shell, and how the shell says that it is done.
//!
//! A command is typed into the terminal as the value of a variable, so that nothing in it can be taken for anything else: not
//! an open quote, not a here-document, not a control character. Then it is evaluated. Before and after it, the shell writes a
//! mark to the terminal that holds a random number made for this one command: what came between the marks is the command's
//! output, exactly, because both went through the same terminal. No file and no process is needed for it, so a shell whose disk
//! is full still takes `rm`.
//!
//! The closing mark is written twice: by the line itself, and by what the shell runs or shows before it reads the
//! next line. The
//! second is for commands that are broken off (Ctrl-C, an error that throws the rest of the line away). The first to
//! come counts.

use std::fmt::Write as _;

/// What shells there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// GNU bash.
    Bash,
    /// Any other POSIX shell.
    Sh,
}

/// The first part of every mark: an operating system command no terminal knows.
const MARK: &str = "5379";
/// Longest typed line: a terminal takes 4,095 bytes of one, and small shells less.
const MAX_LINE_BASH: usize = 3_500;
const MAX_LINE_SH: usize = 700;
/// Prints nothing, and is not empty: start-up files take an empty prompt for a shell without a person.
const SILENT_PROMPT: &str = "'${0:+}'";

/// A random number for one command.
pub(super) fn nonce() -> String {
    // There is no kernel we run on that has none.
    let bytes = sandyard_core::random::bytes().unwrap_or_default();
    format!("{:039}", u128::from_ne_bytes(bytes))
}

/// How marks of this number begin, in bytes.
pub(super) fn mark_start(nonce: &str) -> Vec<u8> {
    format!("\x1b]{MARK};{nonce};").into_bytes()
}

/// What is typed to run a command: every line whole, with its end.
///
/// `last` is the exit code of the command before, which `$?` is to tell the command.
pub(super) fn lines(kind: Kind, nonce: &str, command: &str, last: i32) -> Vec<String> {
    // Each on a line of its own: a variable that cannot be changed ends the line it is in.
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
        // The letter keeps line ends that a substitution would drop.
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

/// What writes the opening mark. It goes to the terminal even where the shell's own output went elsewhere, and no trace of it
/// is seen.
fn begin(nonce: &str) -> String {
    format!("{{ \\command printf '\\033]{MARK};{nonce};B\\007'; }} >/dev/tty 2>/dev/null || :")
}

/// What writes the closing mark. Input nobody read is thrown away first: the shell would take it for commands. That must not
/// happen again afterwards, when the next command may already have been typed: an interrupt that comes late, between the mark
/// and the end of this, makes the shell do it all once more.
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
        "{{ __sandyard=$?; {drain}\\command printf '\\033]{MARK};{nonce};E%d\\007' \"$__sandyard\"{once}; }} \
         </dev/tty >/dev/tty 2>/dev/null || :"
    )
}

/// What makes the shell write the closing mark when the line was broken off.
fn watch(kind: Kind, nonce: &str) -> String {
    match kind {
        Kind::Bash => format!(
            "declare PROMPT_COMMAND='{}' 2>/dev/null || :",
            end(kind, nonce).replace('\'', "'\\''")
        ),
        Kind::Sh => format!("PS1=\"$(printf '\\033]{MARK};{nonce};E')\"'$?'\"$(printf '\\007')\""),
    }
}

/// What makes `$?` be what the last command left; not where it would end the shell.
fn status(last: i32) -> String {
    if last == 0 {
        return String::new();
    }
    format!("{{ case $- in *e*) ;; *) (exit {last});; esac; }} 2>/dev/null; ")
}

/// A command in pieces that each fit into a line, quoted for that shell.
fn pieces(kind: Kind, command: &str) -> Vec<String> {
    let most = match kind {
        Kind::Bash => MAX_LINE_BASH,
        Kind::Sh => MAX_LINE_SH,
    };
    let mut pieces = Vec::new();
    let mut piece = String::new();
    for char in command.chars() {
        if piece.len() + 8 > most {
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
        debug_assert!(written.is_ok(), "a string takes everything");
    }
    pieces.push(piece);
    pieces
}

//! Failures with the contents of a volume, with paths as the client knows them.

use sandyard_core::ErrorKind;
use sandyard_provider::VOLUME_PATH;
use sandyard_service::ServiceError;

/// Nothing exists at a path.
pub(super) fn not_found(path: &str) -> ServiceError {
    ServiceError::new(
        ErrorKind::FileNotFound,
        format!("path `{}` not found", printable(path)),
    )
}

/// Translates the failure of a program, by the end of its error output.
pub(super) fn of(path: &str, output: &[u8], operation: &str) -> ServiceError {
    let output = String::from_utf8_lossy(output);
    let because = |kind: ErrorKind, reason: &str| {
        ServiceError::new(
            kind,
            format!("cannot {operation} `{}`: {reason}", printable(path)),
        )
    };
    let has = |text: &str| output.trim_end().ends_with(text);
    match () {
        () if has("No such file or directory") => not_found(path),
        () if has("Not a directory") && matches!(operation, "look at" | "remove") => {
            not_found(path)
        }
        () if has("Not a directory") => {
            because(ErrorKind::Invalid, "it or a parent is not a folder").field("path")
        }
        () if has("File exists") => because(ErrorKind::Conflict, "it already exists"),
        () if has("No space left on device") => because(ErrorKind::NoSpace, "the volume is full"),
        () if has("File name too long") => {
            because(ErrorKind::Invalid, "the name is too long").field("path")
        }
        () if has("Too many levels of symbolic links") => {
            because(ErrorKind::Invalid, "its links form a loop").field("path")
        }
        () => because(ErrorKind::AgentFailed, &printable(&client_paths(&output))),
    }
}

/// Replaces the paths in an agent's error by those that the client knows.
pub(super) fn with_client_paths(error: impl Into<ServiceError>) -> ServiceError {
    let mut error = error.into();
    error.message = client_paths(&error.message);
    error
}

/// A text with paths as the client knows them, in any quotes.
fn client_paths(text: &str) -> String {
    let mut result = text.to_owned();
    for quote in ['\'', '"', '`', ' '] {
        result = result.replace(&format!("{quote}{VOLUME_PATH}/"), &format!("{quote}/"));
        for end in [quote, ':'] {
            let root = format!("{quote}{VOLUME_PATH}{end}");
            result = result.replace(&root, &format!("{quote}/{end}"));
        }
    }
    result
}

/// An untrusted text, made safe for a message.
fn printable(text: &str) -> String {
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    plain.take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_of_programs_are_translated() {
        for (output, operation, kind) in [
            (
                "find: '/volume/a': No such file or directory\n",
                "look at",
                ErrorKind::FileNotFound,
            ),
            (
                "find: '/volume/a/.': Not a directory\n",
                "list",
                ErrorKind::Invalid,
            ),
            (
                "find: '/volume/a/b': Not a directory\n",
                "look at",
                ErrorKind::FileNotFound,
            ),
            (
                "mkdir: cannot create directory '/volume/No such file or directory': File exists\n",
                "make",
                ErrorKind::Conflict,
            ),
            (
                "mkdir: cannot create directory '/volume/a': No space left on device\n",
                "make",
                ErrorKind::NoSpace,
            ),
            ("\u{1b}[31mwhat?\n", "make", ErrorKind::AgentFailed),
            (
                "rm: cannot remove '/volume/a': Operation not permitted\n",
                "remove",
                ErrorKind::AgentFailed,
            ),
            ("", "make", ErrorKind::AgentFailed),
        ] {
            let problem = of("/a\nb", output.as_bytes(), operation);
            assert_eq!(problem.kind, kind, "{output}");
            assert!(!problem.message.contains(['\n', '\u{1b}']), "{problem}");
            assert!(!problem.message.contains("/volume"), "{problem}");
        }
    }

    #[test]
    fn messages_have_paths_as_the_client_knows_them() {
        for (output, wanted) in [
            ("'/volume/a': gone", "'/a': gone"),
            ("path '/volume' is a directory", "path '/' is a directory"),
            (
                "path '/volume/root' is a directory",
                "path '/root' is a directory",
            ),
            ("cannot open /volume/a: no", "cannot open /a: no"),
            ("\"/volume/a\", `/volume`", "\"/a\", `/`"),
            ("'/volumes/a'", "'/volumes/a'"),
            ("'/a/volume/b'", "'/a/volume/b'"),
        ] {
            let error = ServiceError::new(ErrorKind::Internal, output);
            assert_eq!(with_client_paths(error).message, wanted);
        }
    }
}

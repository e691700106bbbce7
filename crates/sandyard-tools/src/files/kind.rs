//! The kind of a file, by its first bytes.

/// Number of bytes that determine the kind.
pub(crate) const START: usize = 8 * 1024;

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Text, possibly with invalid bytes.
    Text,
    /// An image of a supported type, with its media type.
    Image(&'static str),
    /// A PDF document.
    Pdf,
    /// Something else, with a description.
    Binary(&'static str),
}

/// First bytes of known kinds.
const SIGNATURES: &[(&[u8], Kind)] = &[
    (b"\x89PNG\r\n\x1a\n", Kind::Image("image/png")),
    (b"\xff\xd8\xff", Kind::Image("image/jpeg")),
    (b"GIF87a", Kind::Image("image/gif")),
    (b"GIF89a", Kind::Image("image/gif")),
    (b"%PDF-", Kind::Pdf),
    (b"\x7fELF", Kind::Binary("a program or library (ELF)")),
    (
        b"PK\x03\x04",
        Kind::Binary("a ZIP archive (or an office document, a wheel, a jar)"),
    ),
    (b"\x1f\x8b", Kind::Binary("compressed with gzip")),
    (b"BZh", Kind::Binary("compressed with bzip2")),
    (b"\xfd7zXZ\0", Kind::Binary("compressed with xz")),
    (b"\x28\xb5\x2f\xfd", Kind::Binary("compressed with zstd")),
    (b"7z\xbc\xaf\x27\x1c", Kind::Binary("a 7z archive")),
    (b"SQLite format 3\0", Kind::Binary("an SQLite database")),
    (b"\0asm", Kind::Binary("a WebAssembly module")),
    (
        b"\xca\xfe\xba\xbe",
        Kind::Binary("a Java class or a Mach-O program"),
    ),
    (b"OggS", Kind::Binary("audio or video (Ogg)")),
    (b"ID3", Kind::Binary("audio (MP3)")),
    (b"\x1a\x45\xdf\xa3", Kind::Binary("video (Matroska, WebM)")),
    (b"PAR1", Kind::Binary("a Parquet table")),
    (
        b"\xff\xfe",
        Kind::Binary("text in UTF-16: convert it with `iconv -f UTF-16 -t UTF-8`"),
    ),
    (
        b"\xfe\xff",
        Kind::Binary("text in UTF-16: convert it with `iconv -f UTF-16 -t UTF-8`"),
    ),
];

impl Kind {
    /// Of a file that starts like this.
    pub(crate) fn of(start: &[u8]) -> Self {
        let signature = SIGNATURES
            .iter()
            .find(|(beginning, _)| start.starts_with(beginning));
        if let Some((beginning, kind)) = signature
            // A text can start with the same two or three letters.
            && (beginning.len() > 3 || !matches!(kind, Self::Binary(_)) || start.iter().any(|byte| is_not_ascii_text(*byte)))
        {
            return *kind;
        }
        match (start.get(..4), start.get(4..12)) {
            (Some(b"RIFF"), Some(rest)) if rest.ends_with(b"WEBP") => Self::Image("image/webp"),
            (Some(b"RIFF"), Some(_)) => Self::Binary("audio or video (RIFF)"),
            (_, Some(rest)) if rest.starts_with(b"ftyp") => Self::Binary("video or audio (MP4)"),
            _ if start.contains(&0) => Self::Binary("binary data"),
            _ => Self::Text,
        }
    }
}

/// Returns whether a byte does not occur in ASCII text.
fn is_not_ascii_text(byte: u8) -> bool {
    byte == 0 || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_recognised_by_their_first_bytes() {
        assert_eq!(Kind::of(b""), Kind::Text);
        assert_eq!(Kind::of(b"hello\n"), Kind::Text);
        assert_eq!(Kind::of("grün".as_bytes()), Kind::Text);
        assert_eq!(Kind::of(b"caf\xe9 in Latin-1"), Kind::Text);
        assert_eq!(Kind::of(b"BZh is how this text begins"), Kind::Text);
        assert_eq!(Kind::of(b"ID3 tags are explained here"), Kind::Text);
        assert_eq!(Kind::of(b"\x89PNG\r\n\x1a\nrest"), Kind::Image("image/png"));
        assert_eq!(Kind::of(b"\xff\xd8\xff\xe0"), Kind::Image("image/jpeg"));
        assert_eq!(Kind::of(b"GIF89a"), Kind::Image("image/gif"));
        assert_eq!(
            Kind::of(b"RIFF\x10\0\0\0WEBPVP8 "),
            Kind::Image("image/webp")
        );
        assert!(matches!(
            Kind::of(b"RIFF\x10\0\0\0WAVEfmt "),
            Kind::Binary(_)
        ));
        assert!(matches!(Kind::of(b"\x7fELF\x02"), Kind::Binary(_)));
        assert!(matches!(Kind::of(b"\x1f\x8b\x08"), Kind::Binary(_)));
        assert!(matches!(Kind::of(b"a\0b"), Kind::Binary("binary data")));
        assert_eq!(Kind::of(b"%PDF-1.7"), Kind::Pdf);
    }
}

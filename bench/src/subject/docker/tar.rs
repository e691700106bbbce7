//! A tar archive of one file, which is how files travel through Docker's API.

const BLOCK: usize = 512;

/// Returns the header of a plain file of `bytes`.
pub(super) fn head(name: &str, bytes: usize) -> Vec<u8> {
    let mut head = vec![0; BLOCK];
    put(&mut head, 0, name.as_bytes());
    put(&mut head, 100, b"0000644\0");
    put(&mut head, 108, b"0000000\0");
    put(&mut head, 116, b"0000000\0");
    put(&mut head, 124, format!("{bytes:011o}\0").as_bytes());
    put(&mut head, 136, b"00000000000\0");
    put(&mut head, 156, b"0");
    put(&mut head, 257, b"ustar\x0000");
    // The sum counts its own field as spaces.
    put(&mut head, 148, b"        ");
    let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
    put(&mut head, 148, format!("{sum:06o}\0 ").as_bytes());
    head
}

/// Returns what follows the content: zeroes to the end of its block, and two blocks that end the archive.
pub(super) fn padding(bytes: usize) -> Vec<u8> {
    vec![0; bytes.next_multiple_of(BLOCK) - bytes + 2 * BLOCK]
}

fn put(head: &mut [u8], at: usize, field: &[u8]) {
    head[at..at + field.len()].copy_from_slice(field);
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn tar_reads_what_we_write() {
        let mut tar = Command::new("tar")
            .args(["--extract", "--to-stdout", "--file=-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let content = vec![7; 1000];
        let archive = [head("data", 1000), content.clone(), padding(1000)].concat();
        tar.stdin.take().unwrap().write_all(&archive).unwrap();
        let output = tar.wait_with_output().unwrap();
        assert!(output.status.success());
        assert_eq!(output.stdout, content);
    }
}

//! `test` and `[`.

use super::Shell;

impl Shell {
    /// Whether a condition holds; none when it is not understood.
    pub(super) fn holds(&self, condition: &[String]) -> Option<bool> {
        let words: Vec<&str> = condition.iter().map(String::as_str).collect();
        match words.as_slice() {
            [] => Some(false),
            [text] => Some(!text.is_empty()),
            ["!", ..] => self.holds(&condition[1..]).map(|holds| !holds),
            ["-z", text] => Some(text.is_empty()),
            ["-n", text] => Some(!text.is_empty()),
            [sign @ ("-e" | "-f" | "-d" | "-s" | "-r" | "-w"), path] => {
                Some(self.is_there(sign, path))
            }
            [one, "=" | "==", other] => Some(one == other),
            [one, "!=", other] => Some(one != other),
            [one, sign, other] => {
                let (one, other): (i64, i64) = (one.parse().ok()?, other.parse().ok()?);
                match *sign {
                    "-eq" => Some(one == other),
                    "-ne" => Some(one != other),
                    "-lt" => Some(one < other),
                    "-le" => Some(one <= other),
                    "-gt" => Some(one > other),
                    "-ge" => Some(one >= other),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn is_there(&self, sign: &str, path: &str) -> bool {
        let Ok(node) = self.machine.disk.get(&self.path(path)) else {
            return false;
        };
        match sign {
            "-f" => !node.is_folder(),
            "-d" => node.is_folder(),
            "-s" => crate::agent::disk::size(&node) > 0,
            _ => true,
        }
    }
}

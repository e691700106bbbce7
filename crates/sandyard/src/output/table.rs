//! Tables with aligned columns, and lists of fields.

use super::{Colour, escape_control, line, use_colour};

/// A cell of a table. Control characters in it are escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    text: String,
    colour: Option<Colour>,
}

impl Cell {
    /// A status in its colour.
    pub(crate) fn status(status: &str) -> Self {
        Self {
            colour: Colour::of_status(status),
            ..Self::from(status)
        }
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        let text = match text.as_ref() {
            "" => "-".to_owned(),
            text => escape_control(text).into_owned(),
        };
        Self { text, colour: None }
    }
}

/// Prints rows under headings.
pub(crate) fn table(headings: &[&str], rows: &[Vec<Cell>]) {
    for text in lines(headings, rows, use_colour()) {
        line(text);
    }
}

/// Prints one `name: value` line for each field.
pub(crate) fn fields(pairs: &[(&str, Cell)]) {
    let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + 1;
    for (name, cell) in pairs {
        let name = format!("{name}:");
        line(format!("{name:width$}  {}", render(cell, use_colour())));
    }
}

fn lines(headings: &[&str], rows: &[Vec<Cell>], colourful: bool) -> Vec<String> {
    let head: Vec<Cell> = headings
        .iter()
        .map(|heading| Cell {
            text: (*heading).to_owned(),
            colour: Some(Colour::Bold),
        })
        .collect();
    let all = || std::iter::once(&head).chain(rows);
    let width = |column: usize| {
        let cells = all().filter_map(|row| row.get(column));
        cells
            .map(|cell| cell.text.chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    all().map(|row| one_line(row, &widths, colourful)).collect()
}

fn one_line(row: &[Cell], widths: &[usize], colourful: bool) -> String {
    let mut text = String::new();
    for (column, cell) in row.iter().enumerate() {
        text.push_str(&render(cell, colourful));
        // No padding after the last column: long lines would wrap.
        if column + 1 < row.len() {
            let missing = widths[column].saturating_sub(cell.text.chars().count());
            text.push_str(&" ".repeat(missing + 2));
        }
    }
    text
}

fn render(cell: &Cell, colourful: bool) -> String {
    match cell.colour {
        Some(colour) if colourful => colour.wrap(&cell.text),
        _ => cell.text.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Vec<Cell>> {
        vec![
            vec!["abc".into(), Cell::status("running"), "x".into()],
            vec!["é".into(), Cell::status("paused"), "".into()],
        ]
    }

    #[test]
    fn columns_are_aligned() {
        assert_eq!(
            lines(&["ID", "STATUS", "NAME"], &rows(), false),
            ["ID   STATUS   NAME", "abc  running  x", "é    paused   -"]
        );
    }

    #[test]
    fn colours_do_not_change_the_alignment() {
        let painted = lines(&["ID", "STATUS", "NAME"], &rows(), true);
        assert_eq!(painted[1], "abc  \x1b[32mrunning\x1b[0m  x");
        assert_eq!(painted[2], "é    \x1b[33mpaused\x1b[0m   -");
    }

    #[test]
    fn control_characters_in_a_cell_are_escaped() {
        let rows = vec![vec![Cell::from("a\nb"), Cell::from("\x1b[2J")]];
        assert_eq!(lines(&["A", "B"], &rows, false)[1], "a\\nb  \\u{1b}[2J");
    }
}

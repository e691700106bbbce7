//! Rows under headings, columns aligned.

use super::{Colour, is_colourful, line, visible};

/// One cell of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    text: String,
    colour: Option<Colour>,
}

impl Cell {
    /// A sandbox's status, in its colour.
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
            text => visible(text).into_owned(),
        };
        Self { text, colour: None }
    }
}

/// Prints rows under headings.
pub(crate) fn table(headings: &[&str], rows: &[Vec<Cell>]) {
    for text in lines(headings, rows, is_colourful()) {
        line(text);
    }
}

/// Prints names and values below each other.
pub(crate) fn fields(pairs: &[(&str, Cell)]) {
    let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + 1;
    for (name, cell) in pairs {
        let name = format!("{name}:");
        line(format!("{name:width$}  {}", shown(cell, is_colourful())));
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
        text.push_str(&shown(cell, colourful));
        // Spaces at the end of a line would only wrap it.
        if column + 1 < row.len() {
            let missing = widths[column].saturating_sub(cell.text.chars().count());
            text.push_str(&" ".repeat(missing + 2));
        }
    }
    text
}

fn shown(cell: &Cell, colourful: bool) -> String {
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
    fn columns_line_up_whatever_is_in_them() {
        assert_eq!(
            lines(&["ID", "STATUS", "NAME"], &rows(), false),
            ["ID   STATUS   NAME", "abc  running  x", "é    paused   -"]
        );
    }

    #[test]
    fn colours_take_no_room() {
        let painted = lines(&["ID", "STATUS", "NAME"], &rows(), true);
        assert_eq!(painted[1], "abc  \x1b[32mrunning\x1b[0m  x");
        assert_eq!(painted[2], "é    \x1b[33mpaused\x1b[0m   -");
    }

    #[test]
    fn a_cell_cannot_break_out_of_its_line() {
        let rows = vec![vec![Cell::from("a\nb"), Cell::from("\x1b[2J")]];
        assert_eq!(lines(&["A", "B"], &rows, false)[1], "a\\nb  \\u{1b}[2J");
    }
}

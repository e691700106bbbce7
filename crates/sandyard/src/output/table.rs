//! Tables with aligned columns, and lists of fields.

use super::{Colour, escape_control, line, terminal_width, use_colour};

/// A column is not shortened below this width.
const MIN_WIDTH: usize = 8;

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

    /// Cuts the text to a number of characters.
    fn shorten(&mut self, limit: usize) {
        if self.text.chars().count() > limit {
            self.text = self.text.chars().take(limit - 1).chain(['…']).collect();
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

/// The lines of a table that fits the terminal: columns after the first `required` are left out as needed, then the widest of the
/// others but the first is shortened. Without a terminal, everything is shown.
pub(crate) fn fitted_lines(headings: &[&str], required: usize, rows: &[Vec<Cell>]) -> Vec<String> {
    match terminal_width() {
        Some(width) => fit(headings, required, rows, width, use_colour()),
        None => lines(headings, rows, use_colour()),
    }
}

fn fit(
    headings: &[&str],
    required: usize,
    rows: &[Vec<Cell>],
    width: usize,
    colourful: bool,
) -> Vec<String> {
    let widths = widths(headings, rows);
    let total = |count: usize| widths[..count].iter().sum::<usize>() + 2 * count.saturating_sub(1);
    let mut count = headings.len();
    while count > required && total(count) > width {
        count -= 1;
    }
    let mut rows: Vec<Vec<Cell>> = rows
        .iter()
        .map(|row| row.iter().take(count).cloned().collect())
        .collect();
    let excess = total(count).saturating_sub(width);
    let widest = (1..count).max_by_key(|column| widths[*column]);
    if let Some(column) = widest.filter(|_| excess > 0) {
        let limit = widths[column].saturating_sub(excess).max(MIN_WIDTH);
        rows.iter_mut().for_each(|row| row[column].shorten(limit));
    }
    lines(&headings[..count], &rows, colourful)
}

/// Prints one `name: value` line for each field. A field without a name continues the one before.
pub(crate) fn fields(pairs: &[(&str, Cell)]) {
    let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + 1;
    for (name, cell) in pairs {
        let name = match *name {
            "" => String::new(),
            name => format!("{name}:"),
        };
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
    let widths = widths(headings, rows);
    std::iter::once(&head)
        .chain(rows)
        .map(|row| one_line(row, &widths, colourful))
        .collect()
}

/// The width of each column.
fn widths(headings: &[&str], rows: &[Vec<Cell>]) -> Vec<usize> {
    let width = |(column, heading): (usize, &&str)| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        let widest = cells.map(|cell| cell.text.chars().count()).max();
        widest.unwrap_or(0).max(heading.len())
    };
    headings.iter().enumerate().map(width).collect()
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
    fn a_table_fits_the_terminal() {
        let headings = ["ID", "STATUS", "NAME"];
        let rows = [vec![
            "abc".into(),
            "running".into(),
            "a long name of a sandbox".into(),
        ]];
        let row = |required, width| fit(&headings, required, &rows, width, false).remove(1);
        assert_eq!(row(2, 80), "abc  running  a long name of a sandbox");
        assert_eq!(row(2, 30), "abc  running");
        assert_eq!(row(3, 30), "abc  running  a long name of …");
        assert_eq!(row(3, 5), "abc  running  a long …");
    }

    #[test]
    fn control_characters_in_a_cell_are_escaped() {
        let rows = vec![vec![Cell::from("a\nb"), Cell::from("\x1b[2J")]];
        assert_eq!(lines(&["A", "B"], &rows, false)[1], "a\\nb  \\u{1b}[2J");
    }
}

//! Writing to people and programs: standard output for results, standard error for everything else.

use std::io::Write;

use serde::Serialize;

/// Prints a line of results. A reader that has gone away is not an error of ours.
pub(crate) fn line(text: impl AsRef<str>) {
    let _ = writeln!(std::io::stdout(), "{}", text.as_ref());
}

/// Prints a remark.
pub(crate) fn note(text: impl AsRef<str>) {
    let _ = writeln!(std::io::stderr(), "{}", text.as_ref());
}

/// Prints a value for programs.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    line(serde_json::to_string_pretty(value)?);
    Ok(())
}

/// Prints rows under headings, columns aligned.
pub(crate) fn table(headings: &[&str], rows: &[Vec<String>]) {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([headings[column].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    let print = |cells: Vec<&str>| {
        let padded = cells
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:width$}"));
        line(padded.collect::<Vec<_>>().join("  ").trim_end());
    };
    print(headings.to_vec());
    for row in rows {
        print(row.iter().map(String::as_str).collect());
    }
}

/// Prints an error with its causes and what to do about it.
pub(crate) fn error(error: &anyhow::Error) {
    note(format!("error: {error:#}"));
    let hint = error.chain().find_map(|cause| {
        cause
            .downcast_ref::<sandyard_engine::EngineError>()?
            .hint
            .clone()
    });
    if let Some(hint) = hint {
        note(format!("hint: {hint}"));
    }
}

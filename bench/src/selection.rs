//! Selection of the parts of the table to measure.

use anyhow::{Result, bail};

use crate::report::Section;
use crate::rows::group::{GROUPS, Group};

/// Selected parts. An empty selection means everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    parts: Vec<Part>,
}

/// A section, a group or a row; an absent part matches any.
#[derive(Clone, Debug)]
struct Part {
    section: Option<Section>,
    group: Option<&'static str>,
    row: Option<&'static str>,
}

impl Selection {
    /// Parses names: `http`, `exec`, `exec_p50`, or with the section as prefix, `http.exec`.
    pub(crate) fn parse(names: &[String]) -> Result<Self> {
        let parts = names
            .iter()
            .map(|name| parse(name))
            .collect::<Result<_>>()?;
        Ok(Self { parts })
    }

    /// Whether anything of `section` is asked for.
    pub(crate) fn has_section(&self, section: Section) -> bool {
        GROUPS.iter().any(|group| self.has_group(section, group))
    }

    /// Whether any row of `group` is asked for in `section`.
    pub(crate) fn has_group(&self, section: Section, group: &Group) -> bool {
        group.rows.iter().any(|row| self.has_row(section, row))
    }

    /// Whether the row is asked for in `section`.
    pub(crate) fn has_row(&self, section: Section, row: &str) -> bool {
        self.parts.is_empty() || self.parts.iter().any(|part| part.covers(section, row))
    }
}

impl Part {
    fn covers(&self, section: Section, row: &str) -> bool {
        let group = GROUPS.iter().find(|group| group.rows.contains(&row));
        self.section.is_none_or(|wanted| wanted == section)
            && self
                .group
                .is_none_or(|wanted| group.is_some_and(|group| group.name == wanted))
            && self.row.is_none_or(|wanted| wanted == row)
    }
}

fn parse(name: &str) -> Result<Part> {
    let section_called = |name: &str| {
        Section::ALL
            .into_iter()
            .find(|section| section.name() == name)
    };
    if let Some(section) = section_called(name) {
        return Ok(Part {
            section: Some(section),
            group: None,
            row: None,
        });
    }
    let (section, rest) = match name.split_once('.') {
        Some((section, rest)) => (section_called(section), rest),
        None => (None, name),
    };
    let is_strange = name.contains('.') && section.is_none();
    for group in GROUPS.iter().filter(|_| !is_strange) {
        let row = group.rows.iter().copied().find(|row| *row == rest);
        if group.name == rest || row.is_some() {
            return Ok(Part {
                section,
                group: Some(group.name),
                // A group of one row has the same name as the row.
                row: row.filter(|row| *row != group.name),
            });
        }
    }
    let groups: Vec<&str> = GROUPS.iter().map(|group| group.name).collect();
    bail!(
        "no rows are called `{name}`\nhint: `engine`, `http`, one of {}, or a row's id from the JSON; `http.exec` for one section",
        groups.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(names: &[&str]) -> Selection {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        Selection::parse(&names).unwrap()
    }

    #[test]
    fn unknown_rows_are_refused_with_the_known_ones() {
        for name in ["strat", "https.start", "http.strat", ""] {
            let error = Selection::parse(&[name.to_owned()])
                .unwrap_err()
                .to_string();
            assert!(
                error.contains(&format!("`{name}`")) && error.contains("start"),
                "{error}"
            );
        }
    }

    #[test]
    fn nothing_said_is_everything() {
        assert!(Section::ALL.iter().all(|section| {
            GROUPS
                .iter()
                .all(|group| selection(&[]).has_group(*section, group))
        }));
    }

    #[test]
    fn a_section_is_all_of_it_and_nothing_else() {
        let selection = selection(&["http"]);
        assert!(selection.has_section(Section::Http) && !selection.has_section(Section::Engine));
        assert!(selection.has_row(Section::Http, "files"));
    }

    #[test]
    fn a_row_brings_its_group_and_hides_the_others() {
        let selection = selection(&["http.exec_p99", "files"]);
        let exec = GROUPS.iter().find(|group| group.name == "exec").unwrap();
        assert!(selection.has_group(Section::Http, exec));
        assert!(!selection.has_group(Section::Engine, exec));
        assert!(!selection.has_row(Section::Http, "exec_p50"));
        assert!(selection.has_row(Section::Engine, "files"));
    }
}

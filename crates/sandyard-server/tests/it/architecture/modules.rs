//! The modules of a crate and what they import of each other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::source::Source;

/// A module by the names on the way to it; empty for the crate itself.
pub(super) type ModulePath = Vec<String>;

/// A crate, read from its sources.
#[derive(Debug)]
pub(super) struct Crate {
    files: BTreeMap<ModulePath, Source>,
    /// Names that a module exports from elsewhere.
    exports: BTreeMap<ModulePath, ModulePath>,
}

/// One module that names something of another.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Import {
    pub(super) from: ModulePath,
    pub(super) to: ModulePath,
}

impl Crate {
    pub(super) fn read(folder: &Path) -> Self {
        let mut code = Self {
            files: BTreeMap::new(),
            exports: BTreeMap::new(),
        };
        code.add(folder, ModulePath::new(), &["lib.rs"]);
        let mut exports = BTreeMap::new();
        for (module, file) in &code.files {
            for tree in use_trees(&file.code, true) {
                if let Some(target) = code.absolute(module, &tree.path) {
                    exports.insert([module.as_slice(), &[tree.name]].concat(), target);
                }
            }
        }
        code.exports = exports;
        code
    }

    /// Reads a module and those it declares.
    fn add(&mut self, folder: &Path, module: ModulePath, names: &[&str]) {
        let Some(text) = names
            .iter()
            .find_map(|name| std::fs::read_to_string(folder.join(name)).ok())
        else {
            panic!(
                "module {} is not in {}",
                module.join("::"),
                folder.display()
            );
        };
        let source = Source::parse(&text);
        let children = declared_modules(&source.code);
        self.files.insert(module.clone(), source);
        for child in children {
            let path = [module.as_slice(), std::slice::from_ref(&child)].concat();
            let below = match module.last() {
                Some(name) if !folder.ends_with(name) => folder.join(name),
                _ => folder.to_owned(),
            };
            let in_folder = below.join(&child);
            if in_folder.join("mod.rs").exists() {
                self.add(&in_folder, path, &["mod.rs"]);
            } else {
                self.add(&below, path, &[&format!("{child}.rs")]);
            }
        }
    }

    pub(super) fn files(&self) -> impl Iterator<Item = (&ModulePath, &Source)> {
        self.files.iter()
    }

    /// All modules that have children.
    pub(super) fn parents(&self) -> BTreeSet<ModulePath> {
        let modules = self.files.keys();
        let children = modules.filter(|module| !module.is_empty());
        children
            .map(|module| module[..module.len() - 1].to_vec())
            .collect()
    }

    /// Everything that a module names of another one.
    pub(super) fn imports(&self) -> BTreeSet<Import> {
        let mut imports = BTreeSet::new();
        for (module, file) in &self.files {
            let used = use_trees(&file.code, false)
                .into_iter()
                .map(|tree| tree.path);
            for path in used.chain(paths(&file.code)) {
                let Some(target) = self.absolute(module, &path) else {
                    continue;
                };
                let to = self.module_of(&target);
                if to != *module {
                    let from = module.clone();
                    imports.insert(Import { from, to });
                }
            }
        }
        imports
    }

    /// A path from the root of the crate; none: it leads to another crate.
    fn absolute(&self, module: &ModulePath, path: &[String]) -> Option<ModulePath> {
        let rest = &path[1..];
        match path[0].as_str() {
            "crate" => Some(rest.to_vec()),
            "self" => Some([module.as_slice(), rest].concat()),
            "super" => {
                let supers = path.iter().take_while(|name| *name == "super").count();
                let above = &module[..module.len().checked_sub(supers)?];
                Some([above, &path[supers..]].concat())
            }
            _ => {
                let below = [module.as_slice(), &path[..1]].concat();
                let is_child = self.files.contains_key(&below);
                is_child.then(|| [module.as_slice(), path].concat())
            }
        }
    }

    /// The module that holds what a path names, through exports from elsewhere.
    fn module_of(&self, path: &ModulePath) -> ModulePath {
        let mut path = path.clone();
        for _ in 0..10 {
            let exported = (1..=path.len()).rev().find_map(|end| {
                let name = &path[..end];
                let target = self.exports.get(name)?;
                let is_module = self.files.contains_key(name);
                (!is_module).then(|| [target.as_slice(), &path[end..]].concat())
            });
            match exported {
                Some(target) => path = target,
                None => break,
            }
        }
        while !self.files.contains_key(&path) {
            path.pop();
        }
        path
    }
}

/// The names of `mod name;`.
fn declared_modules(code: &str) -> Vec<String> {
    let mut tokens = code.split_whitespace().peekable();
    let mut names = Vec::new();
    while let Some(word) = tokens.next() {
        if word == "mod"
            && let Some(name) = tokens.peek().and_then(|name| name.strip_suffix(';'))
        {
            names.push(name.to_owned());
        }
    }
    names
}

/// One name that a `use` brings in.
struct UseTree {
    path: Vec<String>,
    /// What it is called here.
    name: String,
}

/// The names of all `use` items, or only of those that are exported.
fn use_trees(code: &str, only_exported: bool) -> Vec<UseTree> {
    let mut trees = Vec::new();
    for (at, _) in code.match_indices("use ") {
        let before = &code[..at];
        if !before.is_empty() && !before.ends_with(char::is_whitespace) {
            continue;
        }
        let line = before.rsplit('\n').next().unwrap_or_default().trim();
        let is_item = line.is_empty() || line.starts_with("pub");
        if !is_item || (only_exported && line.is_empty()) {
            continue;
        }
        let item = &code[at + 4..];
        let item = &item[..item.find(';').unwrap_or(item.len())];
        expand(&[], item, &mut trees);
    }
    trees
}

/// Takes `a::{b, c::d as e}` apart.
fn expand(prefix: &[String], tree: &str, trees: &mut Vec<UseTree>) {
    let tree = tree.trim();
    let (head, group) = match tree.split_once('{') {
        Some((head, group)) => (head, Some(group)),
        None => (tree, None),
    };
    let (head, alias) = match head.split_once(" as ") {
        Some((head, alias)) => (head, Some(alias.trim())),
        None => (head, None),
    };
    let names = head
        .split("::")
        .map(str::trim)
        .filter(|name| !name.is_empty());
    let path: Vec<String> = prefix
        .iter()
        .cloned()
        .chain(names.map(str::to_owned))
        .collect();
    let Some(group) = group else {
        if let Some(last) = path.last() {
            let name = alias.unwrap_or(last).to_owned();
            trees.push(UseTree { path, name });
        }
        return;
    };
    let mut depth = 0;
    let mut start = 0;
    let group = group.strip_suffix('}').unwrap_or(group);
    for (at, c) in group.char_indices().chain([(group.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                expand(&path, &group[start..at], trees);
                start = (at + 1).min(group.len());
            }
            _ => {}
        }
    }
}

/// The paths in expressions and types that start at `crate`, `self` or `super`.
fn paths(code: &str) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    for start in ["crate::", "self::", "super::"] {
        for (at, _) in code.match_indices(start) {
            let is_inside =
                code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
            if is_inside {
                continue;
            }
            let end = code[at..].find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
            let text = &code[at..end.map_or(code.len(), |end| at + end)];
            let names = text.split("::").filter(|name| !name.is_empty());
            paths.push(names.map(str::to_owned).collect());
        }
    }
    paths
}

#[test]
fn use_items_are_taken_apart() {
    let code = "use crate::{a, b::{self, C as D}};\npub(crate) use x::Y;\n";
    let names = |only_exported| {
        let trees = use_trees(code, only_exported);
        let texts = trees
            .iter()
            .map(|tree| format!("{}={}", tree.path.join("::"), tree.name));
        texts.collect::<Vec<_>>()
    };
    let all = [
        "crate::a=a",
        "crate::b::self=self",
        "crate::b::C=D",
        "x::Y=Y",
    ];
    assert_eq!(names(false), all);
    assert_eq!(names(true), ["x::Y=Y"]);
    assert_eq!(
        paths("let x = crate::a::b(super::c::D); my_crate::e"),
        [vec!["crate", "a", "b"], vec!["super", "c", "D"]]
    );
}

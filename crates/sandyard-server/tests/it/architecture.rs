//! The shape of the code: modules form no import cycles, dialects do not import each other, and no dialect knows a provider by name.
//!
//! A cycle is looked for among the modules of each level: two modules depend on each other if a file of one, or of a folder below it,
//! names something of the other. A module's own file (`mod.rs`) may use its children and be used by them.

mod modules;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use modules::{Crate, ModulePath};

/// The modules of `sandyard-server` that each speak one HTTP contract.
const DIALECTS: [&str; 5] = ["accounts", "docker", "e2b", "mcp", "native"];

/// Names of providers, which only `serve` and the settings may know.
const PROVIDERS: [&str; 5] = ["daytona", "docker", "e2b", "embedded", "fake"];

fn read(name: &str) -> Crate {
    let crates = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    Crate::read(&crates.join(name).join("src"))
}

/// The dependencies among the children of a module, each with a file and a path in it as a witness.
fn dependencies(code: &Crate, parent: &ModulePath) -> BTreeMap<String, BTreeMap<String, String>> {
    let mut edges: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    let level = parent.len();
    for import in code.imports() {
        let (Some(from), Some(to)) = (import.from.get(level), import.to.get(level)) else {
            continue;
        };
        let is_here = import.from.starts_with(parent) && import.to.starts_with(parent);
        if is_here && from != to {
            let witness = format!("{} names {}", import.from.join("::"), import.to.join("::"));
            edges
                .entry(from.clone())
                .or_default()
                .entry(to.clone())
                .or_insert(witness);
        }
    }
    edges
}

/// A cycle, as the witnesses of its edges.
fn cycle(edges: &BTreeMap<String, BTreeMap<String, String>>) -> Option<Vec<String>> {
    fn visit<'a>(
        edges: &'a BTreeMap<String, BTreeMap<String, String>>,
        module: &'a str,
        trail: &mut Vec<(&'a str, &'a str)>,
        done: &mut BTreeSet<&'a str>,
    ) -> Option<Vec<String>> {
        if let Some(start) = trail.iter().position(|(on_trail, _)| *on_trail == module) {
            let witnesses = trail[start..].iter().map(|(_, witness)| *witness);
            return Some(witnesses.map(str::to_owned).collect());
        }
        if done.contains(module) {
            return None;
        }
        for (next, witness) in edges.get(module).into_iter().flatten() {
            trail.push((module, witness));
            if let Some(found) = visit(edges, next, trail, done) {
                return Some(found);
            }
            trail.pop();
        }
        done.insert(module);
        None
    }
    let mut done = BTreeSet::new();
    edges
        .keys()
        .find_map(|module| visit(edges, module, &mut Vec::new(), &mut done))
}

fn assert_acyclic(name: &str) {
    let code = read(name);
    for parent in code.parents() {
        if let Some(witnesses) = cycle(&dependencies(&code, &parent)) {
            panic!(
                "modules of {name}::{} import each other in a cycle:\n  {}",
                parent.join("::"),
                witnesses.join("\n  ")
            );
        }
    }
}

#[test]
fn modules_of_the_server_form_no_cycle() {
    assert_acyclic("sandyard-server");
}

#[test]
fn modules_of_the_service_form_no_cycle() {
    assert_acyclic("sandyard-service");
}

#[test]
fn dialects_do_not_import_each_other() {
    let edges = dependencies(&read("sandyard-server"), &ModulePath::new());
    for dialect in DIALECTS {
        assert!(edges.contains_key(dialect), "there is no module {dialect}");
        for other in DIALECTS {
            let witness = edges[dialect].get(other);
            assert_eq!(witness, None, "{dialect} imports {other}");
        }
    }
}

#[test]
fn no_dialect_names_a_provider() {
    let code = read("sandyard-server");
    for (module, file) in code.files() {
        if !module
            .first()
            .is_some_and(|it| DIALECTS.contains(&it.as_str()))
        {
            continue;
        }
        let module = module.join("::");
        assert!(
            !file.code.contains("sandyard_providers"),
            "{module} uses the crate of the providers"
        );
        for text in &file.strings {
            assert!(
                !PROVIDERS.contains(&text.as_str()),
                "{module} knows the provider {text:?} by name: ask for a capability instead"
            );
        }
    }
}

#[test]
fn a_cycle_is_found() {
    let edge = |to: &str| BTreeMap::from([(to.to_owned(), format!("to {to}"))]);
    let mut edges = BTreeMap::from([
        ("a".to_owned(), edge("b")),
        ("b".to_owned(), edge("c")),
        ("c".to_owned(), BTreeMap::new()),
    ]);
    assert_eq!(cycle(&edges), None);
    edges.insert("c".to_owned(), edge("b"));
    assert_eq!(cycle(&edges).unwrap(), ["to c", "to b"]);
}

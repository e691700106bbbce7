//! Names of keys.

use super::*;

fn first(text: &str) -> (String, String, String) {
    let Chord { key, .. } = Chord::parse(text).unwrap();
    (key.key, key.code, key.text)
}

#[test]
fn names_of_many_kinds_are_understood() {
    let of = |key: &str, code: &str, text: &str| (key.into(), code.into(), text.into());
    assert_eq!(first("Enter"), of("Enter", "Enter", "\r"));
    assert_eq!(first("return"), of("Enter", "Enter", "\r"));
    assert_eq!(first("arrowdown"), of("ArrowDown", "ArrowDown", ""));
    assert_eq!(first("Control+A"), of("a", "KeyA", "a"));
    assert_eq!(first("Control+Shift+a"), of("A", "KeyA", "A"));
    assert_eq!(first("Shift+1"), of("!", "Digit1", "!"));
    assert_eq!(first("F5"), of("F5", "F5", ""));
    assert_eq!(first("+"), of("+", "Equal", "+"));
    assert_eq!(first("Control++"), of("+", "Equal", "+"));
    assert_eq!(first(" "), of(" ", "Space", " "));
    assert_eq!(first("é"), of("é", "", "é"));
    for bad in ["", "F13", "Hyper+A", "Entr", "Control+"] {
        assert!(Chord::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn what_is_held_is_let_go_of_again() {
    let events = Chord::parse("Control+Shift+K").unwrap().events();
    let kinds: Vec<_> = events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "rawKeyDown",
            "rawKeyDown",
            "rawKeyDown",
            "keyUp",
            "keyUp",
            "keyUp"
        ]
    );
    let modifiers: Vec<_> = events
        .iter()
        .map(|event| event["modifiers"].as_u64().unwrap())
        .collect();
    assert_eq!(modifiers, [2, 10, 10, 10, 2, 0]);
}

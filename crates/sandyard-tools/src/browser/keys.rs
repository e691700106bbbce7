//! Keys by name.

use serde_json::{Value, json};

use crate::reply::{Problem, Result};

/// Keys without a character: name, Windows key code (for old pages), character that they type.
const NAMED_KEYS: &[(&str, u32, &str)] = &[
    ("Enter", 13, "\r"),
    ("Tab", 9, ""),
    ("Escape", 27, ""),
    ("Backspace", 8, ""),
    ("Delete", 46, ""),
    ("Insert", 45, ""),
    ("ArrowLeft", 37, ""),
    ("ArrowUp", 38, ""),
    ("ArrowRight", 39, ""),
    ("ArrowDown", 40, ""),
    ("Home", 36, ""),
    ("End", 35, ""),
    ("PageUp", 33, ""),
    ("PageDown", 34, ""),
    ("CapsLock", 20, ""),
    ("ContextMenu", 93, ""),
];

/// Other names of keys.
const ALIASES: &[(&str, &str)] = &[
    ("return", "Enter"),
    ("esc", "Escape"),
    ("del", "Delete"),
    ("ins", "Insert"),
    ("left", "ArrowLeft"),
    ("up", "ArrowUp"),
    ("right", "ArrowRight"),
    ("down", "ArrowDown"),
    ("pgup", "PageUp"),
    ("pgdn", "PageDown"),
    ("page_up", "PageUp"),
    ("page_down", "PageDown"),
];

/// Digit and punctuation keys of a US keyboard: character, character with Shift, code, Windows key code.
const SYMBOLS: &[(char, char, &str, u32)] = &[
    ('-', '_', "Minus", 189),
    ('=', '+', "Equal", 187),
    ('[', '{', "BracketLeft", 219),
    (']', '}', "BracketRight", 221),
    ('\\', '|', "Backslash", 220),
    (';', ':', "Semicolon", 186),
    ('\'', '"', "Quote", 222),
    (',', '<', "Comma", 188),
    ('.', '>', "Period", 190),
    ('/', '?', "Slash", 191),
    ('`', '~', "Backquote", 192),
    ('0', ')', "Digit0", 48),
    ('1', '!', "Digit1", 49),
    ('2', '@', "Digit2", 50),
    ('3', '#', "Digit3", 51),
    ('4', '$', "Digit4", 52),
    ('5', '%', "Digit5", 53),
    ('6', '^', "Digit6", 54),
    ('7', '&', "Digit7", 55),
    ('8', '*', "Digit8", 56),
    ('9', '(', "Digit9", 57),
];

const ALT: u32 = 1;
const CONTROL: u32 = 2;
const META: u32 = 4;
const SHIFT: u32 = 8;

/// A key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    key: String,
    code: String,
    number: u32,
    text: String,
}

/// A key with the modifier keys that are held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chord {
    held_keys: Vec<(Key, u32)>,
    key: Key,
}

impl Key {
    /// The key that types this character.
    pub(super) fn of(char: char) -> Self {
        if char == '\n' || char == '\r' {
            return named_key("Enter", 13, "\r");
        }
        let (code, number) = if char.is_ascii_alphabetic() {
            let upper = char.to_ascii_uppercase();
            (format!("Key{upper}"), u32::from(upper))
        } else if char == ' ' {
            ("Space".to_owned(), 32)
        } else {
            let sign = SYMBOLS
                .iter()
                .find(|(plain, shifted, ..)| char == *plain || char == *shifted);
            sign.map_or((String::new(), 0), |(_, _, code, number)| {
                ((*code).to_owned(), *number)
            })
        };
        Self {
            key: char.to_string(),
            code,
            number,
            text: char.to_string(),
        }
    }

    /// The protocol event for pressing the key.
    pub(super) fn down(&self, modifiers: u32) -> Value {
        // With these modifiers a key types no character.
        let text = if modifiers & (ALT | CONTROL | META) == 0 {
            self.text.as_str()
        } else {
            ""
        };
        let kind = if text.is_empty() {
            "rawKeyDown"
        } else {
            "keyDown"
        };
        let mut event = self.event(kind, modifiers);
        if !text.is_empty() {
            event["text"] = text.into();
            event["unmodifiedText"] = text.into();
        }
        event
    }

    /// The protocol event for releasing the key.
    pub(super) fn up(&self, modifiers: u32) -> Value {
        self.event("keyUp", modifiers)
    }

    fn event(&self, kind: &str, modifiers: u32) -> Value {
        json!({
            "type": kind,
            "key": self.key,
            "code": self.code,
            "windowsVirtualKeyCode": self.number,
            "modifiers": modifiers,
        })
    }
}

impl Chord {
    /// Parses a text such as `Enter`, `Control+A` or `Shift+Tab`.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let text = if text == " " { text } else { text.trim() };
        // The plus sign is a key too.
        let (held_keys, last) = match text.strip_suffix("++") {
            Some(before) => (before, "+"),
            None if text == "+" => ("", "+"),
            None => text.rsplit_once('+').unwrap_or(("", text)),
        };
        let held_keys: Vec<_> = held_keys
            .split('+')
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .map(|name| modifier(name).ok_or_else(|| unknown(name)))
            .collect::<Result<_, _>>()?;
        let has_shift = held_keys.iter().any(|(_, bit)| *bit == SHIFT);
        let is_command = held_keys.iter().any(|(_, bit)| *bit != SHIFT);
        let last = if last == " " { last } else { last.trim() };
        let key = key(last, has_shift, is_command).ok_or_else(|| unknown(last))?;
        Ok(Self { held_keys, key })
    }

    /// The protocol events for the combination, in order.
    pub(super) fn events(&self) -> Vec<Value> {
        let mut events = Vec::new();
        let mut modifiers = 0;
        for (key, bit) in &self.held_keys {
            modifiers |= bit;
            events.push(key.down(modifiers));
        }
        events.push(self.key.down(modifiers));
        events.push(self.key.up(modifiers));
        for (key, bit) in self.held_keys.iter().rev() {
            modifiers &= !bit;
            events.push(key.up(modifiers));
        }
        events
    }
}

fn named_key(name: &str, number: u32, text: &str) -> Key {
    Key {
        key: name.to_owned(),
        code: name.to_owned(),
        number,
        text: text.to_owned(),
    }
}

fn modifier(name: &str) -> Option<(Key, u32)> {
    let (name, number, bit) = match name.to_ascii_lowercase().as_str() {
        "control" | "ctrl" | "controlormeta" => ("Control", 17, CONTROL),
        "shift" => ("Shift", 16, SHIFT),
        "alt" | "option" => ("Alt", 18, ALT),
        "meta" | "command" | "cmd" | "super" | "win" => ("Meta", 91, META),
        _ => return None,
    };
    let mut key = named_key(name, number, "");
    key.code.push_str("Left");
    Some((key, bit))
}

fn key(name: &str, has_shift: bool, is_command: bool) -> Option<Key> {
    let mut chars = name.chars();
    if let (Some(char), None) = (chars.next(), chars.next()) {
        // `Control+A` means the key, not a capital letter.
        let char = match char {
            'A'..='Z' if is_command && !has_shift => char.to_ascii_lowercase(),
            _ if has_shift => shifted(char),
            _ => char,
        };
        return Some(Key::of(char));
    }
    let lower = name.to_ascii_lowercase();
    if lower == "space" || lower == "spacebar" {
        return Some(Key::of(' '));
    }
    if let Some(number) = lower
        .strip_prefix('f')
        .and_then(|rest| rest.parse::<u32>().ok())
        && (1..=12).contains(&number)
    {
        return Some(named_key(&format!("F{number}"), 111 + number, ""));
    }
    let other = ALIASES.iter().find(|(other, _)| *other == lower);
    let canonical_name = other.map_or(lower.as_str(), |(_, name)| name);
    let found = NAMED_KEYS
        .iter()
        .find(|(name, ..)| name.eq_ignore_ascii_case(canonical_name));
    match found {
        Some((name, number, text)) => Some(named_key(name, *number, text)),
        // A modifier key alone, as some games need it.
        None => modifier(canonical_name).map(|(key, _)| key),
    }
}

fn shifted(char: char) -> char {
    let sign = SYMBOLS.iter().find(|(plain, ..)| *plain == char);
    sign.map_or_else(|| char.to_ascii_uppercase(), |(_, shifted, ..)| *shifted)
}

fn unknown(name: &str) -> Problem {
    let names: Vec<_> = NAMED_KEYS.iter().map(|(name, ..)| *name).collect();
    Problem::new(format!(
        "unknown key {:?}: use single characters, F1 to F12, Space, {}, optionally with Control+, Shift+, Alt+ or Meta+",
        super::notes::short(name, 40),
        names.join(", ")
    ))
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;

//! Documents, good and bad.

use lopdf::content::{Content, Operation};
use lopdf::{
    Document, EncryptionState, EncryptionVersion, Object, Permissions, Stream, dictionary,
};
use serde_json::json;

use crate::files::test_env::TestEnv;

/// A document with these pages, each of these lines.
fn document(pages: &[&[&str]]) -> Document {
    let mut document = Document::with_version("1.5");
    let tree = document.new_object_id();
    let font = document.add_object(dictionary! {
        "Type" => "Font", "Subtype" => "Type1", "BaseFont" => "Helvetica", "Encoding" => "WinAnsiEncoding",
    });
    let resources = document.add_object(dictionary! {"Font" => dictionary! {"F1" => font}});
    let kids: Vec<Object> = pages
        .iter()
        .map(|lines| {
            let mut operations = vec![
                Operation::new("BT", vec![]),
                Operation::new("Tf", vec!["F1".into(), 12.into()]),
                Operation::new("Td", vec![72.into(), 700.into()]),
            ];
            for line in *lines {
                operations.push(Operation::new("Tj", vec![Object::string_literal(*line)]));
                operations.push(Operation::new("Td", vec![0.into(), (-14).into()]));
            }
            operations.push(Operation::new("ET", vec![]));
            let content = Content { operations }.encode().unwrap();
            let content = document.add_object(Stream::new(dictionary! {}, content));
            let page = dictionary! {"Type" => "Page", "Parent" => tree, "Contents" => content};
            document.add_object(page).into()
        })
        .collect();
    let count = i64::try_from(kids.len()).unwrap();
    let pages = dictionary! {
        "Type" => "Pages", "Kids" => kids, "Count" => count, "Resources" => resources,
        "MediaBox" => vec![0.into(), 0.into(), 595.into(), 842.into()],
    };
    document.objects.insert(tree, Object::Dictionary(pages));
    let catalog = document.add_object(dictionary! {"Type" => "Catalog", "Pages" => tree});
    document.trailer.set("Root", catalog);
    document
}

fn saved(mut document: Document) -> Vec<u8> {
    document.compress();
    let mut bytes = Vec::new();
    document.save_to(&mut bytes).unwrap();
    bytes
}

#[tokio::test]
async fn the_text_of_pages_is_read() {
    let env = TestEnv::new();
    env.file(
        "a.pdf",
        saved(document(&[
            &["First line", "second line"],
            &["Page two"],
            &["Page three"],
        ])),
    );
    let reply = env
        .call("Read", json!({"file_path": "a.pdf"}))
        .await
        .unwrap();
    assert_eq!(
        reply.all_text(),
        "--- page 1 ---\nFirst line\nsecond line\n--- page 2 ---\nPage two\n--- page 3 ---\nPage three\n"
    );
    assert!(reply.structured().is_none());
    let part = env
        .text(
            "Read",
            json!({"file_path": "a.pdf", "offset": 2, "limit": 1}),
        )
        .await;
    assert!(part.starts_with("--- page 2 ---\nPage two\n"), "{part}");
    assert!(
        part.contains("pages 2 to 2 of 3") && part.contains("offset=3"),
        "{part}"
    );
    let problem = env
        .problem("Read", json!({"file_path": "a.pdf", "offset": 4}))
        .await;
    assert!(problem.contains("3 pages"), "{problem}");
}

#[tokio::test]
async fn words_are_separated_by_their_positions() {
    let env = TestEnv::new();
    let mut document = document(&[&[]]);
    let content = b"BT /F1 12 Tf 72 700 Td [(Wor) 20 (d) -300 (next)] TJ 60 0 Td (third) Tj 1 0 0 1 72 650 Tm (below) Tj ET";
    let page = *document.get_pages().values().next().unwrap();
    document
        .change_page_content(page, content.to_vec())
        .unwrap();
    env.file("a.pdf", saved(document));
    assert_eq!(
        env.read("a.pdf").await,
        "--- page 1 ---\nWord next third\nbelow\n"
    );
}

/// A page that draws these forms. Each form is given by its content and refers to others by their number.
fn with_forms(page: &str, forms: &[&str]) -> Vec<u8> {
    let mut document = document(&[&[]]);
    let ids: Vec<_> = forms.iter().map(|_| document.new_object_id()).collect();
    let mut names = lopdf::Dictionary::new();
    for (number, id) in ids.iter().enumerate() {
        names.set(format!("X{number}"), *id);
    }
    let font = document.add_object(dictionary! {
        "Type" => "Font", "Subtype" => "Type1", "BaseFont" => "Helvetica", "Encoding" => "WinAnsiEncoding",
    });
    let fonts = dictionary! {"F1" => font};
    let resources = document.add_object(dictionary! {"XObject" => names, "Font" => fonts});
    for (id, content) in ids.into_iter().zip(forms) {
        let mut dictionary = dictionary! {"Type" => "XObject", "Subtype" => "Form"};
        // Half of them have what names mean from the page.
        if content.len() % 2 == 0 {
            dictionary.set("Resources", resources);
        }
        let form = Stream::new(dictionary, content.as_bytes().to_vec());
        document.objects.insert(id, Object::Stream(form));
    }
    let id = *document.get_pages().values().next().unwrap();
    document.change_page_content(id, page.into()).unwrap();
    let page = document.get_dictionary_mut(id).unwrap();
    page.set("Resources", resources);
    saved(document)
}

#[tokio::test]
async fn text_in_forms_is_read_where_they_are_drawn() {
    let env = TestEnv::new();
    let page = "BT /F1 12 Tf 9 9 Td (before) Tj ET /X0 Do /X9 Do /X2 Do BT (after) Tj ET";
    let outer = "BT /F1 9 Tf 1 1 Td (outer) Tj ET q /X1 Do Q";
    let inner = "BT /F1 9 Tf (inner) Tj ET";
    env.file("a.pdf", with_forms(page, &[outer, inner, inner]));
    assert_eq!(
        env.read("a.pdf").await,
        "--- page 1 ---\nbefore\nouter\ninner\ninner\nafter\n"
    );
}

#[tokio::test]
async fn forms_in_themselves_and_without_end_are_left_out() {
    let env = TestEnv::new();
    let recursive = "BT /F1 9 Tf (again) Tj ET /X0 Do /X0 Do ";
    let large = format!("BT /F1 9 Tf (large) Tj ET{}", " ".repeat(3 << 20));
    let many = "/X0 Do ".repeat(100_000);
    for (name, page, forms) in [
        ("itself", "/X0 Do", [recursive, recursive]),
        ("large", "/X0 Do /X1 Do", [&large, &large]),
        ("many", &many, ["BT /F1 9 Tf (x) Tj ET", ""]),
    ] {
        env.file(name, with_forms(page, &forms));
        let text = env.read(name).await;
        assert!(text.contains("some of this page was left out"), "{name}");
        assert!(text.len() < 10_000, "{name}: {}", text.len());
    }
}

#[tokio::test]
async fn much_text_is_cut_and_no_text_is_said() {
    let env = TestEnv::new();
    let line = "words ".repeat(100);
    let lines = vec![line.as_str(); 30];
    env.file("long.pdf", saved(document(&[&lines, &lines, &["end"]])));
    let text = env.read("long.pdf").await;
    assert!(text.contains("--- page 1 ---") && !text.contains("--- page 2 ---"));
    assert!(text.contains("offset=2"));
    let lines = vec![line.as_str(); 100];
    env.file("longer.pdf", saved(document(&[&lines])));
    let text = env.read("longer.pdf").await;
    assert!(
        text.contains("[truncated: page 1 has more than 30000"),
        "{}",
        &text[text.len() - 200..]
    );
    env.file("scanned.pdf", saved(document(&[&[]])));
    assert!(env.read("scanned.pdf").await.contains("pdftoppm"));
}

#[tokio::test]
async fn documents_made_to_harm_are_refused_and_the_server_lives() {
    let env = TestEnv::new();
    let good = saved(document(&[&["good"]]));
    let nested = |open: &str, close: &str| {
        format!(
            "%PDF-1.5\n1 0 obj\n{}{}\nendobj\ntrailer\n<</Root 1 0 R>>\n",
            open.repeat(200_000),
            close.repeat(200_000)
        )
    };
    let looped = "%PDF-1.5\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n2 0 obj\n\
                  <</Type/Pages/Kids[2 0 R 2 0 R]/Count 9>>\nendobj\n\
                  trailer\n<</Root 1 0 R/Size 3>>\n";
    let mut bomb = document(&[&["x"]]);
    let page = *bomb.get_pages().values().next().unwrap();
    bomb.change_page_content(page, vec![b' '; 64 * 1024 * 1024])
        .unwrap();
    let bomb = saved(bomb);
    assert!(bomb.len() < 1024 * 1024);
    let mut broken = good.clone();
    for at in (20..broken.len()).step_by(37) {
        broken[at] ^= 0x55;
    }
    let cases = [
        ("nothing", b"%PDF-1.7\n".to_vec()),
        ("half", good[..good.len() / 2].to_vec()),
        ("arrays", nested("[", "]").into_bytes()),
        ("dictionaries", nested("<</A", ">>").into_bytes()),
        ("looped", looped.into()),
        ("bomb", bomb),
        ("broken", broken),
    ];
    for (name, bytes) in cases {
        env.file(name, bytes);
        // Whether something can be made of it or not: an answer comes, and it is short.
        match env.call("Read", json!({"file_path": name})).await {
            Ok(reply) => assert!(reply.all_text().len() < 1_000, "{name}"),
            Err(problem) => assert!(problem.to_string().len() < 1_000, "{name}: {problem}"),
        }
    }
    let bomb = env.read("bomb").await;
    assert!(bomb.contains("cannot be read"), "{bomb}");
    let mut large = good.clone();
    large.resize(33 * 1024 * 1024, b' ');
    env.file("large", large);
    assert!(
        env.problem("Read", json!({"file_path": "large"}))
            .await
            .contains("pdftotext")
    );
    env.file("good", good);
    assert!(env.read("good").await.contains("good"));
}

#[tokio::test]
async fn many_streams_of_objects_are_not_all_unpacked() {
    let env = TestEnv::new();
    for (count, is_read) in [(4, true), (12, false)] {
        let mut document = document(&[&["inside"]]);
        for _ in 0..count {
            let mut content = b"900 0 1".to_vec();
            content.resize(7 * 1024 * 1024, b' ');
            // The type is put in afterwards: it would not be saved.
            let stream = dictionary! {"Type" => "ObjStn", "N" => 1, "First" => 6};
            document.add_object(Stream::new(stream, content));
        }
        let mut bytes = saved(document);
        let mut found = 0;
        for at in 0..bytes.len() - 6 {
            if bytes[at..].starts_with(b"ObjStn") {
                bytes[at + 5] = b'm';
                found += 1;
            }
        }
        assert_eq!(found, count);
        env.file("a.pdf", bytes);
        let read = env.call("Read", json!({"file_path": "a.pdf"})).await;
        match read {
            Ok(reply) => assert!(is_read && reply.all_text().contains("inside"), "{count}"),
            Err(problem) => assert!(
                !is_read
                    && problem
                        .to_string()
                        .contains("decompressed PDF is too large"),
                "{count}: {problem}"
            ),
        }
    }
}

#[tokio::test]
async fn a_password_is_asked_for_only_where_one_is_needed() {
    let env = TestEnv::new();
    for (name, password) in [("open", ""), ("closed", "secret")] {
        let mut document = document(&[&["inside"]]);
        let id = Object::string_literal("0123456789abcdef");
        document.trailer.set("ID", vec![id.clone(), id]);
        let version = EncryptionVersion::V2 {
            document: &document,
            owner_password: "owner",
            user_password: password,
            key_length: 128,
            permissions: Permissions::all(),
        };
        let state = EncryptionState::try_from(version).unwrap();
        document.encrypt(&state).unwrap();
        let mut bytes = Vec::new();
        document.save_to(&mut bytes).unwrap();
        env.file(name, bytes);
    }
    assert_eq!(env.read("open").await, "--- page 1 ---\ninside\n");
    let problem = env.problem("Read", json!({"file_path": "closed"})).await;
    assert!(problem.contains("password"), "{problem}");
}

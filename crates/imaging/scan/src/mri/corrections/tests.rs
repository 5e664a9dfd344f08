#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeSet;
use std::path::Path;

use super::*;

#[test]
fn the_table_agrees_with_itself() {
    let table = Table::default();
    table.check_agreement().unwrap();
    let mut seen = BTreeSet::new();
    for one in table.iter() {
        let About { name, help } = one.about();
        assert!(seen.insert(name) && !help.is_empty(), "{name}");
        one.check_values().unwrap();
        for param in one.table() {
            assert_eq!(param.group, GROUP, "{}", param.name);
            // An option has one name in the command and in the record.
            assert!(seen.insert(param.name), "{}", param.name);
        }
    }
}

#[test]
fn parameters_are_set_by_their_names() {
    let mut corrections = Corrections::default();
    assert_eq!(corrections.get("centre_line"), Some(Value::Nothing));
    corrections.set("centre_line", Value::Count(7)).unwrap();
    corrections.set("reversed_centre", Value::Choice("stored")).unwrap();
    assert_eq!(corrections.get("centre_line"), Some(Value::Count(7)));
    let error = corrections.set("centre_lines", Value::Count(7)).unwrap_err().to_string();
    assert!(error.contains("centre_lines") && error.contains("centre_partition"), "{error}");
    let error = corrections.set("reversed_centre", Value::Choice("back")).unwrap_err().to_string();
    assert!(error.contains("stored, forward"), "{error}");
    assert!(corrections.set("centre_line", Value::Number(1.5)).is_err());
    // A change leaves other copies as they are.
    assert_eq!(Corrections::default().get("centre_line"), Some(Value::Nothing));
}

#[test]
fn documents_list_the_corrections() {
    let row = |one: &(dyn Correction + 'static)| {
        let About { name, help } = one.about();
        let options: Vec<_> = one.table().iter().map(|param| format!("`{}`", param.option())).collect();
        format!("| `{name}` | {help} | {} |", options.join(", "))
    };
    let head = ["| correction | what it does | options |", "|---|---|---|"].map(str::to_owned);
    let table = Table::default();
    let rows = head.into_iter().chain(table.iter().map(row)).collect::<Vec<_>>();
    let wanted = format!("\n{}\n", rows.join("\n"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reading.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (start, end) = ("<!-- corrections of readouts -->", "<!-- end -->");
    let found = text.split_once(start).and_then(|(before, rest)| Some((before, rest.split_once(end)?)));
    let Some((before, (found, after))) = found else { panic!("{start} … {end} is missing") };
    if std::env::var_os("RAYSPIN_WRITE_DOCUMENTS").is_some() {
        return std::fs::write(path, [before, start, &wanted, end, after].concat()).unwrap();
    }
    assert_eq!(found, wanted, "RAYSPIN_WRITE_DOCUMENTS=1 cargo test -p rayspin-scan documents writes it");
}

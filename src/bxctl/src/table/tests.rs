//! What tables look like, and that nothing is lost in them.

use super::*;

fn sample() -> Table {
    let mut table = Table::new(&[
        ("id", Fit::Wrap),
        ("calls", Fit::Number),
        ("paths", Fit::Wrap),
    ]);
    table.row(vec![
        "notes".into(),
        "7".into(),
        Cell::list(["read:/srv/notes", "write:/srv/out"]),
    ]);
    table
}

#[test]
fn columns_are_aligned_and_lines_have_no_blanks_at_their_end() {
    let expected = "id     calls  paths\n\
                    notes      7  read:/srv/notes\n\
                    \u{20}             write:/srv/out\n";
    assert_eq!(sample().render(80, false), expected);
}

#[test]
fn a_table_that_is_too_wide_wraps_and_loses_nothing() {
    let mut table = sample();
    let long = "read:/srv/".to_owned() + &"deep/".repeat(30);
    table.row(vec![
        Cell::new("a".repeat(60)),
        "1".into(),
        Cell::new(&long),
    ]);
    let text = table.render(80, false);
    assert!(text.lines().all(|line| width(line) <= 80), "{text}");
    assert_eq!(text.matches("deep").count(), 30);
    assert_eq!(text.matches('a').count(), 60 + 4);
}

#[test]
fn a_short_row_spans_the_rest_and_does_not_widen_a_column() {
    let mut table = sample();
    table.row(vec![
        Cell::new("x"),
        Cell::new("a long remark over all the other columns"),
    ]);
    let text = table.render(80, false);
    assert!(
        text.contains("x      a long remark over all the other columns\n"),
        "{text}"
    );
    assert!(text.contains("notes      7  read"), "{text}");
}

#[test]
fn what_stands_before_a_span_has_its_room_also_where_no_row_is_whole() {
    let mut table = Table::new(&[("time", Fit::Whole), ("a", Fit::Wrap), ("b", Fit::Wrap)]);
    table.row(vec!["08:05:00".into(), "one sentence".into()]);
    assert_eq!(
        table.render(80, false),
        "time      a  b\n08:05:00  one sentence\n"
    );
}

#[test]
fn colours_do_not_move_columns_and_are_absent_unless_asked_for() {
    let mut table = sample();
    table.row(vec![Cell::new("b").tone(Tone::Bad), "1".into(), "-".into()]);
    let plain = table.render(80, false);
    let mut coloured = table.render(80, true);
    assert!(!plain.contains('\x1b'));
    assert!(coloured.contains("\x1b[31mb\x1b[0m"));
    for code in ["\x1b[1m", "\x1b[31m", "\x1b[0m"] {
        coloured = coloured.replace(code, "");
    }
    assert_eq!(plain, coloured);
}

#[test]
fn hidden_characters_of_a_cell_are_visible() {
    let mut table = sample();
    table.row(vec![Cell::new("\x1b[2J"), "1".into(), "a\nb".into()]);
    let text = table.render(80, false);
    assert!(
        text.contains("\\x1b[2J") && text.contains("a\\nb"),
        "{text}"
    );
}

#[test]
fn lines_break_at_a_space_then_after_a_mark_then_anywhere() {
    assert_eq!(wrap("private untrusted", 10), ["private", "untrusted"]);
    assert_eq!(wrap("approval_expired", 10), ["approval_", "expired"]);
    assert_eq!(wrap("abcdefgh", 3), ["abc", "def", "gh"]);
    assert_eq!(wrap("世界", 2), ["世", "界"]);
    assert_eq!(wrap("", 5), [""]);
}

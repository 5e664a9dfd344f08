//! `rayspin-ladder explain`: a README in the terminal.

use std::fmt::Write as _;
use std::io::IsTerminal;

use anyhow::Result;
use rayspin::tune::{Ladder, Which};
use rayspin_shell::files;
use unicode_width::UnicodeWidthStr;

use super::{Ladders, applications};
use crate::args::ladder::Explain;

/// Prints the READMEs of ladders.
pub(crate) fn run(ladders: &Ladders, args: &Explain) -> Result<()> {
    let terminal = std::io::stdout().is_terminal();
    let width = match terminal_size::terminal_size() {
        Some((width, _)) if terminal => usize::from(width.0).clamp(40, 110),
        _ => 100,
    };
    let is_table = |name: &&String| *name == applications::NAME;
    let names: Vec<_> = args.names.iter().filter(|name| !is_table(name)).cloned().collect();
    let mut texts = ladders.named(&names)?.into_iter().map(text).collect::<Result<Vec<_>>>()?;
    if args.names.iter().any(|name| is_table(&name)) {
        texts.push(applications::README.to_owned());
    }
    for text in texts {
        files::print_styled(&rendered(&text, width, terminal).trim_end())?;
    }
    Ok(())
}

/// A ladder's README, and a line for each variant that it does not name: another crate may have added some.
fn text(ladder: &dyn Ladder) -> Result<String> {
    let readme = ladder.about().readme;
    let mut text = readme.to_owned();
    let variants = ladder.outline(Which::Case(None, None))?.variants;
    let mut others = variants.iter().filter(|variant| !readme.contains(variant.name)).peekable();
    if others.peek().is_some() {
        text.push_str("\n\n## More variants\n\n");
    }
    for variant in others {
        let _ = writeln!(text, "- `{}`: {}", variant.name, variant.summary);
    }
    Ok(text)
}

/// Markdown as text of at most `width` columns: headings, paragraphs, lists, tables, code. `styled` makes
/// headings bold.
fn rendered(markdown: &str, width: usize, styled: bool) -> String {
    let mut out = String::new();
    let mut lines = markdown.lines().peekable();
    while let Some(line) = lines.next() {
        let mut rest = |kind: &dyn Fn(&str) -> bool| {
            let mut block = vec![line];
            while let Some(next) = lines.next_if(|next| kind(next)) {
                block.push(next);
            }
            block
        };
        if line.trim().is_empty() {
            continue;
        } else if line.starts_with("```") {
            let block = rest(&|next| !next.starts_with("```"));
            block.iter().skip(1).for_each(|line| {
                let _ = writeln!(out, "    {line}");
            });
            lines.next();
        } else if let Some(heading) = line.strip_prefix('#') {
            let heading = plain(heading.trim_start_matches('#').trim());
            let _ =
                if styled { writeln!(out, "\x1b[1m{heading}\x1b[0m") } else { writeln!(out, "{heading}") };
            if !styled {
                let _ = writeln!(
                    out,
                    "{}",
                    if line.starts_with("##") { "-" } else { "=" }.repeat(heading.width())
                );
            }
        } else if line.starts_with('|') {
            table(&mut out, &rest(&|next| next.starts_with('|')), width);
        } else if marker(line).is_some() {
            for (mark, text) in items(&rest(&|next| marker(next).is_some() || next.starts_with(' '))) {
                let indent = " ".repeat(mark.width() + 1);
                for (i, line) in wrapped(&plain(&text), width - indent.len()).iter().enumerate() {
                    let _ =
                        writeln!(out, "{}{line}", if i == 0 { format!("{mark} ") } else { indent.clone() });
                }
            }
        } else {
            let ends = |next: &str| {
                next.trim().is_empty() || next.starts_with(['#', '|', '`']) || marker(next).is_some()
            };
            let block = rest(&|next| !ends(next) || next.starts_with('`') && !next.starts_with("```"));
            wrapped(&plain(&block.join(" ")), width).iter().for_each(|line| {
                let _ = writeln!(out, "{line}");
            });
        }
        out.push('\n');
    }
    out
}

/// The mark of a list's item.
fn marker(line: &str) -> Option<&str> {
    let (mark, _) = line.split_once(' ')?;
    let numbered =
        mark.strip_suffix('.').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    (numbered || mark == "-" || mark == "*").then_some(mark)
}

/// Marks and texts, with lines that go on joined.
fn items(block: &[&str]) -> Vec<(String, String)> {
    let mut items: Vec<(String, String)> = Vec::new();
    for line in block {
        match (marker(line), items.last_mut()) {
            (Some(mark), _) => {
                let mark_shown = if mark.ends_with('.') { mark } else { "-" };
                items.push((mark_shown.to_owned(), line[mark.len()..].trim().to_owned()));
            }
            (None, Some((_, text))) => {
                text.push(' ');
                text.push_str(line.trim());
            }
            (None, None) => {}
        }
    }
    items
}

/// Text without the marks of code, emphasis and links.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(mark) = rest.find(['`', '*', '[']) {
        out.push_str(&rest[..mark]);
        let tail = &rest[mark..];
        let (shown, used) = if let Some(code) = tail.strip_prefix('`').and_then(|t| Some(&t[..t.find('`')?]))
        {
            (code.to_owned(), code.len() + 2)
        } else if let Some(bold) = tail.strip_prefix("**").and_then(|t| Some(&t[..t.find("**")?])) {
            (plain(bold), bold.len() + 4)
        } else if let Some((label, target)) = link(tail) {
            (label.to_owned(), label.len() + target.len() + 4)
        } else {
            (tail[..1].to_owned(), 1)
        };
        out.push_str(&shown);
        rest = &tail[used..];
    }
    out.push_str(rest);
    out
}

/// Label and target where text begins with a link.
fn link(text: &str) -> Option<(&str, &str)> {
    let (label, rest) = text.strip_prefix('[')?.split_once("](")?;
    if label.contains(']') {
        return None;
    }
    Some((label, rest.split_once(')')?.0))
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last().map_or(0, |line| line.width());
        if line > 0 && line + 1 + word.width() > width {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

/// The cells of a table's line.
fn cells(line: &str) -> Vec<String> {
    let inner = line.trim().trim_start_matches('|').trim_end_matches('|');
    inner.replace("\\|", "\u{1}").split('|').map(|cell| plain(cell.trim()).replace('\u{1}', "|")).collect()
}

/// A table whose widest columns are wrapped until it fits.
fn table(out: &mut String, block: &[&str], width: usize) {
    let is_rule = |line: &&&str| !line.trim_matches(['|', '-', ':', ' ']).is_empty();
    let rows: Vec<Vec<String>> = block.iter().filter(is_rule).map(|line| cells(line)).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let cell = |row: &[String], column: usize| row.get(column).cloned().unwrap_or_default();
    let mut widths: Vec<usize> =
        (0..columns).map(|c| rows.iter().map(|row| cell(row, c).width()).max().unwrap_or(0)).collect();
    while widths.iter().sum::<usize>() + 2 * columns.saturating_sub(1) > width {
        match widths.iter_mut().max() {
            Some(widest) if *widest > 12 => *widest -= 1,
            _ => break,
        }
    }
    for (i, row) in rows.iter().enumerate() {
        let parts: Vec<Vec<String>> = (0..columns).map(|c| wrapped(&cell(row, c), widths[c])).collect();
        for line in 0..parts.iter().map(Vec::len).max().unwrap_or(0) {
            let mut text = String::new();
            for (part, width) in parts.iter().zip(&widths) {
                let shown = part.get(line).map_or("", String::as_str);
                text.push_str(shown);
                text.push_str(&" ".repeat(width.saturating_sub(shown.width()) + 2));
            }
            let _ = writeln!(out, "{}", text.trim_end());
        }
        if i == 0 {
            let rules: Vec<_> = widths.iter().map(|&width| "─".repeat(width)).collect();
            let _ = writeln!(out, "{}", rules.join("  "));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::rendered;

    #[test]
    fn markdown_becomes_text_that_fits() {
        let text = rendered(
            "# Sum\n\nA *b* `c_d` **bold** [page](https://x.y)\ngoes on.\n\n- one\n  two\n- three\n\n1. first\n\n\
             | variant | why it is faster than the one before it and more |\n|---|---:|\n| `a\\|b` | short |\n\n\
             ```text\n  code\n```\nend `x`",
            40,
            false,
        );
        assert_eq!(
            text,
            "Sum\n===\n\nA *b* c_d bold page goes on.\n\n- one two\n- three\n\n1. first\n\n\
             variant  why it is faster than the one\n         before it and more\n───────  ───────────────────────────────\n\
             a|b      short\n\n      code\n\nend x\n\n"
        );
        assert!(rendered("# A", 40, true).contains("\x1b[1mA"));
        assert_eq!(rendered("", 40, false), "");
        // Marks that never end are text.
        assert_eq!(rendered("a ` b [ c ** d", 40, false), "a ` b [ c ** d\n\n");
    }

    #[test]
    fn every_readme_fits_a_narrow_terminal() {
        let ladders = crate::ladders();
        let of_ladders = ladders.iter().map(|ladder| (ladder.about().name, ladder.about().readme));
        let of_table = (super::applications::NAME, super::applications::README);
        for (name, readme) in of_ladders.chain([of_table]) {
            let text = rendered(readme, 100, false);
            assert!(text.len() > 300, "{name}");
            assert!(!text.contains("|---"), "{name}");
        }
    }
}

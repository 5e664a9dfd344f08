//! Parameters in texts for people: marked where they stand, so that each program spells them its own way.

use std::borrow::Cow;

/// A parameter, or a command, that a text names.
///
/// Notes, errors and help name parameters as options between backticks. A program replaces each by its own
/// word ([`spelled`]): the command takes the backticks away ([`as_options`]), Python writes keywords.
///
/// | text | command | Python |
/// |---|---|---|
/// | `` `--maps` `` | `--maps` | `maps=` |
/// | `` `--maps`: expected `` | `--maps: expected` | `maps: expected` |
/// | `` `--calibration`, `--sensitivities` or `--maps` `` | the same | the keywords that the call has |
/// | `` `--partial-fourier pocs` or `homodyne` `` | the same | `partial_fourier="pocs" or "homodyne"` |
/// | `` `rayspin info FILE` `` | `rayspin info FILE` | the same |
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mention<'a> {
    /// A parameter.
    Parameter {
        /// Its name as the command has it, without dashes before it: `partial-fourier`.
        name: &'a str,
        /// The command's letter for it, as `(-W)`; empty where none is named.
        letter: &'a str,
        /// The values that it is named with, each behind the words between them: `("", "pocs")`, `(" or ",
        /// "homodyne")`.
        values: Vec<(&'a str, &'a str)>,
        /// Whether a colon follows: the text is about the parameter, and does not tell to set it.
        subject: bool,
    },
    /// A line of the command.
    Command(&'a str),
}

impl Mention<'_> {
    fn as_option(&self) -> String {
        match self {
            Self::Command(line) => (*line).to_owned(),
            Self::Parameter { name, letter, values, .. } => {
                let values: String =
                    values.iter().map(|(between, value)| format!("{between}{value}")).collect();
                let value = [*letter, &values].into_iter().find(|value| !value.is_empty());
                value.map_or_else(|| format!("--{name}"), |value| format!("--{name} {value}"))
            }
        }
    }
}

/// The text as the command spells it.
///
/// ```
/// let text = "coil images are combined (`--combine rss` or `maps` overrides)";
/// assert_eq!(rayspin_core::as_options(text), "coil images are combined (--combine rss or maps overrides)");
/// ```
pub fn as_options(text: &str) -> Cow<'_, str> {
    match MARKS.iter().any(|mark| text.contains(mark)) {
        true => Cow::Owned(spelled(text, &|mention| Some(mention.as_option()))),
        false => Cow::Borrowed(text),
    }
}

/// The text as a program spells it. `spell` has the program's words for a mention, and none for what the
/// program lacks.
///
/// A list of alternatives keeps those that the program has. A parenthesis is left out where the
/// program has no parameter of a list in it: nobody could use that remedy. Elsewhere such a parameter becomes
/// `the command's --traj`, and a line of the command stays.
///
/// ```
/// use rayspin_core::{Mention, spelled};
///
/// let python = |mention: &Mention<'_>| match mention {
///     Mention::Parameter { name: "maps", .. } => Some("maps=".to_owned()),
///     _ => None,
/// };
/// assert_eq!(spelled("by walsh (`--calibration` or `--maps` overrides)", &python), "by walsh (maps= overrides)");
/// assert_eq!(spelled("by walsh (`--sensitivities` overrides)", &python), "by walsh");
/// ```
pub fn spelled(text: &str, spell: &dyn Fn(&Mention<'_>) -> Option<String>) -> String {
    told(text, spell).0
}

/// [`spelled`], where the program has words for all of the text.
pub fn spelled_whole(text: &str, spell: &dyn Fn(&Mention<'_>) -> Option<String>) -> Option<String> {
    let (told, lacks) = told(text, spell);
    (!lacks).then_some(told)
}

/// What stands between the words of a list.
const BETWEEN: [&str; 5] = [", or ", ", and ", ", ", " or ", " and "];
/// Bytes of a mention at most: longer ones, which only headers of files can hold, are plain text.
const LONGEST: usize = 300;
/// How a mention begins.
const MARKS: [&str; 3] = ["`--", "`rayspin ", "`rayspin-"];

/// The text, and whether it names what the program lacks.
fn told(text: &str, spell: &dyn Fn(&Mention<'_>) -> Option<String>) -> (String, bool) {
    let mut told = String::with_capacity(text.len());
    let mut lacks = false;
    // Where the parentheses begin that are open, and whether each names a parameter that the program lacks.
    let mut open: Vec<(usize, bool)> = Vec::new();
    let mut rest = text;
    while let Some((c, after)) = first(rest) {
        if let Some((mention, after)) = mention(rest) {
            let (mut mentions, mut rest_of_list) = (vec![("", mention)], after);
            while let Some((between, (next, after))) = BETWEEN
                .iter()
                .find_map(|between| Some((*between, self::mention(rest_of_list.strip_prefix(between)?)?)))
            {
                mentions.push((between, next));
                rest_of_list = after;
            }
            rest = rest_of_list;
            let own: Vec<_> =
                mentions.iter().filter_map(|(between, mention)| Some((*between, spell(mention)?))).collect();
            if own.is_empty() {
                let is_parameter = matches!(mentions.first(), Some((_, Mention::Parameter { .. })));
                match open.last_mut() {
                    Some((_, parameter_lacks)) if is_parameter => *parameter_lacks = true,
                    _ => lacks = true,
                }
                if is_parameter {
                    told.push_str("the command's ");
                }
                mentions.iter().for_each(|(between, mention)| told.extend([*between, &mention.as_option()]));
            } else {
                told.push_str(&match own.len() == mentions.len() {
                    true => own.iter().flat_map(|(between, word)| [*between, word]).collect(),
                    false => list(&own, mentions.last().map_or("", |(between, _)| between)),
                });
            }
            continue;
        }
        rest = after;
        if c == '(' {
            open.push((told.len(), false));
        }
        told.push(c);
        if c == ')'
            && let Some((start, true)) = open.pop()
        {
            told.truncate(start);
            told.truncate(told.trim_end().len());
        }
    }
    // Parentheses that never end lack it as well.
    lacks |= open.iter().any(|(_, lacks)| *lacks);
    (told, lacks)
}

/// `a, b or c`; `last` stood before the last word of the whole list.
fn list(words: &[(&str, String)], last: &str) -> String {
    let mut told = String::new();
    for (index, (between, word)) in words.iter().enumerate() {
        let between = match (index, index + 1 == words.len()) {
            (0, _) => "",
            // `a or c` of `a, b, or c`
            (1, true) => last.strip_prefix(',').filter(|word| word.len() > 1).unwrap_or(last),
            (_, true) => last,
            _ => between,
        };
        told.extend([between, word]);
    }
    told
}

fn first(text: &str) -> Option<(char, &str)> {
    let c = text.chars().next()?;
    Some((c, &text[c.len_utf8()..]))
}

/// What stands between the backticks with which a text begins, and the text after them.
fn span(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix('`')?
        .split_once('`')
        .filter(|(inside, _)| (1..=LONGEST).contains(&inside.len()) && !inside.contains('\n'))
}

/// The mention with which a text begins, and the text after it.
fn mention(text: &str) -> Option<(Mention<'_>, &str)> {
    if !MARKS.iter().any(|mark| text.starts_with(mark)) {
        return None;
    }
    let (inside, mut rest) = span(text)?;
    let Some(option) = inside.strip_prefix("--") else { return Some((Mention::Command(inside), rest)) };
    let (name, value) = option.split_once(' ').unwrap_or((option, ""));
    let (letter, value) = if value.starts_with("(-") { (value, "") } else { ("", value) };
    let mut values = Vec::new();
    if !value.is_empty() {
        let (mut between, mut left) = ("", value);
        while let Some((position, next)) = BETWEEN
            .iter()
            .filter_map(|next| Some((left.find(next)?, *next)))
            .min_by_key(|(position, _)| *position)
        {
            values.push((between, &left[..position]));
            (between, left) = (next, &left[position + next.len()..]);
        }
        values.push((between, left));
        while let Some((between, (value, after))) =
            BETWEEN.iter().find_map(|between| Some((*between, span(rest.strip_prefix(between)?)?)))
            && !value.starts_with('-')
            && !value.starts_with("rayspin")
        {
            values.push((between, value));
            rest = after;
        }
    }
    Some((Mention::Parameter { name, letter, values, subject: rest.starts_with(':') }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keywords for everything but `traj` and commands.
    fn python(mention: &Mention<'_>) -> Option<String> {
        let Mention::Parameter { name, values, subject, .. } = mention else { return None };
        let values: String = values.iter().map(|(between, value)| format!("{between}\"{value}\"")).collect();
        let equals = if *subject { "" } else { "=" };
        (*name != "traj").then(|| format!("{}{equals}{values}", name.replace('-', "_")))
    }

    #[test]
    fn texts_are_spelled_two_ways() {
        for (text, command, other) in [
            ("no parameter (a word) `here`", "no parameter (a word) `here`", "no parameter (a word) `here`"),
            ("`--maps`", "--maps", "maps="),
            ("`--maps`: expected", "--maps: expected", "maps: expected"),
            ("a (`--maps` overrides), b", "a (--maps overrides), b", "a (maps= overrides), b"),
            ("a (`--traj` or not), b", "a (--traj or not), b", "a, b"),
            ("a (`--traj`, as `--maps`)", "a (--traj, as --maps)", "a"),
            ("`--traj`", "--traj", "the command's --traj"),
            (
                "say `--traj`, `--maps`, or `--fov` (x)",
                "say --traj, --maps, or --fov (x)",
                "say maps= or fov= (x)",
            ),
            ("`--fov`, `--maps` or `--traj`: c", "--fov, --maps or --traj: c", "fov= or maps=: c"),
            ("`--a-b x`, `y` or `z` ok", "--a-b x, y or z ok", "a_b=\"x\", \"y\" or \"z\" ok"),
            ("`--a-b x, y or z`", "--a-b x, y or z", "a_b=\"x\", \"y\" or \"z\""),
            ("`--a x, or y` b", "--a x, or y b", "a=\"x\", or \"y\" b"),
            ("`--a x`, or `--b y` c", "--a x, or --b y c", "a=\"x\", or b=\"y\" c"),
            ("`--a (-W)`: c", "--a (-W): c", "a: c"),
            (
                "leave `--a (-W)` or `--b walsh` out",
                "leave --a (-W) or --b walsh out",
                "leave a= or b=\"walsh\" out",
            ),
            ("`rayspin-ladder -h`, or not", "rayspin-ladder -h, or not", "rayspin-ladder -h, or not"),
            ("`--a 1` or `--traj`", "--a 1 or --traj", "a=\"1\""),
            ("see `rayspin info FILE`", "see rayspin info FILE", "see rayspin info FILE"),
            ("s (`rayspin info` lists them)", "s (rayspin info lists them)", "s (rayspin info lists them)"),
            ("f(x (y)) (`--traj (2)` z)", "f(x (y)) (--traj (2) z)", "f(x (y))"),
            ("`--never closed", "`--never closed", "`--never closed"),
            ("ä (`--traj`)é", "ä (--traj)é", "äé"),
            (") ( `--traj`", ") ( --traj", ") ( the command's --traj"),
        ] {
            assert_eq!((&*as_options(text), &*spelled(text, &python)), (command, other), "{text}");
            assert_eq!(
                spelled_whole(text, &python).is_none(),
                other.contains("the command's") || other.contains("rayspin"),
                "{text}"
            );
        }
    }
}

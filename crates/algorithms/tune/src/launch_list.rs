//! What a kernel of the user's own is launched with: lines in its source that begin with `// launch:`.
//!
//! ```text
//! // array: float parts[(n + 1023) / 1024]
//! // copy: taps = weights
//! // launch: first<<<(n + 1023) / 1024, 256>>>(in, parts, n)
//! // launch: last<<<1, 256, 4 * 256>>>(parts, out, (n + 1023) / 1024)
//! ```
//!
//! `array` makes an array that lives as long as the problem, `copy` fills a `__constant__` variable, and each
//! `launch` starts a kernel; they are done in the order of the lines. Names are those of the declaration.
//! Numbers of blocks and threads are integers or `dim3(x, y, z)`, in integers and whole numbers by name with
//! `+ - * / %`, `min` and `max`.

use std::collections::HashMap;

use rayspin_core::{Error, Result};

/// A line, and what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) line: usize,
    pub(crate) action: Action,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// An array of so many elements.
    Array {
        element: String,
        name: String,
        length: Expression,
    },
    /// A `__constant__` variable gets the values of an array.
    Copy {
        variable: String,
        from: String,
    },
    Launch(LaunchLine),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LaunchLine {
    pub(crate) kernel: String,
    pub(crate) blocks: [Expression; 3],
    pub(crate) threads: [Expression; 3],
    pub(crate) shared: Expression,
    pub(crate) arguments: Vec<Expression>,
}

/// A whole number that depends on others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Expression {
    Number(i64),
    Name(String),
    Of(Operation, Box<[Expression; 2]>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Least,
    Most,
}

impl Expression {
    /// Its value. Errors in words: a name without a number, a division by zero, a number beyond 64 bits.
    pub(crate) fn value(&self, numbers: &HashMap<&str, i64>) -> std::result::Result<i64, String> {
        match self {
            Self::Number(number) => Ok(*number),
            Self::Name(name) => numbers.get(name.as_str()).copied().ok_or_else(|| {
                let mut known: Vec<_> = numbers.keys().copied().collect();
                known.sort_unstable();
                format!("{name}, where the whole numbers are {}", known.join(", "))
            }),
            Self::Of(operation, sides) => {
                let [left, right] = [sides[0].value(numbers)?, sides[1].value(numbers)?];
                let value = match operation {
                    Operation::Add => left.checked_add(right),
                    Operation::Subtract => left.checked_sub(right),
                    Operation::Multiply => left.checked_mul(right),
                    Operation::Divide => left.checked_div(right),
                    Operation::Remainder => left.checked_rem(right),
                    Operation::Least => Some(left.min(right)),
                    Operation::Most => Some(left.max(right)),
                };
                value
                    .ok_or_else(|| format!("{left} {operation:?} {right}, which has no value").to_lowercase())
            }
        }
    }
}

/// The steps that a source lists. Errors: a line that cannot be read.
pub(crate) fn steps(file: &str, text: &str) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let Some(comment) = line.trim_start().strip_prefix("//") else { continue };
        let Some((word, rest)) = comment.trim_start().split_once(':') else { continue };
        let expected = match word {
            "launch" => "launch: KERNEL<<<BLOCKS, THREADS, BYTES>>>(ARGUMENTS)",
            "array" => "array: TYPE NAME[LENGTH]",
            "copy" => "copy: VARIABLE = ARRAY",
            _ => continue,
        };
        let action = match word {
            "launch" => launch(rest).map(Action::Launch),
            "array" => array(rest),
            _ => copy(rest),
        };
        let line = index + 1;
        let action =
            action.ok_or_else(|| Error::value(format!("{file}:{line}"), expected, comment.trim()))?;
        steps.push(Step { line, action });
    }
    Ok(steps)
}

fn array(text: &str) -> Option<Action> {
    let (head, length) = text.trim().strip_suffix(']')?.split_once('[')?;
    let (element, name) = head.trim().rsplit_once(' ')?;
    Some(Action::Array {
        element: element.trim().to_owned(),
        name: identifier(name)?,
        length: Words::of(length)?.whole()?,
    })
}

fn copy(text: &str) -> Option<Action> {
    let (variable, from) = text.split_once('=')?;
    Some(Action::Copy { variable: identifier(variable.trim())?, from: identifier(from.trim())? })
}

fn identifier(text: &str) -> Option<String> {
    let mut letters = text.chars();
    let first = letters.next().filter(|c| *c == '_' || c.is_ascii_alphabetic())?;
    letters.all(|c| c == '_' || c.is_ascii_alphanumeric()).then(|| format!("{first}{}", &text[1..]))
}

fn launch(text: &str) -> Option<LaunchLine> {
    let (kernel, rest) = text.split_once("<<<")?;
    let (sizes, rest) = rest.split_once(">>>")?;
    let arguments = rest.trim().trim_end_matches(';').trim_end().strip_prefix('(')?.strip_suffix(')')?;
    let mut sizes = Words::of(sizes)?;
    let one = || Expression::Number(1);
    let blocks = sizes.dimensions()?.unwrap_or_else(|| [one(), one(), one()]);
    sizes.take(",").then_some(())?;
    let threads = sizes.dimensions()?.unwrap_or_else(|| [one(), one(), one()]);
    let shared = if sizes.take(",") { sizes.sum()? } else { Expression::Number(0) };
    sizes.ended().then_some(())?;
    let mut words = Words::of(arguments)?;
    let mut list = Vec::new();
    while !words.ended() {
        if !list.is_empty() {
            words.take(",").then_some(())?;
        }
        list.push(words.sum()?);
    }
    Some(LaunchLine { kernel: identifier(kernel.trim())?, blocks, threads, shared, arguments: list })
}

/// The words of an expression.
struct Words {
    words: Vec<String>,
    next: usize,
}

impl Words {
    fn of(text: &str) -> Option<Self> {
        let mut words = Vec::new();
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            let is_word = |c: char| c == '_' || c.is_ascii_alphanumeric();
            let bytes = match first {
                _ if is_word(first) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
                '+' | '-' | '*' | '/' | '%' | '(' | ')' | ',' | '{' | '}' => 1,
                _ => return None,
            };
            words.push(rest[..bytes].to_owned());
            rest = rest[bytes..].trim_start();
        }
        Some(Self { words, next: 0 })
    }

    fn ended(&self) -> bool {
        self.next == self.words.len()
    }

    fn take(&mut self, word: &str) -> bool {
        let is_next = self.words.get(self.next).is_some_and(|next| next == word);
        self.next += usize::from(is_next);
        is_next
    }

    /// All that is left as one expression.
    fn whole(mut self) -> Option<Expression> {
        let expression = self.sum()?;
        self.ended().then_some(expression)
    }

    /// One number, or up to three as `dim3(x, y, z)` or `{x, y, z}`.
    fn dimensions(&mut self) -> Option<Option<[Expression; 3]>> {
        let close = if self.take("dim3") {
            self.take("(").then_some(")")?
        } else if self.take("{") {
            "}"
        } else {
            return Some(Some([self.sum()?, Expression::Number(1), Expression::Number(1)]));
        };
        let mut sides = vec![self.sum()?];
        while sides.len() < 3 && self.take(",") {
            sides.push(self.sum()?);
        }
        self.take(close).then_some(())?;
        sides.resize(3, Expression::Number(1));
        Some(sides.try_into().ok())
    }

    fn sum(&mut self) -> Option<Expression> {
        self.chain(&[("+", Operation::Add), ("-", Operation::Subtract)], Self::product)
    }

    fn product(&mut self) -> Option<Expression> {
        let operations = [("*", Operation::Multiply), ("/", Operation::Divide), ("%", Operation::Remainder)];
        self.chain(&operations, Self::factor)
    }

    fn chain(
        &mut self,
        operations: &[(&str, Operation)],
        side: fn(&mut Self) -> Option<Expression>,
    ) -> Option<Expression> {
        let mut left = side(self)?;
        while let Some((_, operation)) = operations.iter().find(|(sign, _)| self.take(sign)) {
            left = Expression::Of(*operation, Box::new([left, side(self)?]));
        }
        Some(left)
    }

    fn factor(&mut self) -> Option<Expression> {
        if self.take("-") {
            let sides = [Expression::Number(0), self.factor()?];
            return Some(Expression::Of(Operation::Subtract, Box::new(sides)));
        }
        if self.take("(") {
            let inner = self.sum()?;
            return self.take(")").then_some(inner);
        }
        let word = self.words.get(self.next)?.clone();
        self.next += 1;
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            return word.trim_end_matches(['u', 'U', 'l', 'L']).parse().ok().map(Expression::Number);
        }
        let of_two = match word.as_str() {
            "min" => Some(Operation::Least),
            "max" => Some(Operation::Most),
            _ => None,
        };
        match of_two {
            Some(operation) if self.take("(") => {
                let left = self.sum()?;
                self.take(",").then_some(())?;
                let right = self.sum()?;
                self.take(")").then(|| Expression::Of(operation, Box::new([left, right])))
            }
            _ => identifier(&word).map(Expression::Name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> std::result::Result<i64, String> {
        let numbers = HashMap::from([("n", 1000), ("zero", 0)]);
        Words::of(text).and_then(Words::whole).ok_or("unreadable")?.value(&numbers)
    }

    #[test]
    fn expressions_have_the_values_that_c_gives_them() {
        for (text, expected) in [
            ("(n + 255) / 256", 4),
            ("2 * n - 3 * (4 + 1) % 4", 1997),
            ("7 - 2 - 1", 4),
            ("100 / 7 / 2", 7),
            ("-n + 2u", -998),
            ("min(n, 12) + max(n, 12)", 1012),
            ("1024ULL", 1024),
        ] {
            assert_eq!(number(text), Ok(expected), "{text}");
        }
        for (text, words) in [
            ("m", "m, where the whole numbers are n, zero"),
            ("n / zero", "1000 divide 0, which has no value"),
            ("9223372036854775807 * 2", "which has no value"),
            ("n +", "unreadable"),
            ("(n", "unreadable"),
            ("n n", "unreadable"),
            ("n ? 1 : 2", "unreadable"),
            ("min(n)", "unreadable"),
        ] {
            assert!(number(text).unwrap_err().contains(words), "{text}: {:?}", number(text));
        }
    }

    #[test]
    fn lines_of_launches_are_read_in_order() {
        let text = "// Sums.\n\
                    // array: float parts[n / 4]\n  // copy: taps = weights\n\
                    // launch: first<<<dim3(n / 16, 2), {16, 8}>>>(in, parts, n);\n\
                    __global__ void first() {}\n//launch: last<<<1, 32, 4 * 32>>>()\n// note: launch it\n";
        let steps = steps("a.cu", text).unwrap();
        assert_eq!(steps.iter().map(|step| step.line).collect::<Vec<_>>(), [2, 3, 4, 6]);
        let numbers = HashMap::from([("n", 64)]);
        let Action::Array { element, name, length } = &steps[0].action else { panic!("{steps:?}") };
        assert_eq!((element.as_str(), name.as_str(), length.value(&numbers)), ("float", "parts", Ok(16)));
        assert_eq!(steps[1].action, Action::Copy { variable: "taps".into(), from: "weights".into() });
        let Action::Launch(first) = &steps[2].action else { panic!("{steps:?}") };
        let values = |sides: &[Expression; 3]| sides.each_ref().map(|side| side.value(&numbers).unwrap());
        assert_eq!((values(&first.blocks), values(&first.threads)), ([4, 2, 1], [16, 8, 1]));
        assert_eq!((first.kernel.as_str(), first.arguments.len()), ("first", 3));
        let Action::Launch(last) = &steps[3].action else { panic!("{steps:?}") };
        assert_eq!((last.shared.value(&numbers), last.arguments.len()), (Ok(128), 0));
    }

    #[test]
    fn lines_that_cannot_be_read_are_told() {
        for (line, expected) in [
            ("// launch: k(in)", "KERNEL<<<BLOCKS"),
            ("// launch: k<<<1>>>(in)", "KERNEL<<<BLOCKS"),
            ("// launch: k<<<1, 2, 3, 4>>>(in)", "KERNEL<<<BLOCKS"),
            ("// launch: k<<<dim3(1, 2, 3, 4), 2>>>(in)", "KERNEL<<<BLOCKS"),
            ("// launch: k<<<1, 2>>>(in, )", "KERNEL<<<BLOCKS"),
            ("// array: parts[4]", "TYPE NAME[LENGTH]"),
            ("// copy: taps", "VARIABLE = ARRAY"),
        ] {
            let error = steps("a.cu", &format!("\n{line}\n")).unwrap_err().to_string();
            assert!(error.contains("a.cu:2") && error.contains(expected), "{error}");
        }
    }
}

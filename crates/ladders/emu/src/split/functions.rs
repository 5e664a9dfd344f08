//! A program's functions, and calls written out where a barrier is behind them.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::statements::{Shape, Statement, declaration, statement};
use super::tokens::{Kind, Token, free, group, parts, text};

/// A function of the program.
#[derive(Debug, Clone)]
pub(super) struct Function {
    /// Parameters of its template: the words before the name, and the name.
    template: Vec<(Vec<Token>, String)>,
    /// The words before the name.
    head: Vec<Token>,
    pub(super) parameters: Vec<Parameter>,
    /// In its braces.
    pub(super) body: Vec<Token>,
}

#[derive(Debug, Clone)]
pub(super) struct Parameter {
    /// Everything but the name, lengths of an array behind it apart.
    pub(super) kind: Vec<Token>,
    pub(super) name: String,
    lengths: Vec<Token>,
}

impl Parameter {
    fn is_reference(&self) -> bool {
        self.kind.iter().any(|t| t.is("&"))
    }

    /// What is behind it may be changed by the function.
    pub(super) fn is_changed(&self) -> bool {
        self.is_reference() && !self.kind.first().is_some_and(|t| t.is("const"))
    }

    /// Memory that nothing writes while the kernel runs.
    pub(super) fn is_constant(&self) -> bool {
        self.kind.first().is_some_and(|t| t.is("const"))
            && self.kind.iter().filter(|t| t.is("*")).count() == 1
            && self.kind.iter().any(|t| t.is("__restrict__"))
    }

    pub(super) fn text(&self) -> String {
        let of_arrays = !self.lengths.is_empty() && self.kind.iter().any(|t| t.is("&") || t.is("*"));
        let (open, close) = if of_arrays { self.around() } else { (text(&self.kind), String::new()) };
        format!("{open} {}{close} {}", self.name, text(&self.lengths))
    }

    /// `T (&name)[n]`: the mark is bound to the name.
    fn around(&self) -> (String, String) {
        let mark = self.kind.iter().rposition(|t| t.is("&") || t.is("*")).unwrap_or_default();
        (format!("{} ({}", text(&self.kind[..mark]), text(&self.kind[mark..])), ")".to_owned())
    }

    fn of(tokens: &[Token], range: Range<usize>) -> Option<Self> {
        let mut end = (range.clone()).find(|&i| tokens[i].is("=")).unwrap_or(range.end);
        let mut lengths = end;
        while lengths > range.start && tokens[lengths - 1].is("]") {
            lengths = super::tokens::group_back(tokens, lengths)?;
        }
        let behind = tokens[lengths..end].to_vec();
        end = lengths;
        // `T (&name)[n]`, `T (*name)[n]`.
        let (name, wrapped) = if end > range.start && tokens[end - 1].is(")") {
            (end - 2, true)
        } else {
            (end.checked_sub(1)?, false)
        };
        if name < range.start {
            return None;
        }
        let word = tokens[name].word()?.to_owned();
        let mut kind = tokens[range.start..name].to_vec();
        if wrapped {
            kind.retain(|t| !t.is("("));
        }
        Some(Self { kind, name: word, lengths: behind })
    }
}

/// What the outermost level of a program declares.
#[derive(Debug, Default)]
pub(super) struct Outline {
    pub(super) functions: HashMap<String, Vec<Function>>,
    pub(super) kernels: Vec<(String, Function)>,
    /// Variables of the device.
    pub(super) variables: HashSet<String>,
}

pub(super) fn outline(tokens: &[Token]) -> Outline {
    let mut out = Outline::default();
    let (mut position, mut from) = (0, 0);
    while position < tokens.len() {
        if tokens[position].kind == Kind::Pragma {
            position += 1;
            continue;
        }
        match tokens[position].text.as_str() {
            ";" | "}" => {
                let head = &tokens[from..position];
                let kept = ["__constant__", "__device__", "__shared__"];
                if head.iter().any(|t| kept.iter().any(|word| t.is(word))) {
                    out.variables.extend(declared_outside(head).unwrap_or_default());
                }
                position += 1;
                from = position;
            }
            "{" => {
                let head = &tokens[from..position];
                let grouping = head.iter().any(|t| t.is("namespace"))
                    || (head.len() == 2 && head[0].is("extern") && head[1].kind == Kind::Literal);
                if grouping {
                    position += 1;
                    from = position;
                    continue;
                }
                let Some(end) = group(tokens, position) else { return out };
                if let Some((name, function)) = function(head, &tokens[position..end]) {
                    if head.iter().any(|t| t.is("__global__")) {
                        out.kernels.push((name, function));
                    } else {
                        out.functions.entry(name).or_default().push(function);
                    }
                    from = end;
                } else if position > 0 && tokens[position - 1].is(")") {
                    // An operator.
                    from = end;
                }
                position = end;
            }
            _ => position += 1,
        }
    }
    out
}

fn declared_outside(head: &[Token]) -> Option<Vec<String>> {
    let rest: Vec<Token> =
        head.iter().filter(|t| !matches!(t.text.as_str(), "__constant__" | "__device__")).cloned().collect();
    let (_, names) = declaration(&rest, 0..rest.len())?;
    Some(names.iter().map(|d| rest[d.name].text.clone()).collect())
}

fn function(head: &[Token], body: &[Token]) -> Option<(String, Function)> {
    let mut position = 0;
    let mut template = Vec::new();
    if head.first()?.is("template") {
        let end = super::tokens::angles(head, 1)?;
        for part in parts(head, 2..end - 1) {
            let part = &head[part];
            let name = part.iter().position(|t| t.is("=")).unwrap_or(part.len()).checked_sub(1)?;
            template.push((part[..name].to_vec(), part[name].word()?.to_owned()));
        }
        position = end;
    }
    let first = position;
    let open = loop {
        if head.get(position)?.is("__launch_bounds__")
            || head[position].is("alignas")
            || head[position].is("__align__")
        {
            position = group(head, position + 1)?;
        } else if head[position].is("(") {
            break position;
        } else {
            position += 1;
        }
    };
    let name = head.get(open.checked_sub(1)?)?.word()?.to_owned();
    let close = group(head, open)?;
    let parameters: Option<Vec<_>> =
        parts(head, open + 1..close - 1).into_iter().map(|part| Parameter::of(head, part)).collect();
    let head = head[first..open - 1].to_vec();
    Some((name, Function { template, head, parameters: parameters?, body: body.to_vec() }))
}

impl Outline {
    /// All words that are reached from these.
    pub(super) fn reached(&self, tokens: &[Token]) -> HashSet<String> {
        let mut seen = HashSet::new();
        let mut next: Vec<&[Token]> = vec![tokens];
        while let Some(tokens) = next.pop() {
            for (index, token) in tokens.iter().enumerate() {
                let Some(word) = token.word() else { continue };
                if seen.insert(word.to_owned()) && free(tokens, index) {
                    next.extend(self.functions.get(word).into_iter().flatten().map(|f| f.body.as_slice()));
                }
            }
        }
        seen
    }

    fn waits(&self, name: &str) -> bool {
        self.functions
            .get(name)
            .is_some_and(|list| list.iter().any(|f| self.reached(&f.body).contains("__syncthreads")))
    }

    /// The body of a kernel with every function written out that reaches a barrier.
    pub(super) fn flattened(&self, kernel: &Function) -> Result<Vec<Token>, String> {
        let mut body = kernel.body.clone();
        for count in 0..200 {
            let whole = statement(&body, 0).ok_or("a statement of an unknown form")?;
            let Some((range, in_list)) = self.first_call(&body, &whole, true)? else { return Ok(body) };
            let made = self.written_out(&body[range.clone()], count, in_list)?;
            body.splice(range, made);
        }
        Err("a function that calls itself".to_owned())
    }

    /// The first statement that is a call of a function with a barrier, and whether it stands in a list of
    /// statements.
    fn first_call(
        &self,
        tokens: &[Token],
        statement: &Statement,
        in_list: bool,
    ) -> Result<Option<(Range<usize>, bool)>, String> {
        let calls = |range: &Range<usize>| {
            range
                .clone()
                .find(|&i| free(tokens, i) && self.waits(&tokens[i].text))
                .map(|i| tokens[i].text.clone())
        };
        let none = |range: &Range<usize>| match calls(range) {
            Some(name) => Err(format!("a barrier in {name}, which is called inside an expression")),
            None => Ok(()),
        };
        match &statement.shape {
            Shape::Simple => Ok(calls(&statement.range).map(|_| (statement.range.clone(), in_list))),
            Shape::Other => none(&statement.range).map(|()| None),
            Shape::Block(list) => {
                for one in list {
                    if let Some(call) = self.first_call(tokens, one, true)? {
                        return Ok(Some(call));
                    }
                }
                Ok(None)
            }
            Shape::If { condition, then, other } => {
                none(condition)?;
                if let Some(call) = self.first_call(tokens, then, false)? {
                    return Ok(Some(call));
                }
                other.as_ref().map_or(Ok(None), |other| self.first_call(tokens, other, false))
            }
            Shape::For { first, condition, step, body } => {
                none(first)?;
                none(condition)?;
                none(step)?;
                self.first_call(tokens, body, false)
            }
            Shape::While { condition, body } | Shape::Do { body, condition } => {
                none(condition)?;
                self.first_call(tokens, body, false)
            }
        }
    }

    /// `f(...);`, `x = f(...);` or `T x = f(...);` with the function's body in its place.
    fn written_out(&self, call: &[Token], count: usize, in_list: bool) -> Result<Vec<Token>, String> {
        let position =
            (0..call.len()).find(|&i| free(call, i) && self.waits(&call[i].text)).unwrap_or_default();
        let name = call[position].text.as_str();
        let refused = |why: &str| format!("a barrier in {name}, {why}");
        let [function] = &self.functions[name][..] else { return Err(refused("which has several forms")) };
        let mut open = position + 1;
        let mut given = Vec::new();
        if call.get(open).is_some_and(|t| t.is("<")) {
            let end =
                super::tokens::angles(call, open).ok_or_else(|| refused("whose template is not known"))?;
            given = parts(call, open + 1..end - 1);
            open = end;
        }
        let close = group(call, open).ok_or_else(|| refused("which is not called"))?;
        let arguments = parts(call, open + 1..close - 1);
        if !call.get(close).is_some_and(|t| t.is(";")) || arguments.len() != function.parameters.len() {
            return Err(refused("which is called inside an expression"));
        }
        if let Some(other) = call[open..close].iter().find(|t| self.waits(&t.text)) {
            return Err(format!("a barrier in {}, which is called inside an expression", other.text));
        }

        // Names of its own, so that none means another variable where it is written out.
        let whole = statement(&function.body, 0)
            .ok_or_else(|| refused("which has a statement of an unknown form"))?;
        let mut renamed: HashMap<String, Vec<Token>> = HashMap::new();
        let own = |name: &str| tokens_of(&format!("emu{count}_{name}"));
        let mut names = Vec::new();
        declared_in(&function.body, &whole, &mut names);
        for name in names {
            renamed.insert(name.clone(), own(&name));
        }
        let mut made = Vec::new();
        for (i, (kind, name)) in function.template.iter().enumerate() {
            let argument = match given.get(i) {
                Some(range) => text(&call[range.clone()]),
                None => {
                    let typed_parameter = |mark: &str| {
                        function
                            .parameters
                            .iter()
                            .position(|p| text(&p.kind).trim() == format!("{name}{mark}"))
                    };
                    let by = typed_parameter("")
                        .map(|by| (by, ""))
                        .or_else(|| Some((typed_parameter(" *")?, "*")));
                    let (by, mark) = by.ok_or_else(|| refused("whose template's arguments are not told"))?;
                    format!("__typeof__({mark}({}))", text(&call[arguments[by].clone()]))
                }
            };
            renamed.insert(name.clone(), own(name));
            let new = text(&renamed[name]);
            made.extend(tokens_of(&if kind.iter().any(|t| t.is("class") || t.is("typename")) {
                format!("typedef {argument} {new};")
            } else {
                format!("constexpr {} {new} = {argument};", text(kind))
            }));
        }
        for (parameter, argument) in function.parameters.iter().zip(arguments) {
            let argument = &call[argument];
            if parameter.is_reference() {
                if !matches!(argument, [one] if one.kind == Kind::Word) {
                    return Err(refused("which is given a reference to more than a variable"));
                }
                renamed.insert(parameter.name.clone(), argument.to_vec());
                continue;
            }
            let new = own(&parameter.name);
            let kind = rename(&parameter.kind, &renamed);
            made.extend(kind);
            if !parameter.lengths.is_empty() && !parameter.kind.iter().any(|t| t.is("*")) {
                made.extend(tokens_of("*"));
            } else if !parameter.lengths.is_empty() {
                return Err(refused("which is given an array of arrays"));
            }
            made.extend(new.iter().cloned());
            made.extend(tokens_of("="));
            made.extend(argument.iter().cloned());
            made.extend(tokens_of(";"));
            renamed.insert(parameter.name.clone(), new);
        }

        let mut body = function.body[1..function.body.len() - 1].to_vec();
        let Shape::Block(list) = &whole.shape else { return Err(refused("which has no body")) };
        let returns = returns(&function.body, 0..function.body.len());
        let last = list.last().map(|s| s.range.clone()).filter(|r| function.body[r.start].is("return"));
        let value = match (&returns[..], last) {
            ([], _) => None,
            ([one], Some(range)) if *one == range.start => {
                body.truncate(range.start - 1);
                Some(function.body[range.start + 1..range.end - 1].to_vec())
            }
            _ => return Err(refused("which returns from more than its end")),
        };
        made.extend(rename(&body, &renamed));
        let mut before = Vec::new();
        if position > 0 {
            let value = value.ok_or_else(|| refused("which has no value"))?;
            let target = match declaration(call, 0..call.len()) {
                Some((kind, names)) if in_list && names.len() == 1 => {
                    // Declared first, and given its value behind the body.
                    let constant = names[0].prefix.is_empty();
                    let kind = call[kind].iter().filter(|t| !(constant && t.is("const")));
                    before.extend(kind.cloned());
                    before.extend(call[names[0].prefix.start..names[0].name + 1].iter().cloned());
                    before.extend(tokens_of(";"));
                    tokens_of(&format!("{} =", call[names[0].name].text))
                }
                Some(_) => return Err(refused("whose value is declared with others")),
                None if call[position - 1].is("=") => call[..position].to_vec(),
                None => return Err(refused("which is called inside an expression")),
            };
            if before.iter().any(|t| t.is("auto")) {
                return Err(refused("whose value's type is not told"));
            }
            made.extend(target);
            made.extend(rename(&value, &renamed));
            made.extend(tokens_of(";"));
        }
        before.extend(made);
        if !in_list {
            before.insert(0, tokens_of("{").remove(0));
            before.extend(tokens_of("}"));
        }
        Ok(before)
    }

    /// Whether a function's result depends only on its arguments, and the function changes only arguments
    /// passed by reference.
    pub(super) fn plain(&self, name: &str) -> bool {
        self.functions.get(name).is_none_or(|list| {
            list.iter().all(|f| {
                !f.head.iter().any(|t| t.is("volatile"))
                    && f.body.iter().enumerate().all(|(i, t)| {
                        let memory = t.is("[")
                            || t.is("->")
                            || t.is("asm")
                            || t.is("static")
                            || (t.is("*") && super::tokens::unary(&f.body, i))
                            || t.text.starts_with("atomic")
                            || t.text.starts_with("__ld")
                            || self.variables.contains(&t.text);
                        let again = t.word().is_some_and(|word| {
                            word != name
                                && free(&f.body, i)
                                && self.functions.contains_key(word)
                                && !self.plain(word)
                        });
                        !memory && !again
                    })
            })
        })
    }
}

fn tokens_of(text: &str) -> Vec<Token> {
    super::tokens::tokens(text)
}

/// The names that a statement declares at any depth.
fn declared_in(tokens: &[Token], statement: &Statement, names: &mut Vec<String>) {
    let mut note = |range: Range<usize>| {
        if let Some((_, list)) = declaration(tokens, range.clone()) {
            names.extend(list.iter().map(|d| tokens[d.name].text.clone()));
        } else if tokens[range.start].is("typedef") {
            names.extend(tokens[range.end - 2].word().map(str::to_owned));
        } else if tokens[range.start].is("using") {
            names.extend(tokens[range.start + 1].word().map(str::to_owned));
        }
    };
    match &statement.shape {
        Shape::Block(list) => list.iter().for_each(|one| declared_in(tokens, one, names)),
        Shape::If { then, other, .. } => {
            declared_in(tokens, then, names);
            if let Some(other) = other {
                declared_in(tokens, other, names);
            }
        }
        Shape::For { first, body, .. } => {
            if !first.is_empty() {
                note(first.clone());
            }
            declared_in(tokens, body, names);
        }
        Shape::While { body, .. } | Shape::Do { body, .. } => declared_in(tokens, body, names),
        Shape::Simple => note(statement.range.clone()),
        Shape::Other => {}
    }
}

fn rename(tokens: &[Token], names: &HashMap<String, Vec<Token>>) -> Vec<Token> {
    let mut out = Vec::with_capacity(tokens.len());
    for (i, token) in tokens.iter().enumerate() {
        match names.get(&token.text).filter(|_| free(tokens, i)) {
            Some(new) => out.extend(new.iter().cloned()),
            None => out.push(token.clone()),
        }
    }
    out
}

/// Where a `return` stands that ends the function itself, none of its lambdas.
pub(super) fn returns(tokens: &[Token], range: Range<usize>) -> Vec<usize> {
    let mut out = Vec::new();
    let mut position = range.start;
    while position < range.end {
        if let Some(end) = lambda(tokens, position) {
            position = end;
            continue;
        }
        if tokens[position].is("return") {
            out.push(position);
        }
        position += 1;
    }
    out
}

/// Where the lambda that begins at `position` ends.
fn lambda(tokens: &[Token], position: usize) -> Option<usize> {
    let starts = tokens[position].is("[")
        && position.checked_sub(1).is_none_or(|b| {
            tokens[b].kind == Kind::Mark && !matches!(tokens[b].text.as_str(), "]" | ")" | ">")
        });
    if !starts {
        return None;
    }
    let mut position = group(tokens, position)?;
    if tokens.get(position)?.is("(") {
        position = group(tokens, position)?;
    }
    while tokens.get(position)?.kind == Kind::Word {
        position += 1;
    }
    tokens.get(position)?.is("{").then(|| group(tokens, position)).flatten()
}

//! What a piece of a kernel reads and changes, and which variables are the same for all threads of a block.

use std::collections::BTreeSet;
use std::ops::Range;

use super::functions::Outline;
use super::nodes::{Body, Node, Variable};
use super::tokens::{Kind, angles, free, group, group_back, parts, unary};

/// How far the threads of a block agree on a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Alike {
    /// It is made of what is the same for all.
    Always,
    /// It comes from memory: only a run can say.
    Perhaps,
    /// It depends on a thread's number.
    No,
}

#[derive(Debug, Clone)]
pub(super) struct Effect {
    pub(super) mentions: BTreeSet<usize>,
    pub(super) changes: BTreeSet<usize>,
    pub(super) alike: Alike,
    /// Memory is read that may change.
    pub(super) reads: bool,
    /// Memory is written, or more than this text tells.
    pub(super) writes: bool,
    /// Variables whose addresses are kept.
    pub(super) kept: BTreeSet<usize>,
}

/// What is found out about a variable.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) alike: Alike,
    /// One for the block, changed only by what runs once a block.
    pub(super) whole: bool,
    /// Changed behind its declaration.
    pub(super) changed: bool,
}

pub(super) struct Effects<'a> {
    pub(super) outline: &'a Outline,
    pub(super) body: &'a Body,
    pub(super) known: Vec<Known>,
}

impl<'a> Effects<'a> {
    pub(super) fn of(outline: &'a Outline, body: &'a Body) -> Self {
        let known = body.variables.iter().map(|v| Known {
            alike: if v.shared && !v.array() { Alike::Perhaps } else { Alike::Always },
            whole: v.shared || !(v.array() || v.reference),
            changed: false,
        });
        let mut made = Self { outline, body, known: known.collect() };
        let mut pieces = Vec::new();
        gather(&body.nodes, &mut pieces);
        loop {
            let mut again = false;
            for (range, own) in &pieces {
                let effect = made.effect(range.clone());
                let whole = made.once(range.clone()) && *own;
                let least = if body.is_skipped(range.start) { Alike::No } else { Alike::Perhaps };
                for &variable in &effect.changes {
                    let v = &body.variables[variable];
                    let declares = range.contains(&v.declared) && !v.parameter;
                    let before = made.known[variable].clone();
                    let now = &mut made.known[variable];
                    now.changed |= !declares || made_twice(body, v, range);
                    if !whole && !v.shared {
                        now.whole = false;
                        now.alike = now.alike.max(effect.alike).max(least);
                    }
                    again |= before.alike != now.alike
                        || before.whole != now.whole
                        || before.changed != now.changed;
                }
            }
            if !again {
                return made;
            }
        }
    }

    pub(super) fn resolve(&self, position: usize) -> Option<usize> {
        let word = self.body.tokens[position].word()?;
        let there = |v: &Variable| v.name == word && v.declared <= position && position < v.end;
        (0..self.body.variables.len())
            .filter(|&i| there(&self.body.variables[i]))
            .max_by_key(|&i| self.body.variables[i].declared)
    }

    /// Whether a piece can run once for all threads of a block.
    pub(super) fn once(&self, range: Range<usize>) -> bool {
        let effect = self.effect(range.clone());
        !effect.writes
            && effect.alike == Alike::Always
            && !self.body.is_skipped(range.start)
            && !self.body.returns(range)
            && effect.changes.iter().all(|&variable| self.known[variable].whole)
            && effect.kept.is_empty()
    }

    pub(super) fn effect(&self, range: Range<usize>) -> Effect {
        let tokens = &self.body.tokens;
        let (mentions, changes, kept) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let mut e = Effect { mentions, changes, alike: Alike::Always, reads: false, writes: false, kept };
        for i in range.clone() {
            let token = &tokens[i];
            if free(tokens, i) {
                self.word(i, &range, &mut e);
                continue;
            }
            if token.kind != Kind::Mark {
                continue;
            }
            let before = i.checked_sub(1).map(|b| &tokens[b]);
            match token.text.as_str() {
                "[" => {
                    let base = before.filter(|b| b.kind == Kind::Word || b.is("]") || b.is(")"));
                    if base.is_none() || base.is_some_and(|b| b.is("return")) {
                        // A lambda.
                        e.writes = true;
                    } else if !self.resolve(i - 1).is_some_and(|v| {
                        let v = (&self.body.variables[v], &self.known[v]);
                        (v.0.constant && !v.1.changed) || v.0.declared == i - 1
                    }) {
                        self.read(&mut e);
                    }
                }
                "->" => self.read(&mut e),
                "*" if unary(tokens, i) && !self.declares(i) => self.read(&mut e),
                "&" if unary(tokens, i) && !self.declares(i) => {
                    if let Some(v) = tokens.get(i + 1).and_then(|_| self.resolve(i + 1)) {
                        let variable = &self.body.variables[v];
                        let element =
                            variable.pointer && tokens.get(i + 2).is_some_and(|t| t.is("[") || t.is("->"));
                        if !variable.shared && !element {
                            self.change(v, &mut e);
                            e.alike = Alike::No;
                            let argument = before.is_some_and(|b| b.is("(") || b.is(","));
                            if !argument && !variable.array() {
                                e.kept.insert(v);
                            }
                        }
                    }
                }
                "=" | "+=" | "-=" | "*=" | "/=" | "%=" | "&=" | "|=" | "^=" | "<<=" | ">>=" => {
                    self.assigned(i, &mut e)
                }
                "++" | "--" => {
                    if before.is_some_and(|b| b.kind == Kind::Word || b.is("]")) {
                        self.assigned(i, &mut e);
                    } else {
                        let mut end = i + 2;
                        while end < range.end && (tokens[end].is("[") || tokens[end].is(".")) {
                            end = if tokens[end].is("[") {
                                group(tokens, end).unwrap_or(range.end)
                            } else {
                                end + 2
                            };
                        }
                        self.assigned(end, &mut e);
                    }
                }
                _ => {}
            }
        }
        e
    }

    fn read(&self, e: &mut Effect) {
        e.reads = true;
        e.alike = e.alike.max(Alike::Perhaps);
    }

    fn change(&self, v: usize, e: &mut Effect) {
        if !self.body.variables[v].shared {
            e.changes.insert(v);
        }
    }

    /// Whether a mark belongs to a declared name.
    fn declares(&self, position: usize) -> bool {
        self.body.variables.iter().any(|v| v.prefix.contains(&position) || v.kind.contains(&position))
    }

    fn word(&self, i: usize, range: &Range<usize>, e: &mut Effect) {
        let tokens = &self.body.tokens;
        let name = tokens[i].text.as_str();
        if let Some(v) = self.resolve(i) {
            let variable = &self.body.variables[v];
            e.mentions.insert(v);
            e.alike = e.alike.max(self.known[v].alike);
            if variable.declared == i && !variable.parameter {
                self.change(v, e);
            }
            if variable.array() && !variable.shared {
                self.change(v, e);
                self.read(e);
            } else if variable.shared && !variable.array() {
                self.read(e);
            }
            // A member's function may change it, and do more.
            if tokens.get(i + 1).is_some_and(|t| t.is(".")) && tokens.get(i + 3).is_some_and(|t| t.is("(")) {
                self.change(v, e);
                e.writes = true;
            }
            if tokens.get(i + 1).is_some_and(|t| t.is("(")) && variable.declared != i {
                e.writes = true;
            }
            return;
        }
        match name {
            "threadIdx" => e.alike = Alike::No,
            "asm" | "volatile" => e.writes = true,
            _ if name.starts_with("atomic") || name.starts_with("clock") => {
                e.writes = true;
                e.alike = Alike::No;
            }
            _ if name.starts_with("__threadfence")
                || name.starts_with("__st")
                || name.starts_with("surf") =>
            {
                e.writes = true
            }
            _ if name.starts_with("__ld") || name.starts_with("tex") => self.read(e),
            _ => {}
        }
        let Some(functions) = self.outline.functions.get(name) else {
            if self.outline.variables.contains(name) {
                self.read(e);
            }
            return;
        };
        if functions.iter().any(|f| self.outline.reached(&f.body).contains("threadIdx")) {
            e.alike = Alike::No;
        }
        let plain = self.outline.plain(name);
        if !plain {
            self.read(e);
            e.writes = true;
        }
        let open =
            if tokens.get(i + 1).is_some_and(|t| t.is("<")) { angles(tokens, i + 1) } else { Some(i + 1) };
        let close = open.and_then(|open| group(tokens, open)).filter(|&close| close <= range.end);
        let (Some(open), Some(close)) = (open, close) else { return };
        for (k, part) in parts(tokens, open + 1..close - 1).into_iter().enumerate() {
            if functions.iter().any(|f| f.parameters.get(k).is_some_and(|p| p.is_changed())) {
                for position in part.filter(|&position| free(tokens, position)) {
                    if let Some(v) = self.resolve(position) {
                        self.change(v, e);
                        if !plain {
                            e.alike = Alike::No;
                        }
                    }
                }
            }
        }
    }

    /// The assignment whose sign stands at `sign`.
    fn assigned(&self, sign: usize, e: &mut Effect) {
        let tokens = &self.body.tokens;
        let (mut end, mut element) = (sign, false);
        loop {
            let Some(last) = end.checked_sub(1) else { return };
            if tokens[last].is("]") {
                element = true;
                end = group_back(tokens, end).unwrap_or(0);
            } else if tokens[last].is(")") {
                // `*(T*)(...) = `, or a member of a call.
                e.writes = true;
                let from = group_back(tokens, end).unwrap_or(last);
                for position in (from..end).filter(|&position| free(tokens, position)) {
                    if let Some(v) = self.resolve(position).filter(|&v| !self.body.variables[v].pointer) {
                        self.change(v, e);
                    }
                }
                return;
            } else if tokens[last].kind == Kind::Word {
                let member = last.checked_sub(1).map(|b| tokens[b].text.as_str());
                match member {
                    Some(".") => {
                        end = last - 1;
                        continue;
                    }
                    Some("->" | "::") => {
                        e.writes = true;
                        return;
                    }
                    _ => {}
                }
                let behind = member == Some("*") && unary(tokens, last - 1) && !self.declares(last - 1);
                match self.resolve(last) {
                    Some(v) => {
                        let variable = &self.body.variables[v];
                        if variable.shared
                            || behind
                            || (element && variable.pointer && !variable.array() && variable.declared != last)
                        {
                            e.writes = true;
                        } else {
                            self.change(v, e);
                        }
                    }
                    // One of the piece's own, unless it leads elsewhere.
                    None if element || behind => e.writes = true,
                    None => e.writes |= self.outline.variables.contains(&tokens[last].text),
                }
                return;
            } else {
                return;
            }
        }
    }
}

/// Whether a piece that declares a variable also changes it: its name then stands there again.
fn made_twice(body: &Body, v: &Variable, range: &Range<usize>) -> bool {
    v.parameter
        || range.clone().any(|i| i != v.declared && free(&body.tokens, i) && body.tokens[i].is(&v.name))
}

/// Everything that changes variables, and whether it may run once a block.
fn gather(nodes: &[Node], out: &mut Vec<(Range<usize>, bool)>) {
    for node in nodes {
        match node {
            Node::Piece(range) => out.push((range.clone(), true)),
            Node::If { condition, then, other } => {
                out.push((condition.clone(), true));
                gather(then, out);
                gather(other.as_deref().unwrap_or_default(), out);
            }
            Node::For { first, condition, step, body } => {
                out.extend([(first.clone(), true), (condition.clone(), true), (step.clone(), true)]);
                gather(body, out);
            }
            Node::While { condition, body } | Node::Do { body, condition } => {
                out.push((condition.clone(), true));
                gather(body, out);
            }
            Node::Barrier | Node::Whole(_) | Node::Leave(_) => {}
        }
    }
}

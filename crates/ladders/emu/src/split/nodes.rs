//! A kernel's body as what runs once a block, and pieces that run once a thread.

use std::ops::Range;

use super::Refusal;
use super::functions::{Function, returns};
use super::statements::{Shape, Statement, declaration, statement};
use super::tokens::{Token, tokens};

pub(super) enum Node {
    /// Statements of a thread, without a barrier.
    Piece(Range<usize>),
    Barrier,
    /// A declaration for the whole block: of a type, or of shared memory.
    Whole(Range<usize>),
    If {
        condition: Range<usize>,
        then: Vec<Node>,
        other: Option<Vec<Node>>,
    },
    For {
        first: Range<usize>,
        condition: Range<usize>,
        step: Range<usize>,
        body: Vec<Node>,
    },
    While {
        condition: Range<usize>,
        body: Vec<Node>,
    },
    Do {
        body: Vec<Node>,
        condition: Range<usize>,
    },
    /// `break` or `continue` of a loop with a barrier.
    Leave(&'static str),
}

/// A variable that a barrier may lie behind.
#[derive(Debug, Clone)]
pub(super) struct Variable {
    pub(super) name: String,
    /// Where its name is declared, and where its scope ends.
    pub(super) declared: usize,
    pub(super) end: usize,
    pub(super) kind: Range<usize>,
    pub(super) prefix: Range<usize>,
    pub(super) lengths: Range<usize>,
    pub(super) value: Option<Range<usize>>,
    pub(super) parameter: bool,
    pub(super) shared: bool,
    /// A pointer to memory that nothing writes.
    pub(super) constant: bool,
    pub(super) pointer: bool,
    pub(super) reference: bool,
}

impl Variable {
    pub(super) fn array(&self) -> bool {
        !self.lengths.is_empty()
    }
}

/// A body as nodes.
pub(super) struct Body {
    pub(super) tokens: Vec<Token>,
    pub(super) nodes: Vec<Node>,
    pub(super) variables: Vec<Variable>,
    /// From a `continue` of some threads to the end of its loop: what stands there they do not do.
    pub(super) skipped: Vec<Range<usize>>,
    /// Where a `continue` of a piece stands.
    pub(super) continues: Vec<usize>,
}

/// The loop around a statement.
#[derive(Clone)]
struct Around {
    range: Range<usize>,
    direct: bool,
}

impl Body {
    pub(super) fn of(flattened: Vec<Token>, kernel: &Function) -> Result<Self, Refusal> {
        let tokens = single(flattened)?;
        let whole = parsed(&tokens)?;
        let mut made = Self {
            tokens,
            nodes: Vec::new(),
            variables: Vec::new(),
            skipped: Vec::new(),
            continues: Vec::new(),
        };
        for parameter in &kernel.parameters {
            made.variables.push(Variable {
                name: parameter.name.clone(),
                declared: 0,
                end: whole.range.end,
                kind: 0..0,
                prefix: 0..0,
                lengths: 0..0,
                value: None,
                parameter: true,
                shared: false,
                constant: parameter.is_constant(),
                pointer: parameter.kind.iter().any(|t| t.is("*")),
                reference: false,
            });
        }
        let mut nodes = Vec::new();
        made.add(&whole, whole.range.end, None, &mut nodes)?;
        made.nodes = nodes;
        Ok(made)
    }

    fn waits(&self, range: Range<usize>) -> bool {
        self.tokens[range].iter().any(|t| t.is("__syncthreads"))
    }

    fn add(
        &mut self,
        statement: &Statement,
        end: usize,
        around: Option<&Around>,
        out: &mut Vec<Node>,
    ) -> Result<(), Refusal> {
        let range = statement.range.clone();
        let waits = self.waits(range.clone());
        let inside = around.map(|a| Around { range: a.range.clone(), direct: false });
        match &statement.shape {
            Shape::Block(list) if waits || range.start == 0 || end == range.end => {
                for one in list {
                    self.add(one, range.end, around, out)?;
                }
                return Ok(());
            }
            Shape::Simple if waits => {
                if self.tokens[range.clone()].len() != 4 || !self.tokens[range.start].is("__syncthreads") {
                    return Err("a barrier inside an expression".to_owned());
                }
                out.push(Node::Barrier);
                return Ok(());
            }
            Shape::Simple => {
                let first = &self.tokens[range.start];
                if let Some(leave) = ["break", "continue"].into_iter().find(|leave| first.is(leave)) {
                    out.push(Node::Leave(leave));
                    return Ok(());
                }
                if ["typedef", "using", "static_assert"].iter().any(|word| first.is(word)) {
                    out.push(Node::Whole(range));
                    return Ok(());
                }
                let shared = self.declare(range.clone(), end);
                out.push(if shared { Node::Whole(range) } else { Node::Piece(range) });
                return Ok(());
            }
            Shape::Other if waits => return Err("a barrier inside a switch".to_owned()),
            _ => {}
        }
        let leaves = self.leaves(statement, around)?;
        if !waits && !leaves {
            out.push(Node::Piece(range));
            return Ok(());
        }
        match &statement.shape {
            Shape::If { condition, then, other } => {
                let mut first = Vec::new();
                self.add(then, then.range.end, inside.as_ref(), &mut first)?;
                let other = match other {
                    Some(other) => {
                        let mut second = Vec::new();
                        self.add(other, other.range.end, inside.as_ref(), &mut second)?;
                        Some(second)
                    }
                    None => None,
                };
                out.push(Node::If { condition: condition.clone(), then: first, other });
            }
            Shape::For { first, condition, step, body } => {
                self.declare(first.clone(), range.end);
                let body = self.body(body)?;
                let (first, condition, step) = (first.clone(), condition.clone(), step.clone());
                out.push(Node::For { first, condition, step, body });
            }
            Shape::While { condition, body } => {
                let body = self.body(body)?;
                out.push(Node::While { condition: condition.clone(), body });
            }
            Shape::Do { body, condition } => {
                let body = self.body(body)?;
                out.push(Node::Do { body, condition: condition.clone() });
            }
            _ => return Err("a break out of a block of statements".to_owned()),
        }
        Ok(())
    }

    fn body(&mut self, statement: &Statement) -> Result<Vec<Node>, Refusal> {
        let mut nodes = Vec::new();
        self.add(
            statement,
            statement.range.end,
            Some(&Around { range: statement.range.clone(), direct: true }),
            &mut nodes,
        )?;
        Ok(nodes)
    }

    /// Notes what a statement declares. Whether it is shared memory.
    fn declare(&mut self, range: Range<usize>, end: usize) -> bool {
        let Some((kind, names)) = declaration(&self.tokens, range) else { return false };
        let has = |word: &str| self.tokens[kind.clone()].iter().any(|t| t.is(word));
        let shared = has("__shared__");
        let made: Vec<_> = names
            .into_iter()
            .map(|d| {
                let prefixed = |mark: &str| self.tokens[d.prefix.clone()].iter().any(|t| t.is(mark));
                Variable {
                    name: self.tokens[d.name].text.clone(),
                    declared: d.name,
                    end,
                    kind: kind.clone(),
                    pointer: prefixed("*"),
                    reference: prefixed("&"),
                    prefix: d.prefix,
                    lengths: d.lengths,
                    value: d.value,
                    parameter: false,
                    shared,
                    constant: false,
                }
            })
            .collect();
        self.variables.extend(made);
        shared
    }

    /// Whether a statement without a barrier leaves the loop that it is in by a way that all threads of a
    /// block must take.
    fn leaves(&mut self, statement: &Statement, around: Option<&Around>) -> Result<bool, Refusal> {
        let mut exits = Vec::new();
        unbound(&self.tokens, statement, &mut exits);
        let Some(around) = around.filter(|_| !exits.is_empty()) else { return Ok(false) };
        for &position in &exits {
            let rest = position..around.range.end;
            if self.tokens[position].is("continue") && around.direct && !self.waits(rest.clone()) {
                self.skipped.push(rest);
                self.continues.push(position);
            } else {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether threads may not come to a place that others come to.
    pub(super) fn is_skipped(&self, position: usize) -> bool {
        self.skipped.iter().any(|range| range.contains(&position))
    }

    pub(super) fn returns(&self, range: Range<usize>) -> bool {
        !returns(&self.tokens, range).is_empty()
    }
}

fn parsed(tokens: &[Token]) -> Result<Statement, Refusal> {
    statement(tokens, 0).ok_or_else(|| "a statement of an unknown form".to_owned())
}

/// `break` and `continue` of a loop around a statement.
fn unbound(tokens: &[Token], statement: &Statement, exits: &mut Vec<usize>) {
    match &statement.shape {
        Shape::Block(list) => list.iter().for_each(|one| unbound(tokens, one, exits)),
        Shape::If { then, other, .. } => {
            unbound(tokens, then, exits);
            if let Some(other) = other {
                unbound(tokens, other, exits);
            }
        }
        Shape::Simple
            if tokens[statement.range.start].is("break") || tokens[statement.range.start].is("continue") =>
        {
            exits.push(statement.range.start);
        }
        Shape::Other => exits.extend(statement.range.clone().filter(|&i| tokens[i].is("continue"))),
        _ => {}
    }
}

/// Declarations of several names taken apart, outside of statements that have no barrier.
fn single(mut body: Vec<Token>) -> Result<Vec<Token>, Refusal> {
    let whole = parsed(&body)?;
    let mut list = Vec::new();
    declarations(&body, &whole, &mut list);
    for range in list.into_iter().rev() {
        let Some((kind, names)) = declaration(&body, range.clone()).filter(|(_, names)| names.len() > 1)
        else {
            continue;
        };
        if body[kind.clone()].iter().any(|t| t.is("__shared__")) {
            continue;
        }
        let mut made = Vec::new();
        for name in names {
            made.extend_from_slice(&body[kind.clone()]);
            made.extend_from_slice(&body[name.prefix.start..name.end]);
            made.extend(tokens(";"));
        }
        body.splice(range, made);
    }
    Ok(body)
}

fn declarations(tokens: &[Token], statement: &Statement, list: &mut Vec<Range<usize>>) {
    let waits = tokens[statement.range.clone()].iter().any(|t| t.is("__syncthreads"));
    match &statement.shape {
        _ if !waits && statement.range.start > 0 && !matches!(statement.shape, Shape::Simple) => {}
        Shape::Block(statements) => statements.iter().for_each(|one| declarations(tokens, one, list)),
        Shape::If { then, other, .. } => {
            declarations(tokens, then, list);
            if let Some(other) = other {
                declarations(tokens, other, list);
            }
        }
        Shape::For { body, .. } | Shape::While { body, .. } | Shape::Do { body, .. } => {
            declarations(tokens, body, list)
        }
        Shape::Simple => list.push(statement.range.clone()),
        Shape::Other => {}
    }
}

//! The order of what runs once a block and of loops over its threads.

use std::collections::BTreeSet;
use std::ops::Range;

use super::Refusal;
use super::effects::{Alike, Effects};
use super::nodes::Node;
use super::statements::{Shape, statement};
use super::tokens::{free, text};

/// A loop over threads.
#[derive(Debug, Default)]
pub(super) struct Region {
    pub(super) pieces: Vec<Range<usize>>,
    /// It asks each thread a condition, which all must answer alike.
    pub(super) asks: bool,
    pub(super) mentions: BTreeSet<usize>,
    pub(super) changes: BTreeSet<usize>,
}

#[derive(Debug)]
pub(super) enum Step {
    /// What runs once a block.
    Text(String),
    Region(usize),
}

/// Where a variable is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Storage {
    /// One for the block.
    Whole,
    /// In the only loop that uses it.
    Loop,
    /// Made again by each loop that uses it.
    Again,
    /// An array over threads.
    Array,
}

pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    pub(super) regions: Vec<Region>,
    pub(super) storage: Vec<Storage>,
    /// Threads may end before others.
    pub(super) ends: bool,
}

/// Longer values are kept, not made again.
const MOST_TOKENS: usize = 60;

struct Walk<'a> {
    effects: &'a Effects<'a>,
    steps: Vec<Step>,
    regions: Vec<Region>,
    pending: Vec<Range<usize>>,
    /// For each open loop, whether its `continue` would skip its step.
    steps_over: Vec<bool>,
}

impl Plan {
    pub(super) fn of(effects: &Effects<'_>) -> Result<Self, Refusal> {
        let mut walk = Walk {
            effects,
            steps: Vec::new(),
            regions: Vec::new(),
            pending: Vec::new(),
            steps_over: Vec::new(),
        };
        walk.visit(&effects.body.nodes)?;
        walk.flush();
        let (steps, mut regions) = (walk.steps, walk.regions);
        let again: Vec<bool> = again(effects);
        for region in &mut regions {
            for piece in &region.pieces {
                let effect = effects.effect(piece.clone());
                region.mentions.extend(effect.mentions);
                region.changes.extend(effect.changes);
            }
            // What is made again needs what it is made of.
            let mut next: Vec<usize> = region.mentions.iter().copied().collect();
            while let Some(index) = next.pop() {
                if let Some(value) = effects.body.variables[index].value.clone().filter(|_| again[index]) {
                    let more = effects.effect(value).mentions;
                    next.extend(more.into_iter().filter(|&m| region.mentions.insert(m)));
                }
            }
        }
        let mut storage = Vec::new();
        for (index, v) in effects.body.variables.iter().enumerate() {
            let uses = regions.iter().filter(|r| r.mentions.contains(&index)).count();
            let within = |r: &&Region| r.pieces.iter().any(|p| p.contains(&v.declared)) && !v.parameter;
            let declared = regions.iter().find(within);
            let alone = uses <= 1 && (uses == 0 || declared.is_some_and(|r| r.mentions.contains(&index)));
            storage.push(if effects.known[index].whole {
                Storage::Whole
            } else if again[index] {
                Storage::Again
            } else if alone && !v.parameter && !led_to(effects, index) {
                Storage::Loop
            } else {
                Storage::Array
            });
        }
        for (index, v) in
            effects.body.variables.iter().enumerate().filter(|(index, _)| storage[*index] == Storage::Array)
        {
            if v.reference {
                return Err(format!("the reference {} lives across a barrier", v.name));
            }
            if effects.body.tokens[v.kind.clone()].iter().any(|t| t.is("auto")) {
                return Err(format!("the type of {}, which lives across a barrier, is not told", v.name));
            }
            let kept = |r: &Region| r.pieces.iter().any(|p| effects.effect(p.clone()).kept.contains(&index));
            if regions.iter().any(kept) {
                return Err(format!("the address of {}, which lives across a barrier, is kept", v.name));
            }
        }
        let ends = regions.len() > 1
            && regions.iter().any(|r| r.pieces.iter().any(|piece| effects.body.returns(piece.clone())));
        Ok(Self { steps, regions, storage, ends })
    }
}

/// Variables that are made again: never changed, and of numbers that are the same whenever they are asked.
fn again(effects: &Effects<'_>) -> Vec<bool> {
    let variables = &effects.body.variables;
    let mut again: Vec<bool> = variables.iter().map(|v| v.value.is_some()).collect();
    loop {
        let before = again.clone();
        for (index, v) in variables.iter().enumerate() {
            let Some(value) = v.value.clone().filter(|_| again[index]) else { continue };
            let known = &effects.known[index];
            let effect = effects.effect(value.clone());
            let steady = |m: &usize| {
                let (other, known) = (&variables[*m], &effects.known[*m]);
                let own = free(&effects.body.tokens, v.declared) && *m != index;
                let there = if known.whole { !known.changed } else { again[*m] };
                own && there && (other.array() || !other.shared)
            };
            again[index] = !known.whole
                && !known.changed
                && !v.array()
                && !v.reference
                && !v.parameter
                && !effect.reads
                && !effect.writes
                && effect.changes.is_empty()
                && value.len() <= MOST_TOKENS
                && effect.mentions.iter().all(steady)
                && !hidden(effects, index, value);
        }
        if again == before {
            return again;
        }
    }
}

/// Whether a name in a value means another variable somewhere in the scope of what has the value.
fn hidden(effects: &Effects<'_>, index: usize, value: Range<usize>) -> bool {
    let v = &effects.body.variables[index];
    let tokens = &effects.body.tokens;
    value.filter(|&i| free(tokens, i)).any(|i| {
        effects.body.variables.iter().any(|other| {
            other.name == tokens[i].text && other.declared > v.declared && other.declared < v.end
        })
    })
}

/// Whether a pointer that outlives a loop may lead to an array of this name.
pub(super) fn led_to(effects: &Effects<'_>, index: usize) -> bool {
    effects.body.variables[index].array()
        && effects.body.variables.iter().any(|v| {
            v.pointer && v.value.clone().is_some_and(|value| effects.effect(value).mentions.contains(&index))
        })
}

impl Walk<'_> {
    fn flush(&mut self) {
        if !self.pending.is_empty() {
            let pieces = std::mem::take(&mut self.pending);
            self.region(pieces, false);
        }
    }

    fn region(&mut self, pieces: Vec<Range<usize>>, asks: bool) -> usize {
        self.steps.push(Step::Region(self.regions.len()));
        self.regions.push(Region { pieces, asks, ..Region::default() });
        self.regions.len() - 1
    }

    fn text(&mut self, text: impl Into<String>) {
        self.steps.push(Step::Text(text.into()));
    }

    fn words(&self, range: Range<usize>) -> String {
        text(&self.effects.body.tokens[range])
    }

    /// A condition that all threads answer alike, as text.
    fn condition(&mut self, range: Range<usize>, construct: &str) -> Result<String, Refusal> {
        let effect = self.effects.effect(range.clone());
        if range.is_empty() {
            return Ok("true".to_owned());
        }
        if self.effects.once(range.clone()) {
            return Ok(self.words(range));
        }
        if effect.alike == Alike::No {
            return Err(format!(
                "a barrier in {construct} whose condition depends on the thread: {}",
                self.words(range).trim()
            ));
        }
        let number = self.region(vec![range], true);
        Ok(format!("emu_any_{number}"))
    }

    fn once(&self, range: &Range<usize>) -> bool {
        range.is_empty() || self.effects.once(range.clone())
    }

    fn piece(&mut self, range: &Range<usize>, ending: &str) {
        if range.is_empty() {
            return;
        }
        if self.effects.once(range.clone()) {
            let changes = self.effects.effect(range.clone()).changes;
            // What waits would see the new value.
            let seen = |piece: &Range<usize>| {
                self.effects.effect(piece.clone()).mentions.iter().any(|m| changes.contains(m))
            };
            if self.pending.iter().any(seen) {
                self.flush();
            }
            let text = self.words(range.clone()) + ending;
            self.text(text);
        } else if let Some(condition) = self.all_return(range) {
            self.flush();
            let text = format!("if ({}) return;", self.words(condition));
            self.text(text);
        } else {
            self.pending.push(range.clone());
        }
    }

    /// The condition of `if (...) return;` that is the same for all.
    fn all_return(&self, range: &Range<usize>) -> Option<Range<usize>> {
        let tokens = &self.effects.body.tokens;
        match statement(tokens, range.start)?.shape {
            Shape::If { condition, then, other: None } => {
                let only = tokens[then.range].iter().filter(|t| !t.is("{") && !t.is("}"));
                let only: Vec<_> = only.map(|t| t.text.as_str()).collect();
                (only == ["return", ";"] && self.effects.once(condition.clone())).then_some(condition)
            }
            _ => None,
        }
    }

    fn visit(&mut self, nodes: &[Node]) -> Result<(), Refusal> {
        for node in nodes {
            match node {
                Node::Piece(range) => self.piece(range, ""),
                Node::Barrier => self.flush(),
                Node::Whole(range) => {
                    let text = self.words(range.clone());
                    self.text(text);
                }
                Node::Leave(word) => {
                    self.flush();
                    if *word == "continue" && self.steps_over.last().copied().unwrap_or_default() {
                        return Err("a continue past a barrier, in a loop that asks every thread".to_owned());
                    }
                    self.text(format!("{word};"));
                }
                Node::If { condition, then, other } => {
                    self.flush();
                    let condition = self.condition(condition.clone(), "an if")?;
                    self.text(format!("if ({condition}) {{ emu::Kept emu_kept;"));
                    self.visit(then)?;
                    self.flush();
                    if let Some(other) = other {
                        self.text("} else { emu::Kept emu_kept;");
                        self.visit(other)?;
                        self.flush();
                    }
                    self.text("}");
                }
                Node::For { first, condition, step, body } => {
                    self.flush();
                    self.count(first, condition, step, body)?;
                }
                Node::While { condition, body } => {
                    self.flush();
                    self.text("for (;;) { emu::Kept emu_kept;");
                    let condition = self.condition(condition.clone(), "a loop")?;
                    self.text(format!("if (!({condition})) break;"));
                    self.inside(body, false)?;
                    self.text("}");
                }
                Node::Do { body, condition } => {
                    self.flush();
                    self.text("for (;;) { emu::Kept emu_kept;");
                    self.inside(body, true)?;
                    let condition = self.condition(condition.clone(), "a loop")?;
                    self.text(format!("if (!({condition})) break; }}"));
                }
            }
        }
        Ok(())
    }

    fn inside(&mut self, body: &[Node], steps_over: bool) -> Result<(), Refusal> {
        self.steps_over.push(steps_over);
        self.visit(body)?;
        self.flush();
        self.steps_over.pop();
        Ok(())
    }

    fn count(
        &mut self,
        first: &Range<usize>,
        condition: &Range<usize>,
        step: &Range<usize>,
        body: &[Node],
    ) -> Result<(), Refusal> {
        if self.once(first) && self.once(condition) && self.once(step) {
            let head = [first, condition, step].map(|range| self.words(range.clone()));
            self.text(format!("for ({}; {}; {}) {{ emu::Kept emu_kept;", head[0], head[1], head[2]));
            self.inside(body, false)?;
            self.text("}");
            return Ok(());
        }
        self.text("{ emu::Kept emu_kept;");
        self.piece(first, ";");
        self.flush();
        self.text("for (;;) { emu::Kept emu_kept;");
        let condition = self.condition(condition.clone(), "a loop")?;
        self.text(format!("if (!({condition})) break;"));
        self.inside(body, true)?;
        self.piece(step, ";");
        self.flush();
        self.text("} }");
        Ok(())
    }
}

//! The text of a kernel's loops.

use std::collections::BTreeSet;
use std::ops::Range;

use super::Refusal;
use super::effects::Effects;
use super::functions::returns;
use super::nodes::Variable;
use super::plan::{Plan, Region, Step, Storage, led_to};
use super::statements::{Declared, declaration};
use super::tokens::text;

/// A function that runs all threads of a block.
pub(super) fn function(
    effects: &Effects<'_>,
    plan: &Plan,
    name: &str,
    parameters: &[String],
) -> Result<String, Refusal> {
    let emit = Emit { effects, plan };
    let mut out = format!("static __attribute__((flatten)) void emu_split_{name}(const emu::Place emu_place");
    for parameter in parameters {
        out.push_str(", ");
        out.push_str(parameter);
    }
    out.push_str(
        ") {\nconst emu::Place& emu_outer = emu_place; const emu::Index emu_size = emu_outer.block_dim; \
         const unsigned emu_count = emu_size.x * emu_size.y * emu_size.z; emu::Kept emu_kept;\n",
    );
    if plan.ends {
        out.push_str(
            "unsigned char emu_live[emu::MOST_THREADS]; __builtin_memset(emu_live, 1, emu_count);\n",
        );
    }
    for (index, v) in effects.body.variables.iter().enumerate() {
        if v.parameter && plan.storage[index] == Storage::Array {
            out.push_str(&emit.storage(index));
            out.push_str(&format!(
                "for (unsigned emu_t = 0; emu_t < emu_count; emu_t++) emu_kept_{index}[emu_t] = {};\n",
                v.name
            ));
        }
    }
    for step in &plan.steps {
        match step {
            Step::Text(text) => out.push_str(text),
            Step::Region(number) => out.push_str(&emit.region(*number)?),
        }
        out.push('\n');
    }
    out.push_str("}\n");
    Ok(out)
}

struct Emit<'a> {
    effects: &'a Effects<'a>,
    plan: &'a Plan,
}

impl Emit<'_> {
    fn variable(&self, index: usize) -> &Variable {
        &self.effects.body.variables[index]
    }

    fn words(&self, range: Range<usize>) -> String {
        text(&self.effects.body.tokens[range])
    }

    /// An array over threads.
    fn storage(&self, index: usize) -> String {
        let v = self.variable(index);
        let kind = if v.parameter {
            format!("__typeof__({})", v.name)
        } else {
            let tokens = &self.effects.body.tokens;
            let kept = |word: &str| {
                !matches!(word, "static" | "constexpr" | "extern") && (v.pointer || word != "const")
            };
            let words = v.kind.clone().filter(|&i| kept(&tokens[i].text)).map(|i| tokens[i].text.as_str());
            let mut end = v.prefix.end;
            while end > v.prefix.start && !tokens[end - 1].is("*") {
                end -= 1;
            }
            let prefix = v.prefix.start..end;
            format!("{} {}", words.collect::<Vec<_>>().join(" "), self.words(prefix))
        };
        format!(
            "typedef {kind} emu_type_{index} {}; emu_type_{index}* const __restrict__ emu_kept_{index} = \
             (emu_type_{index}*)emu::keep(sizeof(emu_type_{index}) * emu_count); if (!emu_kept_{index}) return;\n",
            self.words(v.lengths.clone())
        )
    }

    /// Whether a loop declares a variable.
    fn declares(&self, region: &Region, index: usize) -> bool {
        let v = self.variable(index);
        !v.parameter && region.pieces.iter().any(|piece| piece.contains(&v.declared))
    }

    fn region(&self, number: usize) -> Result<String, Refusal> {
        let region = &self.plan.regions[number];
        let mut used: Vec<usize> = region.mentions.iter().copied().collect();
        used.sort_by_key(|&index| self.variable(index).declared);
        let (mut before, mut head, mut tail) = (String::new(), String::new(), String::new());
        for &index in &used {
            let v = self.variable(index);
            let (name, declares) = (&v.name, self.declares(region, index));
            match self.plan.storage[index] {
                Storage::Again if !declares => {
                    let mut kind = self.words(v.kind.clone());
                    kind.push_str(&self.words(v.prefix.clone()));
                    let value = v.value.clone().unwrap_or(0..0);
                    let sign = if self.effects.body.tokens[value.start].is("{") { "" } else { "=" };
                    head.push_str(&format!("{kind} {name} {sign} {};\n", self.words(value)));
                }
                Storage::Array => {
                    if declares {
                        before.push_str(&self.storage(index));
                    }
                    let changes = declares || region.changes.contains(&index);
                    if v.array() && led_to(self.effects, index) {
                        head.push_str(&format!("emu_type_{index}& {name} = emu_kept_{index}[emu_t];\n"));
                    } else if v.array() {
                        // A copy is nobody else's: it may be in registers.
                        head.push_str(&format!("emu_type_{index} {name};\n"));
                        let copy = |to: &str, from: &str| {
                            format!("__builtin_memcpy(&{to}, &{from}, sizeof {name});\n")
                        };
                        let kept = format!("emu_kept_{index}[emu_t]");
                        head.push_str(&if declares { String::new() } else { copy(name, &kept) });
                        tail.push_str(&if changes { copy(&kept, name) } else { String::new() });
                    } else {
                        let value =
                            if declares { String::new() } else { format!(" = emu_kept_{index}[emu_t]") };
                        head.push_str(&format!("emu_type_{index} {name}{value};\n"));
                        tail.push_str(&if changes {
                            format!("emu_kept_{index}[emu_t] = {name};\n")
                        } else {
                            String::new()
                        });
                    }
                }
                _ => {}
            }
        }
        let mut out = before;
        if region.asks {
            out.push_str(&format!("bool emu_any_{number} = false, emu_all_{number} = true;\n"));
        }
        out.push_str(
            "for (unsigned emu_z = 0; emu_z < emu_size.z; emu_z++) for (unsigned emu_y = 0; emu_y < emu_size.y; emu_y++) {\n",
        );
        // Signed: for all the compiler knows an unsigned place could begin again at 0.
        out.push_str("const long emu_row = (emu_z * emu_size.y + emu_y) * emu_size.x;\n");
        out.push_str(if region.asks { "" } else { "#pragma GCC ivdep\n" });
        out.push_str(
            "for (int emu_x = 0; emu_x < (int)emu_size.x; emu_x++) {\nconst long emu_t = emu_row + emu_x;\n\
             const emu::Place emu_place{emu::Index{(unsigned)emu_x, emu_y, emu_z}, emu_outer.block, emu_size, \
             emu_outer.grid_dim};\n",
        );
        if self.plan.ends {
            out.push_str("if (!emu_live[emu_t]) continue;\n");
        }
        out.push_str(&head);
        if region.asks {
            out.push_str(&format!(
                "const bool emu_own = ({}); emu_any_{number} |= emu_own; emu_all_{number} &= emu_own;\n",
                self.words(region.pieces[0].clone())
            ));
        } else {
            out.push_str("{\n");
            for piece in &region.pieces {
                out.push_str(&self.piece(piece, number));
            }
            out.push_str(&format!("}}\nemu_end_{number}:;\n"));
        }
        out.push_str(&tail);
        out.push_str("} }\n");
        if region.asks {
            let words = self.words(region.pieces[0].clone()).trim().replace(['"', '\\'], "'");
            out.push_str(&format!(
                "if (emu_any_{number} && !emu_all_{number}) {{ emu::disagree(\"{words}\"); return; }}\n"
            ));
        }
        if region.pieces.iter().any(|piece| self.effects.body.returns(piece.clone())) && self.plan.ends {
            out.push_str("if (!emu::any(emu_live, emu_count)) return;\n");
        }
        Ok(out)
    }

    /// Statements of a thread; what it declares for other loops is given its value only.
    fn piece(&self, range: &Range<usize>, number: usize) -> String {
        let tokens = &self.effects.body.tokens;
        let kept = |name: &Declared| {
            let index =
                self.effects.body.variables.iter().position(|v| v.declared == name.name && !v.parameter)?;
            (self.plan.storage[index] == Storage::Array).then_some(index)
        };
        let declared =
            declaration(tokens, range.clone()).filter(|(_, names)| names.iter().any(|n| kept(n).is_some()));
        let Some((kind, names)) = declared else { return self.statement(range, number) };
        let mut out = String::new();
        for name in &names {
            let Some(index) = kept(name) else {
                out.push_str(&self.words(kind.clone()));
                out.push_str(&self.words(name.prefix.start..name.end));
                out.push_str(";\n");
                continue;
            };
            let Some(value) = name.value.clone() else { continue };
            let (own, words) = (&self.variable(index).name, self.words(value.clone()));
            out.push_str(&match tokens[value.start].text.as_str() {
                _ if self.variable(index).array() => format!(
                    "{{ emu_type_{index} emu_first = {words}; __builtin_memcpy(&{own}, &emu_first, sizeof emu_first); }}\n"
                ),
                "{" => format!("{own} = emu_type_{index}{words};\n"),
                _ => format!("{own} = {words};\n"),
            });
        }
        out
    }

    fn statement(&self, range: &Range<usize>, number: usize) -> String {
        let tokens = &self.effects.body.tokens;
        let ends: BTreeSet<usize> = returns(tokens, range.clone()).into_iter().collect();
        let mut out = String::new();
        let mut position = range.start;
        while position < range.end {
            if ends.contains(&position) {
                let live = if self.plan.ends { "emu_live[emu_t] = 0;" } else { "" };
                out.push_str(&format!("{{ {live} goto emu_end_{number}; }}\n"));
                position += 2;
            } else if self.effects.body.continues.contains(&position) {
                out.push_str(&format!("goto emu_end_{number};\n"));
                position += 2;
            } else {
                out.push_str(&text(&tokens[position..=position]));
                position += 1;
            }
        }
        out.push_str(if tokens[range.end - 1].is(";") || tokens[range.end - 1].is("}") {
            "\n"
        } else {
            ";\n"
        });
        out
    }
}

//! What a kernel's PTX says of the work of one thread.

/// Instructions of one thread by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Counts {
    /// All.
    pub instructions: f64,
    /// Floating-point operations, a multiply-add as two.
    pub flops: f64,
    /// Bytes to and from global memory.
    pub bytes: f64,
    /// Results of special-function units: reciprocals, roots, sines, powers, logarithms.
    pub special: f64,
    /// Operations of multiplications and multiply-adds of integers, two each.
    pub products: f64,
    /// Places where a warp waits for something slow: barriers, and groups of loads from global memory.
    pub waits: f64,
}

/// What tells how often a main loop turns: the loop with most of it is the main one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Evidence {
    /// Floating-point operations.
    Flops,
    /// Multiplications of integers.
    Products,
    /// Bytes to and from global memory.
    Bytes,
}

impl Evidence {
    fn of(self, counts: &Counts) -> f64 {
        match self {
            Self::Flops => counts.flops,
            Self::Products => counts.products,
            Self::Bytes => counts.bytes,
        }
    }
}

/// A kernel as a main loop and everything else.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Mix {
    /// Outside of the main loop, once.
    pub outside: Counts,
    /// One turn of the main loop: the one with the most operations, or where none has any, with the most
    /// bytes.
    pub inside: Counts,
}

impl Mix {
    /// What a thread does that makes `flops` operations, or where the loop has none moves `bytes` bytes: the
    /// turns of the main loop follow from that.
    pub fn of_thread(&self, flops: f64, bytes: f64) -> Counts {
        let turns = if self.inside.flops > 0.0 {
            (flops - self.outside.flops) / self.inside.flops
        } else if self.inside.bytes > 0.0 {
            (bytes - self.outside.bytes) / self.inside.bytes
        } else {
            0.0
        };
        self.turned(turns)
    }

    /// What a thread does that does `amount` of what the main loop was found by.
    pub fn of_amount(&self, evidence: Evidence, amount: f64) -> Counts {
        let each = evidence.of(&self.inside);
        self.turned(if each > 0.0 { (amount - evidence.of(&self.outside)) / each } else { 0.0 })
    }

    fn turned(&self, turns: f64) -> Counts {
        let turns = if self.inside.instructions > 0.0 { turns.max(1.0) } else { 0.0 };
        let join = |outside: f64, inside: f64| outside + turns * inside;
        Counts {
            instructions: join(self.outside.instructions, self.inside.instructions),
            flops: join(self.outside.flops, self.inside.flops),
            bytes: join(self.outside.bytes, self.inside.bytes),
            special: join(self.outside.special, self.inside.special),
            products: join(self.outside.products, self.inside.products),
            waits: join(self.outside.waits, self.inside.waits),
        }
    }
}

enum Line<'a> {
    Label(&'a str),
    Instruction { opcode: &'a str, operands: &'a str },
}

/// Labels and instructions of the entry `kernel`.
fn lines<'a>(ptx: &'a str, kernel: &str) -> Option<Vec<Line<'a>>> {
    let head = [format!(".entry {kernel}("), format!(".entry {kernel}\n")];
    let start = head.iter().find_map(|head| ptx.find(head.as_str()))?;
    let body = &ptx[start..];
    let body = &body[body.find("\n{")? + 2..];
    let body = &body[..body.find("\n}")?];
    let mut lines = Vec::new();
    for line in body.lines() {
        let line = line.split("//").next().unwrap_or_default().trim();
        if let Some(label) = line.strip_suffix(':') {
            lines.push(Line::Label(label));
            continue;
        }
        // A predicate stands before the opcode.
        let line = match line.strip_prefix('@') {
            Some(rest) => rest.split_once(char::is_whitespace).map_or("", |(_, rest)| rest.trim_start()),
            None => line,
        };
        let (opcode, operands) =
            line.split_once(char::is_whitespace).unwrap_or((line.trim_end_matches(';'), ""));
        if opcode.starts_with(|c: char| c.is_ascii_lowercase()) {
            lines.push(Line::Instruction { opcode, operands: operands.trim().trim_end_matches(';') });
        }
    }
    Some(lines)
}

/// Bytes of an access: `ld.global.nc.v4.f32` has 16.
fn width(opcode: &str) -> f64 {
    let mut bytes = 0.0;
    let mut lanes = 1.0;
    for part in opcode.split('.') {
        match part {
            "v2" => lanes = 2.0,
            "v4" => lanes = 4.0,
            "v8" => lanes = 8.0,
            _ => {
                let digits = part.trim_start_matches(|c: char| c.is_ascii_lowercase());
                let letters = &part[..part.len() - digits.len()];
                if matches!(letters, "b" | "u" | "s" | "f") {
                    bytes = digits.parse::<f64>().map_or(bytes, |bits| bits / 8.0);
                }
            }
        }
    }
    bytes * lanes
}

fn count(lines: &[Line<'_>]) -> Counts {
    let mut counts = Counts::default();
    let mut loading = false;
    for line in lines {
        let Line::Instruction { opcode, .. } = line else { continue };
        counts.instructions += 1.0;
        let kind = opcode.split('.').next().unwrap_or_default();
        let float = [".f32", ".f64", ".f16", ".f32x2"].iter().any(|t| opcode.ends_with(t));
        counts.flops += match kind {
            "fma" | "mad" if float => 2.0,
            "add" | "sub" | "mul" | "div" | "sqrt" | "rsqrt" | "rcp" | "sin" | "cos" | "ex2" | "lg2"
            | "max" | "min"
                if float =>
            {
                1.0
            }
            _ => 0.0,
        };
        if matches!(kind, "mul" | "mad") && !float && !opcode.ends_with("64") {
            counts.products += 2.0;
        }
        let by_unit =
            matches!(kind, "sin" | "cos" | "ex2" | "lg2" | "rsqrt" | "rcp" | "sqrt" | "tanh" | "div");
        // What is not approximate takes an approximation and steps that make it better.
        if by_unit && float {
            counts.special += 1.0;
        }
        let global = opcode.contains(".global");
        let load = kind == "ld" && global || kind == "tex" || kind == "tld4";
        if global && matches!(kind, "ld" | "st") {
            counts.bytes += width(opcode);
        }
        // Loads that follow one another wait together; arithmetic on addresses between them does not end the
        // group.
        let address =
            matches!(kind, "add" | "mul" | "mad" | "cvta" | "shl" | "cvt" | "mov" | "setp") && !float;
        if kind == "bar" || kind == "barrier" || (load && !loading) {
            counts.waits += 1.0;
        }
        loading = load || (loading && address);
    }
    counts
}

/// The mix of the entry `kernel` of a PTX text, whose main loop has the most operations, or where none has
/// any, the most bytes; `None` where there is no such entry.
pub fn mix(ptx: &str, kernel: &str) -> Option<Mix> {
    heaviest_mix(ptx, kernel, &[Evidence::Flops, Evidence::Bytes])
}

/// The mix whose main loop has the most of some evidence.
pub fn mix_by(ptx: &str, kernel: &str, evidence: Evidence) -> Option<Mix> {
    heaviest_mix(ptx, kernel, &[evidence])
}

fn heaviest_mix(ptx: &str, kernel: &str, evidence: &[Evidence]) -> Option<Mix> {
    let lines = lines(ptx, kernel)?;
    let label = |name: &str| lines.iter().position(|l| matches!(l, Line::Label(label) if *label == name));
    let mut loops: Vec<(usize, usize, Counts)> = Vec::new();
    for (end, line) in lines.iter().enumerate() {
        let Line::Instruction { opcode, operands } = line else { continue };
        // A branch to a label above closes a loop.
        let begin = opcode.starts_with("bra").then(|| label(operands)).flatten();
        if let Some(begin) = begin.filter(|&begin| begin < end) {
            loops.push((begin, end, count(&lines[begin..=end])));
        }
    }
    // Among nested loops the inner one counts: each turn of the outer loop has many turns of the inner one.
    let heaviest = |by: &Evidence| {
        let amount = |counts: &Counts| by.of(counts);
        let works: Vec<_> = loops.iter().filter(|(_, _, counts)| amount(counts) > 0.0).collect();
        let inner = works.iter().filter(|(from, to, _)| {
            !works.iter().any(|(b, e, _)| (from, to) != (b, e) && from <= b && e <= to)
        });
        inner.map(|(_, _, counts)| *counts).max_by(|a, b| amount(a).total_cmp(&amount(b)))
    };
    let main = evidence.iter().find_map(heaviest);
    let whole = count(&lines);
    let inside = main.unwrap_or_default();
    let outside = Counts {
        instructions: whole.instructions - inside.instructions,
        flops: whole.flops - inside.flops,
        bytes: whole.bytes - inside.bytes,
        special: whole.special - inside.special,
        products: whole.products - inside.products,
        waits: (whole.waits - inside.waits).max(0.0),
    };
    Some(Mix { outside, inside })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = "\
.version 9.0\n.visible .entry other(\n\t.param .u64 a\n)\n{\n\tret;\n}\n
.visible .entry sum(\n\t.param .u64 p0,\n\t.param .u32 p1\n)\n.maxntid 128, 1, 1\n{\n\t.reg .pred %p<4>;\n
\tld.param.u64 \t%rd1, [p0];\n\tld.global.nc.v4.f32 \t{%f1, %f2, %f3, %f4}, [%rd1];\n\tadd.s64 %rd2, %rd1, 16;
\tld.global.f32 %f5, [%rd2];\n\tbar.sync 0;\n
$L__BB1_2:\n\tfma.rn.f32 \t%f1, %f2, %f3, %f1;\n\tfma.rn.f32 %f4, %f2, %f3, %f4;
\tsin.approx.f32 %f5, %f5;
\tadd.s32 %r1, %r1, 1;\n\tsetp.lt.s32 %p1, %r1, %r2;\n\t@%p1 bra \t$L__BB1_2;\n
$L__BB1_3:\n\tadd.s32 %r3, %r3, 1;\n\t@%p2 bra $L__BB1_3;\n\tst.global.f64 [%rd1], %fd1;\n\tret;\n\n}\n";

    #[test]
    fn a_loop_is_found_by_what_the_work_is_of() {
        let text = "\
.visible .entry draw(\n\t.param .u64 p0\n)\n{\n
$L__BB0_1:\n\tmul.wide.u32 \t%rd1, %r1, %r2;\n\txor.b32 %r3, %r1, %r4;\n\tmad.lo.s32 %r1, %r3, %r2, %r5;
\tmul.lo.s64 %rd2, %rd1, 8;\n\t@%p1 bra \t$L__BB0_1;
$L__BB0_2:\n\tst.global.u32 [%rd1], %r1;\n\t@%p2 bra \t$L__BB0_2;\n\tret;\n}\n";
        let products = mix_by(text, "draw", Evidence::Products).unwrap();
        assert_eq!((products.inside.products, products.inside.instructions), (4.0, 5.0));
        assert_eq!(products.of_amount(Evidence::Products, 40.0).instructions, 3.0 + 10.0 * 5.0);
        let bytes = mix_by(text, "draw", Evidence::Bytes).unwrap();
        assert_eq!((bytes.inside.bytes, bytes.inside.instructions), (4.0, 2.0));
        // Neither loop has f32 operations: all instructions are outside.
        let flops = mix_by(text, "draw", Evidence::Flops).unwrap();
        assert_eq!(flops.of_amount(Evidence::Flops, 1e6).instructions, 8.0);
        assert_eq!(super::mix(text, "draw"), Some(bytes));
    }

    #[test]
    fn the_loop_with_the_operations_is_found() {
        let mix = mix(PTX, "sum").unwrap();
        assert_eq!(mix.inside, Counts { instructions: 6.0, flops: 5.0, special: 1.0, ..Counts::default() });
        // Two loads from neighbouring addresses wait once, the barrier once.
        assert_eq!(mix.outside, Counts { instructions: 9.0, bytes: 28.0, waits: 2.0, ..Counts::default() });
        let thread = mix.of_thread(400.0, 0.0);
        assert_eq!((thread.instructions, thread.flops, thread.waits), (489.0, 400.0, 2.0));
        assert_eq!(thread.special, 80.0);
        assert!(super::mix(PTX, "none").is_none());
        assert_eq!(super::mix(PTX, "other").unwrap().of_thread(5.0, 5.0).instructions, 1.0);
    }
}

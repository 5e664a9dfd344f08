//! What the instructions of each block of code do, from the compiler's assembly.
//!
//! The compiler of the host is none for GPUs: these numbers estimate a GPU's instructions. Moves between
//! registers, and what prepares the calls of the runtime, are not counted; an addition takes a product along,
//! as a GPU's do.

use std::collections::HashMap;
use std::fmt::Write as _;

/// Kinds of instructions that [`Work`] counts.
pub(crate) const KINDS: usize = 5;
/// Places of the kinds in the table.
pub(crate) const INTEGER: usize = 0;
pub(crate) const SINGLE: usize = 1;
pub(crate) const DOUBLE: usize = 2;
pub(crate) const SPECIAL: usize = 3;
pub(crate) const BRANCH: usize = 4;

const BLOCK: &str = "__sanitizer_cov_trace_pc";

/// What the instructions of a block do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Work {
    counts: [u16; KINDS],
    /// Products and sums, which a GPU joins in pairs: of single and of double precision.
    products: [u16; 2],
    sums: [u16; 2],
    /// Its branches.
    branches: u32,
}

impl Work {
    fn add(&mut self, kind: usize, many: u16) {
        self.counts[kind] = self.counts[kind].saturating_add(many);
    }

    fn finished(mut self) -> [u16; KINDS] {
        for (place, kind) in [SINGLE, DOUBLE].into_iter().enumerate() {
            self.add(kind, self.products[place].max(self.sums[place]));
        }
        self.counts
    }

    fn count(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        let Some(name) = words.next() else { return };
        if name == "call" || name == "bl" {
            self.call(words.next().unwrap_or_default().split('@').next().unwrap_or_default());
            return;
        }
        let scalar = |suffix: &str| name.ends_with(suffix);
        let place = if scalar("ss") || scalar("ps") {
            Some(0)
        } else if scalar("sd") || scalar("pd") {
            Some(1)
        } else {
            None
        };
        let operation = name.trim_start_matches('v');
        match (operation, place) {
            (_, _) if operation.starts_with("mov") || operation.starts_with("cvt") && operation.len() < 5 => {
            }
            (_, Some(place)) if operation.starts_with("mul") => self.products[place] += 1,
            (_, Some(place)) if operation.starts_with("add") || operation.starts_with("sub") => {
                self.sums[place] += 1;
            }
            (_, Some(_)) if operation.starts_with("sqrt") || operation.starts_with("div") => {
                // A few steps of refinement surround the special unit.
                self.add(SPECIAL, 1);
                self.add(if place == Some(0) { SINGLE } else { DOUBLE }, 7);
            }
            // Signs and zeros: GPUs have them in the operands of other instructions.
            (_, Some(_))
                if operation.starts_with("xor")
                    || operation.starts_with("and")
                    || operation.starts_with("unpck") => {}
            (_, Some(0)) => self.add(SINGLE, 1),
            (_, Some(_)) => self.add(DOUBLE, 1),
            (
                "push" | "pushq" | "pop" | "popq" | "ret" | "nop" | "leave" | "cltq" | "cltd" | "cqto"
                | "pxor",
                None,
            ) => {}
            ("jmp", None) => {}
            (jump, None) if jump.starts_with('j') => self.add(BRANCH, 1),
            (divide, None) if divide.starts_with("idiv") || divide.starts_with("div") => {
                self.add(INTEGER, 20)
            }
            (_, None) if line.contains("%rsp") && !operation.starts_with("lea") => {}
            (_, None) => self.add(INTEGER, 1),
        }
    }

    /// A call of a function that a GPU has in an instruction or a few. The calls of the runtime are counted
    /// where they are made.
    fn call(&mut self, function: &str) {
        if function.starts_with("__tsan") || function.contains("3emu") {
            return;
        }
        match plain(function) {
            "fmaf" | "__fmaf_rn" => {
                self.products[0] += 1;
                self.sums[0] += 1;
            }
            "fma" | "__fma_rn" => {
                self.products[1] += 1;
                self.sums[1] += 1;
            }
            name => {
                let [integer, single, double, special] = of_function(name);
                self.add(INTEGER, integer);
                self.add(SINGLE, single);
                self.add(DOUBLE, double);
                self.add(SPECIAL, special);
            }
        }
    }
}

/// The name of a static function as the source has it: `_ZL6__clzi` is `__clz`.
fn plain(function: &str) -> &str {
    let named = || {
        let rest = function.strip_prefix("_ZL")?;
        let digits = rest.find(|letter: char| !letter.is_ascii_digit())?;
        rest[digits..].get(..rest[..digits].parse().ok()?)
    };
    named().unwrap_or(function)
}

/// Instructions of a GPU on integers, in single and in double precision, and of the special-function unit.
/// Source: machine code that NVRTC 13.0 makes for sm_90, on the way that usual arguments take. A function
/// that is not here is one instruction: most intrinsics on integers are.
fn of_function(name: &str) -> [u16; 4] {
    match name {
        "fminf" | "fmaxf" | "floorf" | "ceilf" | "truncf" | "rintf" | "roundf" | "nearbyintf" | "fabsf"
        | "__saturatef" | "__fadd_rn" | "__fsub_rn" | "__fmul_rn" => [0, 1, 0, 0],
        "fmin" | "fmax" | "floor" | "ceil" | "trunc" | "rint" | "round" | "fabs" => [0, 0, 2, 0],
        "__dadd_rn" | "__dsub_rn" | "__dmul_rn" => [0, 0, 1, 0],
        "__clz" | "__clzll" | "__popcll" | "__brevll" => [3, 0, 0, 0],
        "__ffs" | "__ffsll" => [4, 0, 0, 0],
        "__umul64hi" | "__mul64hi" => [6, 0, 0, 0],
        "emu_fast_sin" | "emu_fast_cos" => [0, 1, 0, 1],
        "emu_fast_sincos" => [0, 1, 0, 2],
        "emu_fast_exp" | "emu_fast_log" | "emu_fast_div" | "exp2f" | "rsqrtf" => [0, 3, 0, 1],
        "sqrtf" => [2, 4, 0, 1],
        "expf" | "exp10f" => [1, 6, 0, 1],
        "logf" | "log2f" | "log10f" => [5, 19, 0, 0],
        "sinf" | "cosf" | "sinpif" | "cospif" => [5, 16, 0, 0],
        "sincosf" | "sincospif" => [7, 22, 0, 0],
        "__fdiv_rn" => [1, 7, 0, 1],
        "tanf" | "atanf" | "asinf" | "acosf" | "hypotf" | "cbrtf" | "erff" | "erfcf" | "fmodf" => {
            [5, 22, 0, 1]
        }
        "atan2f" => [10, 32, 0, 1],
        "powf" => [15, 70, 0, 1],
        "sqrt" => [6, 0, 8, 1],
        "rsqrt" => [5, 0, 5, 1],
        "__ddiv_rn" => [4, 0, 8, 1],
        "exp" | "sin" | "cos" | "sinpi" | "cospi" => [11, 0, 17, 0],
        "sincos" | "sincospi" => [20, 0, 23, 0],
        "log" => [20, 0, 30, 1],
        "tan" | "atan2" | "pow" | "erf" => [30, 0, 40, 1],
        _ => [1, 0, 0, 0],
    }
}

/// Whether an instruction goes one of several ways.
fn branches(text: &str) -> bool {
    let name = text.split_whitespace().next().unwrap_or_default();
    let jump = name.starts_with('j') && (name != "jmp" || text.contains('*'));
    // On 64-bit ARM.
    jump || name.starts_with("b.") || matches!(name, "cbz" | "cbnz" | "tbz" | "tbnz" | "br")
}

/// Whether what follows an instruction is only reached by a jump.
fn ends(text: &str) -> bool {
    let name = text.split_whitespace().next().unwrap_or_default();
    matches!(name, "jmp" | "ret" | "b" | "br")
}

/// The label that an instruction jumps to.
fn target(text: &str) -> Option<&str> {
    let name = text.split_whitespace().next()?;
    let jumps = name.starts_with('j') || name == "b" || branches(text);
    text.split([' ', '\t', ',']).next_back().filter(|label| jumps && label.starts_with(".L"))
}

/// Whether a line of assembly is an instruction.
fn is_instruction(text: &str) -> bool {
    !(text.is_empty() || text.ends_with(':') || text.starts_with(['#', '.']))
}

/// Whether a line tells the runtime that a block begins.
fn begins(text: &str) -> bool {
    text.contains(BLOCK) && (text.starts_with("call") || text.starts_with("bl"))
}

/// The block of each line, none outside of blocks. Some functions of the host (`rint`) become several blocks
/// after the compiler has marked all: such a block lies anywhere, and belongs to the one that jumps to it.
fn owners(lines: &[&str]) -> Vec<Option<usize>> {
    let mut jumpers: HashMap<&str, usize> = HashMap::new();
    // A block without a mark may jump to another: each round finds the next.
    loop {
        let (known, mut owners) = (jumpers.len(), Vec::with_capacity(lines.len()));
        let (mut count, mut present) = (0, None);
        for text in lines {
            if let Some(label) = text.strip_suffix(':') {
                present = present.or_else(|| jumpers.get(label).copied());
            } else if text.starts_with(".cfi_endproc") || text.starts_with(".size") {
                present = None;
            } else if begins(text) {
                present = Some(count);
                count += 1;
            }
            owners.push(present);
            if is_instruction(text) {
                if let (Some(label), Some(block)) = (target(text), present) {
                    jumpers.entry(label).or_insert(block);
                }
                present = present.filter(|_| !ends(text));
            }
        }
        if jumpers.len() == known {
            return owners;
        }
    }
}

/// The assembly with a table `emu_blocks`: where each block begins, its last branch, and what it does.
pub(crate) fn with_blocks(assembly: &str) -> String {
    let mut out = String::with_capacity(assembly.len() + assembly.len() / 8);
    let lines: Vec<_> = assembly.lines().map(str::trim).collect();
    let mut blocks = vec![Work::default(); lines.iter().filter(|text| begins(text)).count()];
    for ((line, text), owner) in assembly.lines().zip(&lines).zip(owners(&lines)) {
        out.push_str(line);
        out.push('\n');
        let Some(block) = owner.filter(|_| is_instruction(text)) else { continue };
        if begins(text) {
            let _ = writeln!(out, ".Lemu_block{block}:");
        } else {
            let work = &mut blocks[block];
            work.count(text);
            if branches(text) {
                work.branches += 1;
                let _ = writeln!(out, ".Lemu_branch{block}_{}:", work.branches);
            }
        }
    }
    out.push_str("\t.section emu_blocks,\"aw\",@progbits\n\t.balign 8\n");
    for (number, work) in blocks.into_iter().enumerate() {
        let branch = match work.branches {
            0 => "0".to_owned(),
            last => format!(".Lemu_branch{number}_{last}"),
        };
        let list: Vec<_> = work.finished().iter().map(u16::to_string).collect();
        let _ =
            writeln!(out, "\t.8byte .Lemu_block{number},{branch}\n\t.2byte {}\n\t.balign 8", list.join(","));
    }
    out.push_str("\t.section .note.GNU-stack,\"\",@progbits\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_counted_block_by_block() {
        let text = "k:\n\tcall\t__sanitizer_cov_trace_pc@PLT\n\tmovss\t4(%rax), %xmm0\n\tmulss\t%xmm1, %xmm0\n\
            \taddss\t%xmm2, %xmm0\n\taddq\t$4, %rbx\n\tcmpq\t%r15, %rbx\n\tje\t.L30\n\
            \tcall\t__sanitizer_cov_trace_pc@PLT\n.LVL1:\n\tcall\t__tsan_read4@PLT\n\tcall\tsinf@PLT\n\
            \taddsd\t%xmm2, %xmm0\n\tret\n\t.cfi_endproc\n\taddq\t$4, %rbx\n";
        let out = with_blocks(text);
        // One joined operation, two on integers, one branch.
        assert!(out.contains(".8byte .Lemu_block0,.Lemu_branch0_1\n\t.2byte 2,1,0,0,1\n"), "{out}");
        assert!(out.contains("\tje\t.L30\n.Lemu_branch0_1:\n"), "{out}");
        assert!(out.contains(".8byte .Lemu_block1,0\n\t.2byte 5,16,1,0,0\n"), "{out}");
        assert_eq!(out.matches(".Lemu_block1:\n").count(), 1);
    }

    #[test]
    fn a_block_without_a_mark_belongs_to_the_one_that_jumps_to_it() {
        // Of the marked blocks, the first jumps over the second to one that jumps to another.
        let text = "k:\n\tcall\t__sanitizer_cov_trace_pc@PLT\n\tmulsd\t%xmm1, %xmm0\n\tjb\t.L3\n.L2:\n\tret\n\
            .L5:\n\tcall\t__sanitizer_cov_trace_pc@PLT\n\taddq\t$4, %rbx\n\tjmp\t.L2\n\
            .L4:\n.LVL7:\n\tcall\tsinf@PLT\n\tjmp\t.L2\n.L3:\n\taddss\t%xmm1, %xmm0\n\tja\t.L4\n\tjmp\t.L2\n\t.cfi_endproc\n";
        let out = with_blocks(text);
        assert!(out.contains(".8byte .Lemu_block0,.Lemu_branch0_2\n\t.2byte 5,17,1,0,2\n"), "{out}");
        assert!(out.contains(".8byte .Lemu_block1,0\n\t.2byte 1,0,0,0,0\n"), "{out}");
    }

    #[test]
    fn what_a_gpu_does_in_one_instruction_counts_as_one() {
        let counted = |calls: &[&str]| {
            let mut work = Work::default();
            calls.iter().for_each(|name| work.count(&format!("call {name}")));
            work.finished()
        };
        assert_eq!(counted(&["_ZL12__vabsdiffu4jj", "_ZL16__funnelshift_ljjj"]), [2, 0, 0, 0, 0]);
        // Joined, not on integers.
        assert_eq!(counted(&["fmaf@PLT", "fmaf@PLT", "fma@PLT"]), [0, 2, 1, 0, 0]);
        assert_eq!(counted(&["_ZL12emu_fast_sinf", "_ZL11__fmul_rnff", "_ZL6rsqrtff"]), [1, 4, 0, 2, 0]);
        // The runtime's own.
        assert_eq!(counted(&["_ZN3emuL7barrierENS_10SynchroniseEjb", "__tsan_read4@PLT"]), [0; 5]);
    }
}

//! Finds races, accesses outside arrays, and reads of what nobody wrote, from the source that a GPU runs.
//!
//! A program is compiled so that it reports every access, barrier, exchange, atomic operation and fence.
//! Blocks run in order on one thread. The runtime (`checking.cc`) keeps the last accesses to each place with
//! what orders them, so that a race is found in every run, whoever comes first.

#![allow(unsafe_code)]

mod emulator;

use std::collections::HashMap;
use std::ffi::{CStr, c_char};
use std::fmt;
use std::path::Path;
use std::sync::Mutex;

use libloading::Library;
use rayspin_core::{Error, Result};
use rayspin_device::cuda::{Launch, Program};

pub use crate::counting::SourceLine;
use crate::counting::record::Array;
use crate::counting::symbols::{Symbols, lines};
use crate::lock;
use crate::memory::Range;

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    /// Two accesses that nothing orders, one of them a write.
    Race,
    /// Two writes that nothing orders, of the same value: a note.
    SameValues,
    /// An access outside all arrays.
    Outside,
    /// A read of what nobody wrote.
    Unwritten,
    /// Threads have ended that do not come to a barrier of their block: a note. CUDA permits it from compute
    /// capability 7.0 on, and leaves it undefined before.
    Ended,
    /// An array is too large for races to be looked for: a note.
    TooLarge,
}

/// What a thread does to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Does {
    /// A load.
    Reads,
    /// A store.
    Writes,
    /// An atomic operation.
    Changes,
    /// It has ended.
    Ends,
}

/// An access.
#[derive(Debug, Clone, PartialEq)]
pub struct Access {
    /// The line of the source, where the compiler tells it.
    pub place: Option<SourceLine>,
    /// Its text.
    pub text: String,
    /// What is done.
    pub does: Does,
    /// The block's index.
    pub block: [u32; 3],
    /// The thread's index in the block.
    pub thread: [u32; 3],
}

/// Something wrong with a kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// What it is.
    pub wrong: Wrong,
    /// The program.
    pub program: String,
    /// The kernel.
    pub kernel: String,
    /// The array, or the nearest one.
    pub array: Option<String>,
    /// The element, in pieces as large as the access.
    pub index: i64,
    /// Elements of the array, in such pieces.
    pub elements: u64,
    /// The access that is wrong, or the later one of a race.
    pub access: Option<Access>,
    /// The earlier one of a race.
    pub other: Option<Access>,
}

impl Fault {
    /// Whether it is worth knowing and no error.
    pub fn is_note(&self) -> bool {
        matches!(self.wrong, Wrong::SameValues | Wrong::Ended | Wrong::TooLarge)
    }

    /// What it is, without the accesses.
    pub fn title(&self) -> String {
        let Self { kernel, index, elements, .. } = self;
        let name = self.array.as_deref().unwrap_or("memory");
        match self.wrong {
            Wrong::Race => format!("{kernel}: a race on {name}[{index}]: nothing orders these accesses"),
            Wrong::SameValues => {
                format!("{kernel}: several threads write the same value to {name}[{index}]: no error")
            }
            Wrong::Outside if self.array.is_none() => format!("{kernel}: an access outside all arrays"),
            Wrong::Outside => {
                format!("{kernel}: {name}[{index}] is outside {name}, which has {elements} elements")
            }
            Wrong::Unwritten => format!("{kernel}: {name}[{index}] is read, and nobody wrote it"),
            Wrong::Ended => format!(
                "{kernel}: threads have ended before a barrier that others wait at: right from compute \
                 capability 7.0 (Volta) on, undefined on older GPUs"
            ),
            Wrong::TooLarge => format!("{kernel}: an array is too large for races to be looked for"),
        }
    }
}

/// An index, as short as its axes allow.
fn index(axes: [u32; 3]) -> String {
    match axes {
        [x, 0, 0] => x.to_string(),
        [x, y, z] => format!("({x}, {y}, {z})"),
    }
}

impl Access {
    fn line(&self, past: bool) -> String {
        let does = match (self.does, past) {
            (Does::Reads, false) => "reads",
            (Does::Reads, true) => "read",
            (Does::Writes, false) => "writes",
            (Does::Writes, true) => "wrote",
            (Does::Changes, false) => "changes it with an atomic operation",
            (Does::Changes, true) => "changed it with an atomic operation",
            (Does::Ends, _) => "has ended before",
        };
        let it = if matches!(self.does, Does::Reads | Does::Writes) { " it" } else { "" };
        let (thread, block) = (index(self.thread), index(self.block));
        match &self.place {
            Some(place) => format!(
                "{}:{}: thread {thread} of block {block} {does}{it}: {}",
                place.file, place.line, self.text
            ),
            None => format!("thread {thread} of block {block} {does}{it}"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.title())?;
        for (access, past) in
            self.access.iter().map(|a| (a, false)).chain(self.other.iter().map(|a| (a, true)))
        {
            write!(f, "\n  {}", access.line(past))?;
        }
        Ok(())
    }
}

/// As in `checking.cc`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawFinding {
    fault: u32,
    array: u32,
    address: u64,
    begin: u64,
    end: u64,
    name: *const c_char,
    size: u32,
    code: u32,
    other_code: u32,
    block: u32,
    other_block: u32,
    thread: u16,
    other_thread: u16,
    kind: u8,
    other_kind: u8,
    pad: [u8; 2],
}

/// As in `checking.cc`.
#[repr(C)]
struct RawChecking {
    begin: unsafe extern "C" fn(*const Range, u32),
    end: unsafe extern "C" fn(*mut u32, *mut u32) -> *const RawFinding,
}

const WRITES: u8 = 1;
const CHANGES: u8 = 8;

/// A launch of a kernel.
pub(crate) struct Whose<'a> {
    pub(crate) kernel: &'a str,
    pub(crate) launch: Launch,
}

/// A library that checks.
pub(crate) struct Checker {
    raw: *const RawChecking,
    program: Program,
    lines: HashMap<SourceLine, String>,
    /// Held while a launch is checked: the library's runtime is one.
    symbols: Mutex<Symbols>,
}

// SAFETY: the table is constant, and its functions are called by one thread at a time.
unsafe impl Send for Checker {}
unsafe impl Sync for Checker {}

impl Checker {
    /// What is known of a library, which stays loaded beside this.
    pub(crate) fn open(path: &Path, library: &Library, program: &Program) -> Result<Self> {
        let missing = |e: libloading::Error| Error::Device {
            what: format!("loading {}", program.name),
            detail: e.to_string(),
        };
        // SAFETY: the library is the emulator's own, with this table.
        let raw = unsafe { *library.get::<*const RawChecking>(b"emu_checking\0").map_err(missing)? };
        let symbols = Mutex::new(Symbols::of(path)?);
        Ok(Self { raw, program: program.clone(), lines: lines(&program.text), symbols })
    }

    pub(crate) fn program(&self) -> &Program {
        &self.program
    }

    /// Runs a launch, whose arrays are `ranges` with the names of `arrays`, and adds what is wrong with it.
    /// Errors: the launch's; an access outside all arrays, which ends it.
    pub(crate) fn check(
        &self,
        whose: &Whose<'_>,
        ranges: &[Range],
        arrays: &[Array],
        faults: &Mutex<Vec<Fault>>,
        run: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let mut symbols = lock(&self.symbols);
        let (mut count, mut large) = (0, 0);
        // SAFETY: the table lives as long as the library; the ranges live until the end; one thread runs the
        // launch; the findings are read before the next begins.
        let (done, found) = unsafe {
            ((*self.raw).begin)(ranges.as_ptr(), ranges.len() as u32);
            let done = run();
            let first = ((*self.raw).end)(&raw mut count, &raw mut large);
            (done, std::slice::from_raw_parts(first, count as usize))
        };
        let mut own: Vec<Fault> =
            found.iter().map(|raw| self.fault(&mut symbols, whose, arrays, raw)).collect();
        if large > 0 {
            own.push(Fault {
                wrong: Wrong::TooLarge,
                program: self.program.name.to_owned(),
                kernel: whose.kernel.to_owned(),
                array: None,
                index: 0,
                elements: 0,
                access: None,
                other: None,
            });
        }
        let outside = own.iter().find(|fault| fault.wrong == Wrong::Outside).map(ToString::to_string);
        let mut known = lock(faults);
        for fault in own {
            let lines = |fault: &Fault| {
                [&fault.access, &fault.other].map(|access| access.as_ref().and_then(|a| a.place.clone()))
            };
            let same = |other: &Fault| {
                other.wrong == fault.wrong && other.kernel == fault.kernel && lines(other) == lines(&fault)
            };
            if !known.iter().any(same) {
                known.push(fault);
            }
        }
        match outside {
            Some(detail) => Err(Error::Device { what: format!("kernel {}", whose.kernel), detail }),
            None => done,
        }
    }

    fn fault(&self, symbols: &mut Symbols, whose: &Whose<'_>, arrays: &[Array], raw: &RawFinding) -> Fault {
        let array = if raw.name.is_null() {
            arrays.get(raw.array as usize).map(|array| array.name.clone())
        } else {
            // SAFETY: a literal of the library.
            Some(unsafe { CStr::from_ptr(raw.name) }.to_string_lossy().into_owned())
        };
        let teller = Teller { program: self.program.name, kernel: whose.kernel, launch: whose.launch };
        teller.fault(symbols, &self.lines, array, raw)
    }
}

/// Whose launch a finding is of.
pub(crate) struct Teller<'a> {
    pub(crate) program: &'a str,
    pub(crate) kernel: &'a str,
    pub(crate) launch: Launch,
}

impl Teller<'_> {
    /// A finding in words, on the array of this name.
    pub(crate) fn fault(
        &self,
        symbols: &mut Symbols,
        lines: &HashMap<SourceLine, String>,
        array: Option<String>,
        raw: &RawFinding,
    ) -> Fault {
        let wrong = match raw.fault {
            1 => Wrong::Race,
            2 => Wrong::SameValues,
            3 => Wrong::Outside,
            5 => Wrong::Ended,
            _ => Wrong::Unwritten,
        };
        let size = i128::from(raw.size.max(1));
        let index = (i128::from(raw.address) - i128::from(raw.begin)).div_euclid(size);
        let mut access = |code, kind: u8, block: u32, thread: u16| {
            let place = symbols.place(code);
            let text = place.as_ref().and_then(|place| lines.get(place)).cloned().unwrap_or_default();
            let does = match (kind & CHANGES != 0, kind & WRITES != 0) {
                _ if wrong == Wrong::Ended => Does::Ends,
                (true, _) => Does::Changes,
                (false, true) => Does::Writes,
                (false, false) => Does::Reads,
            };
            let Launch { blocks, threads, .. } = self.launch;
            Access { place, text, does, block: parts(block, blocks), thread: parts(thread.into(), threads) }
        };
        let here = access(raw.code, raw.kind, raw.block, raw.thread);
        let two = matches!(wrong, Wrong::Race | Wrong::SameValues);
        let other = two.then(|| access(raw.other_code, raw.other_kind, raw.other_block, raw.other_thread));
        Fault {
            wrong,
            program: self.program.to_owned(),
            kernel: self.kernel.to_owned(),
            array,
            index: index as i64,
            elements: (raw.end - raw.begin) / u64::from(raw.size.max(1)),
            access: Some(here),
            other,
        }
    }
}

impl RawFinding {
    /// A finding of another process, in the order of `runtime.h`.
    pub(crate) fn of_numbers(numbers: &[u64; 13]) -> Self {
        let [
            fault,
            address,
            begin,
            end,
            size,
            code,
            other_code,
            block,
            other_block,
            thread,
            other_thread,
            kind,
            other_kind,
        ] = *numbers;
        Self {
            fault: fault as u32,
            array: 0,
            address,
            begin,
            end,
            name: std::ptr::null(),
            size: size as u32,
            code: code as u32,
            other_code: other_code as u32,
            block: block as u32,
            other_block: other_block as u32,
            thread: thread as u16,
            other_thread: other_thread as u16,
            kind: kind as u8,
            other_kind: other_kind as u8,
            pad: [0; 2],
        }
    }
}

/// A number as an index with these sides.
fn parts(number: u32, sides: [u32; 3]) -> [u32; 3] {
    let [x, y, _] = sides.map(|side| side.max(1));
    [number % x, number / x % y, number / x / y]
}

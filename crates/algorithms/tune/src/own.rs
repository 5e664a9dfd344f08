//! A kernel of the user's own, in an algorithm's table.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use rayspin_core::{Error, Result};
use rayspin_device::cuda::{Argument, Define, Launch, Parameter, Program, Source};
use rayspin_device::{Array, BackendKind, Device};

use crate::algorithm::{Algorithm, Row};
use crate::gpu;
use crate::launch_list::{self, Action, Expression, LaunchLine, Step};
use crate::variant::{Runnable, Variant};

/// What a kernel is called with to compute an algorithm's problem: the contract of a user's own kernel.
pub struct Signature<P: 'static, D: 'static> {
    /// Its name.
    pub kernel: &'static str,
    /// Its declaration in CUDA C++, below a comment that defines the arguments and the result.
    pub declaration: &'static str,
    /// Elements along x, y and z that want a thread each, where the user does not say how many blocks there
    /// are.
    pub extent: fn(&P) -> [usize; 3],
    /// Macros that the problem fixes.
    pub defines: fn(&P) -> Vec<Define>,
    /// Calls its argument with the kernel's arguments, in the order of the declaration, once outputs hold
    /// what the declaration says.
    pub call: fn(&mut D, &mut Call<'_>) -> Result<()>,
}

/// Takes the arguments of a kernel and launches it.
pub type Call<'a> = dyn FnMut(&Device, &mut [Argument<'_>]) -> Result<()> + 'a;

/// Kernels that a user wrote, and how they are to be launched.
#[derive(Debug, Clone, Copy)]
pub struct Own {
    /// The name of its row.
    pub name: &'static str,
    /// Its source.
    pub source: &'static Source,
    /// Threads of a block along x, y and z.
    pub threads: [u32; 3],
    /// Blocks; as many as give each element a thread where none are named.
    pub blocks: Option<[u32; 3]>,
    /// Bytes of dynamic shared memory of a block.
    pub shared: u32,
    /// The launches that the source lists; one launch of the declared kernel where it lists none.
    steps: &'static [Step],
}

impl Own {
    /// A user's source, which is kept until the process ends, as kernels are: `file` is its name in the
    /// compiler's messages.
    ///
    /// Kernels are found by their names, whether or not they are `extern "C"`. Lines that include headers of
    /// the CUDA toolkit or of C are left out; `headers` stand for the others by their names.
    ///
    /// Errors: a line of launches that cannot be read.
    pub fn new(
        file: &str,
        text: &str,
        threads: [u32; 3],
        headers: &[(&'static str, &'static str)],
    ) -> Result<Self> {
        let keep = |text: &str| -> &'static str { Box::leak(text.to_owned().into_boxed_str()) };
        let steps = launch_list::steps(file, text)?;
        let (text, included) = source_text(text, headers);
        let name = keep(file);
        let mut files: Vec<(&'static str, &'static str)> = included;
        files.push((name, keep(&text)));
        let source = Box::leak(Box::new(Source { name, files: Box::leak(files.into_boxed_slice()) }));
        let steps: &'static [Step] = Box::leak(steps.into_boxed_slice());
        Ok(Self { name, source, threads, blocks: None, shared: 0, steps })
    }

    /// A source of a program that is built with Rayspin, which lists no launches.
    pub fn of(name: &'static str, source: &'static Source, threads: u32) -> Self {
        Self { name, source, threads: [threads, 1, 1], blocks: None, shared: 0, steps: &[] }
    }

    /// Launched in so many blocks, each with so many bytes of dynamic shared memory.
    pub fn launched(self, blocks: Option<[u32; 3]>, shared: u32) -> Self {
        Self { blocks, shared, ..self }
    }

    /// Whether the source says itself how its kernels are launched.
    pub fn lists_launches(&self) -> bool {
        self.launch_lines().next().is_some()
    }

    fn launch_lines(&self) -> impl Iterator<Item = (usize, &'static LaunchLine)> {
        let line = |step: &'static Step| match &step.action {
            Action::Launch(launch) => Some((step.line, launch)),
            Action::Array { .. } | Action::Copy { .. } => None,
        };
        self.steps.iter().filter_map(line)
    }

    /// Errors: it has no such kernel, or one of other parameters than it is launched with.
    fn check(&self, kernel: &str, declaration: &str, defines: &[Define]) -> Result<()> {
        let program = |text: String| Program { name: self.name, text, defines: defines.to_vec() };
        let mut declared = program(format!("{declaration} {{}}")).signatures()?;
        let signatures = Program::new(self.source, defines).signatures()?;
        let declared = declared.remove(kernel).unwrap_or_default();
        let own = |kernel: &str| {
            signatures.get(kernel).ok_or_else(|| {
                let mut names: Vec<_> = signatures.keys().map(String::as_str).collect();
                names.sort_unstable();
                let names =
                    if names.is_empty() { "none that is __global__".to_owned() } else { names.join(", ") };
                Error::value(format!("kernels of {}", self.name), format!("one named {kernel}"), names)
            })
        };
        if !self.lists_launches() {
            return self.check_parameters(self.name, kernel, own(kernel)?, &declared);
        }
        let mut named = declared;
        for Step { line, action } in self.steps {
            let place = format!("{}:{line}", self.name);
            let array_named = |name: &str, named: &[Parameter]| -> Result<Parameter> {
                let arrays = || named.iter().filter(|parameter| parameter.pointer);
                arrays().find(|parameter| parameter.name == name).cloned().ok_or_else(|| {
                    let known: Vec<_> = arrays().map(|parameter| parameter.name.as_str()).collect();
                    Error::value(&place, format!("an array ({})", known.join(", ")), name)
                })
            };
            match action {
                Action::Array { element, name, .. } => {
                    let declared = program(format!("__global__ void array({element}* {name}) {{}}"));
                    named.extend(declared.signatures()?.remove("array").unwrap_or_default());
                    size_of_element(&place, named.last().map_or(element, |array| &array.element))?;
                }
                Action::Copy { from, .. } => drop(array_named(from, &named)?),
                Action::Launch(launch) => {
                    let own = own(&launch.kernel)?;
                    let given: Vec<Parameter> = launch
                        .arguments
                        .iter()
                        .zip(own)
                        .map(|(argument, parameter)| match argument {
                            Expression::Name(name) if parameter.pointer => array_named(name, &named),
                            // A whole number takes the type of the parameter.
                            Expression::Name(name) => {
                                let known = named.iter().find(|known| known.name == *name);
                                Ok(known
                                    .filter(|known| !is_whole(&known.element))
                                    .unwrap_or(parameter)
                                    .clone())
                            }
                            _ => Ok(parameter.clone()),
                        })
                        .collect::<Result<_>>()?;
                    if launch.arguments.len() != own.len() {
                        let found = launch.arguments.len();
                        let what = format!("{place}: arguments of {}", launch.kernel);
                        return Err(Error::value(what, own.len().to_string(), found));
                    }
                    self.check_parameters(&place, &launch.kernel, own, &given)?;
                }
            }
        }
        Ok(())
    }

    fn check_parameters(
        &self,
        place: &str,
        kernel: &str,
        own: &[Parameter],
        declared: &[Parameter],
    ) -> Result<()> {
        if own.len() != declared.len() {
            let what = format!("{place}: parameters of {kernel}");
            return Err(Error::value(what, declared.len().to_string(), own.len()));
        }
        for (i, (own, declared)) in own.iter().zip(declared).enumerate() {
            let same = (&own.element, own.pointer) == (&declared.element, declared.pointer);
            if !same || (own.writes && !declared.writes) {
                let what = format!("{place}: {kernel}, parameter {} ({})", i + 1, declared.name);
                return Err(Error::value(what, declared.to_string(), own));
            }
        }
        Ok(())
    }

    /// Its row for a problem. The row takes its tolerance from the least exact variant that competes on a
    /// GPU. It takes its work and its host transfers from the last such variant. Where none of them is for a
    /// GPU, it takes them from the variants for the CPU, and where none competes, from those to compare.
    ///
    /// The row does not name its programs: [`Variant::forms`] does that, for rows that stay in an algorithm's
    /// table ([`crate::With`]).
    ///
    /// Errors: the algorithm has no [`Signature`] for this problem; the source has no such kernel, or one of
    /// other parameters.
    pub fn row<A: Algorithm>(self, algorithm: &A, problem: &A::Problem) -> Result<Row<A>> {
        let name = algorithm.about().name;
        let Signature { kernel, declaration, extent, defines, call } = self.called(algorithm, problem)?;
        let rows = algorithm.variants(problem);
        let on = |kind, competes| -> Vec<&Row<A>> {
            rows.iter().filter(|r| r.competes == competes && r.backend == kind).collect()
        };
        // Some ladders have variants to compare alone.
        let places = [(BackendKind::Cuda, true), (BackendKind::Cpu, true), (BackendKind::Cuda, false)];
        let others = places.map(|(kind, competes)| on(kind, competes));
        let others = others.into_iter().find(|rows| !rows.is_empty()).unwrap_or_default();
        let Some(last) = others.last() else {
            return Err(Error::value(format!("ladder {name}"), "a variant to stand beside", "none"));
        };
        let tolerance = others.iter().map(|row| row.tolerance).fold(0.0, f64::max);
        let (extent, defines) = (extent(problem), defines(problem));
        self.check(kernel, declaration, &defines)?;
        let declared =
            Program { name: self.name, text: format!("{declaration} {{}}"), defines: defines.clone() };
        let names: Vec<String> =
            declared.signatures()?.remove(kernel).unwrap_or_default().into_iter().map(|p| p.name).collect();
        let arrays = Mutex::default();
        let run = Runnable::new(move |_, data| {
            call(data, &mut |device, arguments| {
                if !self.lists_launches() {
                    let kernel = gpu(device)?.kernel(self.source, &defines, kernel)?;
                    let launch = self.launch(extent);
                    // SAFETY: the kernel is the user's own program, run because the user said so; that it
                    // stays inside its arrays is the contract that the declaration states. Number and types
                    // of its arguments are compared with its own declaration.
                    return unsafe { kernel.launch(launch, arguments) };
                }
                let named: Vec<_> = names.iter().map(String::as_str).zip(arguments.iter().copied()).collect();
                self.go(device, &defines, &named, &arrays)
            })
        });
        let run = run.host_transfer(last.implementation.host_transfer);
        let row = Variant::new(self.name, BackendKind::Cuda, "a kernel of your own", run, last.work);
        Ok(row.tolerance(tolerance).unpredictable())
    }

    /// Errors: the algorithm has no [`Signature`] for this problem; the source does not compile.
    pub(crate) fn compile<A: Algorithm>(
        self,
        algorithm: &A,
        problem: &A::Problem,
        device: &Device,
    ) -> Result<()> {
        let Signature { kernel, defines, .. } = self.called(algorithm, problem)?;
        let kernel = self.launch_lines().next().map_or(kernel, |(_, launch)| &launch.kernel);
        gpu(device)?.kernel(self.source, &defines(problem), kernel).map(|_| ())
    }

    /// Blocks and threads where the source lists no launch.
    fn launch(&self, extent: [usize; 3]) -> Launch {
        let [x, y, z] = self.threads;
        let blocks = match self.blocks {
            Some(blocks) => blocks,
            None if y == 1 && z == 1 => Launch::covering(extent.iter().product(), x).blocks,
            None => [0, 1, 2].map(|axis| Launch::covering(extent[axis], self.threads[axis]).blocks[0]),
        };
        Launch { blocks, threads: self.threads, shared: self.shared }
    }

    /// Does the steps of the list.
    fn go(
        &self,
        device: &Device,
        defines: &[Define],
        named: &[(&str, Argument<'_>)],
        arrays: &Mutex<HashMap<usize, Array<u32>>>,
    ) -> Result<()> {
        let cuda = gpu(device)?;
        let mut arrays = arrays.lock().unwrap_or_else(PoisonError::into_inner);
        let mut named: HashMap<&str, Argument<'_>> = named.iter().copied().collect();
        let numbers: HashMap<&str, i64> =
            named.iter().filter_map(|(name, argument)| Some((*name, argument.whole()?))).collect();
        // Arrays come first: what is launched borrows them.
        for Step { line, action } in self.steps {
            let Action::Array { element, name, length } = action else { continue };
            let place = format!("{}:{line}", self.name);
            let count =
                length.value(&numbers).map_err(|found| Error::value(&place, "a whole number", found))?;
            let expected = "a length from 1 to 2147483647";
            let count = usize::try_from(count).ok().filter(|count| (1..1 << 31).contains(count));
            let count = count.ok_or_else(|| {
                Error::value(format!("{place}: {name}"), expected, length.value(&numbers).unwrap_or_default())
            })?;
            let words = (count * size_of_element(&place, element)?).div_ceil(4);
            if arrays.get(line).is_none_or(|array| array.len() != words) {
                arrays.insert(*line, Array::zeros(device, &[words])?);
            }
        }
        let mut made =
            arrays.iter_mut().map(|(line, array)| (*line, array.cuda_mut())).collect::<HashMap<_, _>>();
        for Step { line, action } in self.steps {
            let place = || format!("{}:{line}", self.name);
            match action {
                Action::Array { element, name, .. } => {
                    let Some(array) = made.remove(line) else { continue };
                    named.insert(name, Argument::from(array).of_elements(c_name(element)));
                }
                Action::Copy { variable, from } => {
                    let Some(from) = named.get(from.as_str()) else { continue };
                    cuda.copy_to_variable(self.source, defines, variable, from)?;
                }
                Action::Launch(launch) => {
                    let number = |expression: &Expression| {
                        expression
                            .value(&numbers)
                            .map_err(|found| Error::value(place(), "a whole number", found))
                    };
                    let size = |expression: &Expression, least: u32| -> Result<u32> {
                        let value = number(expression)?;
                        u32::try_from(value).ok().filter(|size| *size >= least).ok_or_else(|| {
                            Error::value(
                                format!("{}: sizes of the launch", place()),
                                format!("at least {least}"),
                                value,
                            )
                        })
                    };
                    let sides = |sides: &[Expression; 3]| -> Result<[u32; 3]> {
                        Ok([size(&sides[0], 1)?, size(&sides[1], 1)?, size(&sides[2], 1)?])
                    };
                    let sizes = Launch {
                        blocks: sides(&launch.blocks)?,
                        threads: sides(&launch.threads)?,
                        shared: size(&launch.shared, 0)?,
                    };
                    let kernel = cuda.kernel(self.source, defines, &launch.kernel)?;
                    let mut arguments = Vec::new();
                    for (expression, parameter) in launch.arguments.iter().zip(kernel.parameters()) {
                        let known = match expression {
                            Expression::Name(name) => {
                                named.get(name.as_str()).filter(|known| known.whole().is_none())
                            }
                            _ => None,
                        };
                        arguments.push(match known {
                            Some(known) => *known,
                            None => Argument::whole_as(number(expression)?, &parameter.element).ok_or_else(
                                || {
                                    let found = format!("{:?}", number(expression).unwrap_or_default());
                                    Error::value(
                                        format!("{}: {}", place(), parameter.name),
                                        parameter.to_string(),
                                        found,
                                    )
                                },
                            )?,
                        });
                    }
                    // SAFETY: as where the source lists no launch.
                    unsafe { kernel.launch(sizes, &mut arguments)? };
                }
            }
        }
        Ok(())
    }

    fn called<A: Algorithm>(
        self,
        algorithm: &A,
        problem: &A::Problem,
    ) -> Result<Signature<A::Problem, A::Data>> {
        let none = || {
            let expected = "a problem that one kernel of a user's own may compute";
            Error::value(format!("ladder {}", algorithm.about().name), expected, problem)
        };
        algorithm.signature(problem).ok_or_else(none)
    }
}

/// Types of which a source may list arrays, with their bytes.
const ELEMENTS: [(&str, usize); 17] = [
    ("char", 1),
    ("unsigned char", 1),
    ("short", 2),
    ("unsigned short", 2),
    ("int", 4),
    ("unsigned int", 4),
    ("float", 4),
    ("short2", 4),
    ("long long", 8),
    ("unsigned long long", 8),
    ("double", 8),
    ("float2", 8),
    ("uint2", 8),
    ("double2", 16),
    ("float4", 16),
    ("int4", 16),
    ("uint4", 16),
];

/// The name that kernels' parameters of this type have.
fn c_name(element: &str) -> &'static str {
    let element = if element == "unsigned" { "unsigned int" } else { element };
    ELEMENTS.iter().find(|(name, _)| *name == element).map_or("", |(name, _)| name)
}

fn size_of_element(place: &str, element: &str) -> Result<usize> {
    let named = c_name(element);
    ELEMENTS.iter().find(|(name, _)| *name == named).map(|(_, bytes)| *bytes).ok_or_else(|| {
        let known: Vec<_> = ELEMENTS.iter().map(|(name, _)| *name).collect();
        Error::value(place, format!("an array of {}", known.join(", ")), element)
    })
}

/// Whether a value of this type may be computed in a list of launches.
fn is_whole(element: &str) -> bool {
    matches!(element, "int" | "unsigned int" | "long long" | "unsigned long long")
}

/// Headers whose declarations every kernel has without them.
const KNOWN_HEADERS: [&str; 12] = [
    "stdio.h",
    "stdlib.h",
    "stdint.h",
    "math.h",
    "assert.h",
    "cstdio",
    "cmath",
    "cstdint",
    "cuda.h",
    "cuda_runtime.h",
    "device_launch_parameters.h",
    "cuda_fp16.h",
];

/// A user's text as the compilers take it, with its lines where they were, and the headers that it includes.
fn source_text(
    text: &str,
    headers: &[(&'static str, &'static str)],
) -> (String, Vec<(&'static str, &'static str)>) {
    let mut included = Vec::new();
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let header = line.trim_start().strip_prefix('#').and_then(|directive| {
            let name = directive.trim_start().strip_prefix("include")?.trim_start();
            name.strip_prefix(['<', '"'])?.split(['>', '"']).next()
        });
        let ours = headers.iter().find(|(name, _)| Some(*name) == header);
        included.extend(ours.copied().filter(|ours| !included.contains(ours)));
        if ours.is_some() || header.is_some_and(|name| KNOWN_HEADERS.contains(&name)) {
            out.extend(line.ends_with('\n').then_some('\n'));
        } else {
            let line = with_plain_names(&out, line);
            out.push_str(&line);
        }
    }
    (out, included)
}

/// Kernels as `extern "C"`, by whose names compilers leave them, where they are no templates. `before` is the
/// text before the line.
fn with_plain_names(before: &str, line: &str) -> String {
    let code = line.split("//").next().unwrap_or_default();
    let last = before.trim_end().lines().next_back().unwrap_or_default();
    let is_template = last.trim_start().starts_with("template") || code.contains("template");
    match code.find("__global__") {
        Some(start) if !is_template && !code[..start].contains("extern") => {
            format!("{}extern \"C\" {}", &line[..start], &line[start..])
        }
        _ => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_of_courses_are_taken_as_they_are() {
        let text = "#include <stdio.h>\n# include \"cuda_runtime.h\"\n#include <curand_kernel.h>\n#include <vector>\n\
                    __global__ void add(int n) {}\nextern \"C\" __global__ void sub() {}\n\
                    template <int N>\n__global__ void many() {}\ntemplate <int N> __global__ void more() {}\n\
                    // __global__ words\n";
        let header = ("curand_kernel.h", "struct curandState {};");
        let (found, included) = source_text(text, &[header]);
        let expected = "\n\n\n#include <vector>\nextern \"C\" __global__ void add(int n) {}\n\
                        extern \"C\" __global__ void sub() {}\ntemplate <int N>\n__global__ void many() {}\n\
                        template <int N> __global__ void more() {}\n// __global__ words\n";
        assert_eq!((found.as_str(), included), (expected, vec![header]));
    }
}

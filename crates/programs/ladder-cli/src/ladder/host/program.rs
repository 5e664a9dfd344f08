//! The text of a program that repeats a run, and its data.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use rayspin::device::cuda::{AddressMode, Filter, Parameter, Program, TexelKind};
use rayspin_emu::{RecordedMemory, RecordedTexture, RecordedVariable, Step};

use super::kernels::Kernels;
use super::record::Recorded;

/// The functions that every program has.
const SUPPORT: &str = include_str!("support.h");
/// Those of programs with textures.
const TEXTURES: &str = include_str!("textures.h");
/// What the data begin with.
const MAGIC: &[u8; 8] = b"RAYSPIN1";
/// Types of elements that arrays are declared with: the type, its numbers and how many there are.
const ELEMENTS: [(&str, &str, usize); 20] = [
    ("float", "float", 1),
    ("double", "double", 1),
    ("float2", "float", 2),
    ("double2", "double", 2),
    ("float4", "float", 4),
    ("int", "int", 1),
    ("int2", "int", 2),
    ("int4", "int", 4),
    ("unsigned int", "unsigned int", 1),
    ("uint2", "unsigned int", 2),
    ("uint4", "unsigned int", 4),
    ("unsigned char", "unsigned char", 1),
    ("signed char", "signed char", 1),
    ("unsigned short", "unsigned short", 1),
    ("short", "short", 1),
    ("short2", "short", 2),
    ("long long", "long long", 1),
    ("unsigned long long", "unsigned long long", 1),
    ("uchar4", "unsigned char", 4),
    ("char", "char", 1),
];
/// Bytes of dynamic shared memory that a kernel may use without an attribute.
const SHARED_WITHOUT_ASKING: u32 = 48 << 10;

/// A program and its data.
pub(super) struct Written {
    pub(super) text: String,
    pub(super) data: Vec<u8>,
}

/// Why a run cannot be written.
type Why = String;

fn bytes_of_number(number: &str) -> usize {
    match number {
        "double" | "long long" | "unsigned long long" => 8,
        "float" | "int" | "unsigned int" => 4,
        "short" | "unsigned short" => 2,
        _ => 1,
    }
}

/// An array on the GPU that the run touches.
struct Array<'a> {
    memory: &'a RecordedMemory,
    name: String,
    /// One of [`ELEMENTS`].
    element: &'static str,
}

struct Writer<'a> {
    recorded: &'a Recorded,
    kernels: Kernels,
    /// By address.
    arrays: BTreeMap<u64, Array<'a>>,
    /// By handle, with their names.
    textures: BTreeMap<u64, (&'a RecordedTexture, String)>,
    data: Vec<u8>,
}

/// The program that repeats a recorded run. Errors: why it cannot be written.
pub(super) fn written(ladder: &str, stem: &str, recorded: &Recorded) -> Result<Written, Why> {
    if let Some(Step::Other(why)) = recorded.steps().iter().find(|step| matches!(step, Step::Other(_))) {
        return Err((*why).to_owned());
    }
    if recorded.launches().next().is_none() {
        return Err("it launches no kernel".to_owned());
    }
    if recorded.outputs.is_empty() {
        return Err("it does not tell which arrays are its outputs".to_owned());
    }
    let kernels = Kernels::new(recorded.launches().map(|(program, ..)| program));
    let mut writer = Writer {
        recorded,
        kernels,
        arrays: BTreeMap::new(),
        textures: BTreeMap::new(),
        data: [MAGIC.as_slice(), &[0; 8]].concat(),
    };
    writer.find()?;
    let body = writer.body()?;
    let bytes = writer.data.len() as u64;
    writer.data[MAGIC.len()..16].copy_from_slice(&bytes.to_le_bytes());
    let Recorded { variant, summary, problem, tolerance, .. } = recorded;
    let mut text = format!(
        "// {ladder}, variant {variant}: {summary}. Problem: {problem}.\n\
         // Written by rayspin-ladder host {ladder} {variant}.\n\
         // It reads {stem}.bin, which lies beside it: the inputs, and the outputs that are expected.\n//\n\
         // nvcc -std=c++17 -arch=native {stem}.cu -o {stem} && ./{stem}\n\
         // rayspin-ladder run {stem}.cu runs it without a GPU.\n\n\
         #include <cuda_runtime.h>\n\n#include <algorithm>\n#include <cmath>\n#include <cstdio>\n\
         #include <cstdlib>\n#include <cstring>\n\
         #include <string>\n#include <type_traits>\n#include <vector>\n\n\
         // ---- The kernels\n\n{}// ---- The program around them\n\n",
        writer.kernels.text()
    );
    let _ = write!(
        text,
        "#define HOST_NAME \"{ladder} {variant}\"\n#define HOST_DATA \"{stem}.bin\"\n#define HOST_BYTES {bytes}ull\n\
         // Twice the error that the variant may have against exact results, as both results have theirs.\n\
         #define HOST_TOLERANCE {:e}\n\n{SUPPORT}\n",
        2.0 * tolerance
    );
    if !writer.textures.is_empty() {
        text.push_str(TEXTURES);
        text.push('\n');
    }
    text.push_str(&body);
    Ok(Written { text, data: writer.data })
}

impl<'a> Writer<'a> {
    fn parameters(&self, program: &Program, kernel: &str) -> Result<Vec<Parameter>, Why> {
        let signatures = program.signatures().map_err(|error| error.to_string())?;
        signatures.get(kernel).cloned().ok_or_else(|| format!("the parameters of {kernel} cannot be read"))
    }

    /// Finds the arrays and textures that the run touches, and their names.
    fn find(&mut self) -> Result<(), Why> {
        let recorded = self.recorded;
        let mut others = Vec::new();
        for step in recorded.steps() {
            match step {
                Step::Launch { program, kernel, arguments, .. } => {
                    for (parameter, bytes) in self.parameters(program, kernel)?.iter().zip(arguments) {
                        let Ok(word) = <[u8; 8]>::try_from(bytes.as_slice()).map(u64::from_ne_bytes) else {
                            continue;
                        };
                        if parameter.element == "cudaTextureObject_t" && !parameter.pointer {
                            self.add_texture(word, &parameter.name)?;
                        } else if parameter.pointer && word != 0 {
                            self.add(word, &parameter.name, &parameter.element);
                        }
                    }
                }
                Step::Upload { to, .. } => others.push(*to),
                Step::Copy { from, to, .. } => others.extend([*from, *to]),
                Step::Set { address, .. } => others.push(*address),
                Step::Read(_) | Step::Other(_) => {}
            }
        }
        for address in others {
            self.add(address, "array", "unsigned char");
        }
        // A check spoils the outputs of all variants.
        if !recorded.outputs.iter().any(|address| self.arrays.contains_key(address)) {
            return Err("it writes none of the outputs of its algorithm".to_owned());
        }
        Ok(())
    }

    fn is_texels(&self, address: u64) -> bool {
        self.recorded.record.textures.iter().any(|texture| texture.texels == address)
    }

    /// Notes the array that holds an address, if an array does.
    fn add(&mut self, address: u64, name: &str, element: &str) {
        let recorded = self.recorded;
        let holds = |memory: &&RecordedMemory| {
            (memory.address..memory.address + memory.before.len() as u64).contains(&address)
        };
        let Some(memory) = recorded.record.arrays.iter().find(holds) else { return };
        if self.is_texels(memory.address) || self.arrays.contains_key(&memory.address) {
            return;
        }
        let known = ELEMENTS.iter().find(|(known, number, count)| {
            *known == element && memory.before.len().is_multiple_of(bytes_of_number(number) * count)
        });
        let element = known.map_or("unsigned char", |(known, ..)| known);
        let name = self.fresh(name);
        self.arrays.insert(memory.address, Array { memory, name, element });
    }

    fn add_texture(&mut self, handle: u64, name: &str) -> Result<(), Why> {
        if self.textures.contains_key(&handle) {
            return Ok(());
        }
        let texture = self.recorded.record.textures.iter().find(|texture| texture.handle == handle);
        let texture = texture.ok_or_else(|| format!("texture {name} is not one of the emulator's"))?;
        let name = self.fresh(name);
        self.textures.insert(handle, (texture, name));
        Ok(())
    }

    /// `d_name`, or with a number where that is taken.
    fn fresh(&self, name: &str) -> String {
        let taken = |own: &str| {
            self.arrays.values().any(|array| array.name == own)
                || self.textures.values().any(|(_, name)| name == own)
        };
        let first = format!("d_{name}");
        if !taken(&first) {
            return first;
        }
        (2..).map(|number| format!("d_{name}_{number}")).find(|own| !taken(own)).unwrap_or(first)
    }

    /// Where bytes lie in the file.
    fn kept(&mut self, bytes: &[u8]) -> usize {
        self.data.resize(self.data.len().next_multiple_of(16), 0);
        let at = self.data.len();
        self.data.extend_from_slice(bytes);
        at
    }

    /// An address as an expression for a call that takes bytes: an array and the bytes from its beginning.
    fn place(&self, address: u64) -> Option<(&Array<'a>, u64)> {
        let (_, array) = self.arrays.range(..=address).next_back()?;
        let offset = address - array.memory.address;
        (offset <= array.memory.before.len() as u64).then_some((array, offset))
    }

    fn pointer(&self, address: u64) -> Result<String, Why> {
        match self.place(address) {
            Some((array, 0)) => Ok(array.name.clone()),
            Some((array, offset)) => Ok(format!("(char*){} + {offset}", array.name)),
            None => Err("it copies from or to memory that is no array".to_owned()),
        }
    }

    /// The variable of a program that holds an address, and the bytes from its beginning.
    fn variable(&self, address: u64) -> Option<(&'a RecordedVariable, u64)> {
        let recorded = self.recorded;
        let holds = |v: &&RecordedVariable| {
            (v.memory.address..v.memory.address + v.memory.before.len() as u64).contains(&address)
        };
        recorded.record.variables.iter().find(holds).map(|v| (v, address - v.memory.address))
    }

    fn symbol(&self, variable: &RecordedVariable) -> String {
        format!("{}{}", self.kernels.prefix(&variable.program), variable.name)
    }

    fn body(&mut self) -> Result<String, Why> {
        let recorded = self.recorded;
        let mut out = String::from(
            "int main(int argc, char** argv) {\n    host::Data data(argc > 1 ? argv[1] : nullptr, argv[0]);\n\n    \
             // Arrays on the GPU, and what they hold at the beginning.\n",
        );
        let addresses: Vec<u64> = self.arrays.keys().copied().collect();
        for address in &addresses {
            let Array { memory, name, element } = &self.arrays[address];
            let (memory, name, element, bytes) = (*memory, name.clone(), *element, memory.before.len());
            let _ =
                writeln!(out, "    {element}* {name} = nullptr;\n    CHECK(cudaMalloc(&{name}, {bytes}));");
            match memory.before.iter().all(|byte| *byte == memory.before[0]) {
                true => {
                    let _ =
                        writeln!(out, "    CHECK(cudaMemset({name}, 0x{:02x}, {bytes}));", memory.before[0]);
                }
                false => {
                    let at = self.kept(&memory.before);
                    let _ = writeln!(
                        out,
                        "    CHECK(cudaMemcpy({name}, data.at({at}), {bytes}, cudaMemcpyHostToDevice));"
                    );
                }
            }
        }
        let variables: Vec<_> =
            recorded.record.variables.iter().filter(|v| self.kernels.has(&v.program)).collect();
        for variable in variables {
            let at = self.kept(&variable.memory.before);
            let _ = writeln!(
                out,
                "    CHECK(cudaMemcpyToSymbol({}, data.at({at}), {}));",
                self.symbol(variable),
                variable.memory.before.len()
            );
        }
        let handles: Vec<u64> = self.textures.keys().copied().collect();
        for handle in handles {
            self.texture(handle, &mut out)?;
        }
        out.push_str(&self.attributes());
        out.push_str(
            "\n    // The run.\n    cudaEvent_t begin, end;\n    CHECK(cudaEventCreate(&begin));\n    \
             CHECK(cudaEventCreate(&end));\n    CHECK(cudaDeviceSynchronize());\n    CHECK(cudaEventRecord(begin));\n",
        );
        for step in recorded.steps() {
            self.step(step, &mut out)?;
        }
        out.push_str(
            "    CHECK(cudaEventRecord(end));\n    CHECK(cudaDeviceSynchronize());\n    float milliseconds = 0;\n    \
             CHECK(cudaEventElapsedTime(&milliseconds, begin, end));\n\n    // The outputs, beside those that are expected.\n    \
             bool right = true;\n",
        );
        for address in &recorded.outputs {
            let Some(Array { memory, name, element }) = self.arrays.get(address) else { continue };
            let (memory, name, bytes) = (*memory, name.clone(), memory.after.len());
            let known = ELEMENTS.iter().find(|(known, ..)| known == element);
            let number = known.map_or("unsigned char", |(_, number, _)| number);
            let at = self.kept(&memory.after);
            let _ = writeln!(
                out,
                "    right &= host::compare<{number}>(\"{name}\", {name}, data.at({at}), {}{});",
                bytes / bytes_of_number(number),
                if recorded.unordered.contains(address) { ", false" } else { "" }
            );
        }
        out.push('\n');
        for (_, name) in self.textures.values() {
            let _ = writeln!(
                out,
                "    CHECK(cudaDestroyTextureObject({name}));\n    CHECK(cudaFreeArray({name}_array));"
            );
        }
        for array in self.arrays.values() {
            let _ = writeln!(out, "    CHECK(cudaFree({}));", array.name);
        }
        out.push_str(
            "    CHECK(cudaEventDestroy(begin));\n    CHECK(cudaEventDestroy(end));\n    host::tell(right, milliseconds);\n    \
             return right ? 0 : 1;\n}\n",
        );
        Ok(out)
    }

    /// Kernels that need more shared memory than a kernel has without asking.
    fn attributes(&self) -> String {
        let mut most: BTreeMap<String, u32> = BTreeMap::new();
        for (program, kernel, launch) in self.recorded.launches() {
            let own = most.entry(format!("{}{kernel}", self.kernels.prefix(program))).or_default();
            *own = (*own).max(launch.shared);
        }
        most.retain(|_, shared| *shared > SHARED_WITHOUT_ASKING);
        most.iter()
            .map(|(kernel, shared)| {
                format!("    CHECK(cudaFuncSetAttribute({kernel}, cudaFuncAttributeMaxDynamicSharedMemorySize, {shared}));\n")
            })
            .collect()
    }

    fn texture(&mut self, handle: u64, out: &mut String) -> Result<(), Why> {
        let (texture, name) = self.textures[&handle].clone();
        let recorded = self.recorded;
        let texels = recorded.record.arrays.iter().find(|array| array.address == texture.texels);
        let texels = texels.ok_or_else(|| format!("the texels of {name} are not kept"))?;
        let at = self.kept(&texels.before);
        let layout = &texture.layout;
        let [x, y, z] = layout.size;
        let (kind, normalized_float) = match layout.kind {
            TexelKind::F32 => ("float", false),
            TexelKind::F32x2 => ("float2", false),
            TexelKind::U8 => ("unsigned char", true),
        };
        let mode = match layout.sampling.address_mode {
            AddressMode::Clamp => "Clamp",
            AddressMode::Border => "Border",
            AddressMode::Wrap => "Wrap",
            AddressMode::Mirror => "Mirror",
        };
        let filter = if layout.sampling.filter == Filter::Linear { "Linear" } else { "Point" };
        let read = if normalized_float { "NormalizedFloat" } else { "ElementType" };
        let _ = writeln!(
            out,
            "    cudaArray_t {name}_array = host::array<{kind}>({x}, {y}, {z}, {});\n    \
             host::fill_array<{kind}>({name}_array, {x}, {y}, {z}, data.at({at}), cudaMemcpyHostToDevice);\n    \
             cudaTextureObject_t {name} = host::texture({name}_array, cudaAddressMode{mode}, cudaFilterMode{filter}, \
             cudaReadMode{read}, {});",
            if layout.layered { "cudaArrayLayered" } else { "cudaArrayDefault" },
            u8::from(layout.sampling.normalized)
        );
        Ok(())
    }

    fn step(&mut self, step: &Step, out: &mut String) -> Result<(), Why> {
        let line = match step {
            Step::Launch { program, kernel, launch, arguments } => {
                let parameters = self.parameters(program, kernel)?;
                let list: Result<Vec<String>, Why> = parameters
                    .iter()
                    .zip(arguments)
                    .map(|(parameter, bytes)| self.argument(parameter, bytes))
                    .collect();
                let [x, y, z] = launch.blocks;
                let [a, b, c] = launch.threads;
                let shared = if launch.shared > 0 { format!(", {}", launch.shared) } else { String::new() };
                let prefix = self.kernels.prefix(program);
                format!(
                    "{prefix}{kernel}<<<dim3({x}, {y}, {z}), dim3({a}, {b}, {c}){shared}>>>({});\n    CHECK(cudaGetLastError());",
                    list?.join(", ")
                )
            }
            Step::Upload { to, bytes } => {
                let at = self.kept(bytes);
                match self.variable(*to) {
                    Some((variable, offset)) => format!(
                        "CHECK(cudaMemcpyToSymbol({}, data.at({at}), {}, {offset}));",
                        self.symbol(variable),
                        bytes.len()
                    ),
                    None => format!(
                        "CHECK(cudaMemcpy({}, data.at({at}), {}, cudaMemcpyHostToDevice));",
                        self.pointer(*to)?,
                        bytes.len()
                    ),
                }
            }
            Step::Copy { from, to, bytes } => {
                let texture = self.textures.values().find(|(texture, _)| texture.texels == *to);
                match (texture, self.variable(*to)) {
                    (Some((texture, name)), _) => {
                        let [x, y, z] = texture.layout.size;
                        let kind = match texture.layout.kind {
                            TexelKind::F32 => "float",
                            TexelKind::F32x2 => "float2",
                            TexelKind::U8 => "unsigned char",
                        };
                        let from = self.pointer(*from)?;
                        format!(
                            "host::fill_array<{kind}>({name}_array, {x}, {y}, {z}, {from}, cudaMemcpyDeviceToDevice);"
                        )
                    }
                    (None, Some((variable, offset))) => format!(
                        "CHECK(cudaMemcpyToSymbol({}, {}, {bytes}, {offset}, cudaMemcpyDeviceToDevice));",
                        self.symbol(variable),
                        self.pointer(*from)?
                    ),
                    (None, None) if self.is_texels(*to) => return Ok(()),
                    (None, None) => format!(
                        "CHECK(cudaMemcpy({}, {}, {bytes}, cudaMemcpyDeviceToDevice));",
                        self.pointer(*to)?,
                        self.pointer(*from)?
                    ),
                }
            }
            Step::Set { address, byte, bytes } => {
                format!("CHECK(cudaMemset({}, 0x{byte:02x}, {bytes}));", self.pointer(*address)?)
            }
            Step::Read(bytes) => {
                format!("// Here the host read {bytes} bytes; what follows may depend on them.")
            }
            Step::Other(why) => return Err((*why).to_owned()),
        };
        let _ = writeln!(out, "    {line}");
        Ok(())
    }

    fn argument(&self, parameter: &Parameter, bytes: &[u8]) -> Result<String, Why> {
        let word = || {
            <[u8; 8]>::try_from(bytes)
                .map(u64::from_ne_bytes)
                .map_err(|_| "an address has not 8 bytes".to_owned())
        };
        if parameter.pointer {
            let address = word()?;
            if address == 0 {
                return Ok("nullptr".to_owned());
            }
            let (array, offset) = self
                .place(address)
                .ok_or_else(|| format!("{} points to memory that is no array", parameter.name))?;
            // Signatures do not tell uint64_t from unsigned long long.
            let plain = array.element == parameter.element && !array.element.ends_with("long long");
            return Ok(match (plain, offset) {
                (true, 0) => array.name.clone(),
                _ => format!("host::at({}, {offset})", array.name),
            });
        }
        if parameter.element == "cudaTextureObject_t" {
            let handle = word()?;
            let texture = self.textures.get(&handle);
            return texture
                .map(|(_, name)| name.clone())
                .ok_or_else(|| format!("{} is no texture", parameter.name));
        }
        scalar(&parameter.element, bytes)
    }
}

/// A value as C++ has it, bit for bit.
fn scalar(element: &str, bytes: &[u8]) -> Result<String, Why> {
    let (_, number, count) = ELEMENTS
        .iter()
        .find(|(known, ..)| *known == element)
        .ok_or_else(|| format!("arguments of type {element} are not written"))?;
    let size = bytes_of_number(number);
    if bytes.len() != size * count {
        return Err(format!("an argument of type {element} has {} bytes", bytes.len()));
    }
    let one = |bytes: &[u8]| -> String {
        let mut word = [0u8; 8];
        word[..size].copy_from_slice(bytes);
        let bits = u64::from_le_bytes(word);
        match *number {
            "float" => float(
                f64::from(f32::from_bits(bits as u32)),
                format!("{:?}f", f32::from_bits(bits as u32)),
                "float",
            ),
            "double" => float(f64::from_bits(bits), format!("{:?}", f64::from_bits(bits)), "double"),
            // The least number has no literal of its own.
            "int" if bits as i32 == i32::MIN => format!("({} - 1)", i32::MIN + 1),
            "int" => (bits as i32).to_string(),
            "unsigned int" => format!("{}u", bits as u32),
            "long long" if bits as i64 == i64::MIN => format!("({}ll - 1)", i64::MIN + 1),
            "long long" => format!("{}ll", bits as i64),
            "unsigned long long" => format!("{bits}ull"),
            "short" => (bits as i16).to_string(),
            "unsigned short" => (bits as u16).to_string(),
            "char" | "signed char" => (bits as i8).to_string(),
            _ => (bits as u8).to_string(),
        }
    };
    let numbers: Vec<String> = bytes.chunks_exact(size).map(one).collect();
    Ok(match count {
        1 => numbers.concat(),
        _ => format!("make_{element}({})", numbers.join(", ")),
    })
}

fn float(value: f64, shortest: String, kind: &str) -> String {
    if value.is_nan() {
        return format!("({kind})NAN");
    }
    match (value.is_infinite(), value > 0.0) {
        (true, true) => format!("({kind})INFINITY"),
        (true, false) => format!("-({kind})INFINITY"),
        (false, _) => shortest,
    }
}

#[cfg(test)]
mod tests {
    use super::scalar;

    #[test]
    fn values_keep_their_bits() {
        assert_eq!(scalar("float", &0.1f32.to_le_bytes()).unwrap(), "0.1f");
        assert_eq!(scalar("float", &1e-30f32.to_le_bytes()).unwrap(), "1e-30f");
        assert_eq!(scalar("float", &f32::INFINITY.to_le_bytes()).unwrap(), "(float)INFINITY");
        assert_eq!(scalar("double", &3.0f64.to_le_bytes()).unwrap(), "3.0");
        assert_eq!(scalar("int", &(-7i32).to_le_bytes()).unwrap(), "-7");
        assert_eq!(scalar("int", &i32::MIN.to_le_bytes()).unwrap(), "(-2147483647 - 1)");
        assert_eq!(
            scalar("float2", &[1f32.to_le_bytes(), 2f32.to_le_bytes()].concat()).unwrap(),
            "make_float2(1.0f, 2.0f)"
        );
        assert!(scalar("Record", &[0; 4]).is_err());
        assert!(scalar("int", &[0; 3]).is_err());
    }
}

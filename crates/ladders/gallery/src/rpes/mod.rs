//! Two-electron repulsion integrals of s and p shells by Rys quadrature.

mod cpu;
mod cuda;
pub mod reference;
pub mod rys;
#[cfg(test)]
mod scf;
mod variants;

use std::fmt;

use rayon::prelude::*;
use rayspin_core::{Error, Result};
use rayspin_device::{Array, Backend, BackendKind, Device};
use rayspin_tune::{About, Algorithm, Case, Counts, Peak, PublishedApplication, Row, Unit, input, tuned};

/// Primitive functions of a shell.
pub const PRIMITIVES: usize = 3;
/// Shells of a molecule, at most.
pub const MOST_SHELLS: usize = 128;
/// Numbers that describe a pair: six of each of 9 pairs of primitives, the first centre, and how far the
/// second is from it.
const ROWS: usize = 60;

/// Functions of one centre: Σ c_i e^(−a_i r²) (s), or these times x, y and z (p).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shell {
    /// In bohr.
    pub center: [f64; 3],
    /// Whether it is a p shell.
    pub p: bool,
    /// a_i, in 1/bohr².
    pub exponents: [f64; PRIMITIVES],
    /// c_i, with the norms of the primitive functions.
    pub coefficients: [f64; PRIMITIVES],
}

impl Shell {
    /// A shell from coefficients of normalised primitive functions, as tables of basis sets have them.
    pub fn normalised(center: [f64; 3], p: bool, exponents: [f64; 3], coefficients: [f64; 3]) -> Self {
        let norm =
            |a: f64| (2.0 * a / std::f64::consts::PI).powf(0.75) * if p { 2.0 * a.sqrt() } else { 1.0 };
        let coefficients = std::array::from_fn(|i| coefficients[i] * norm(exponents[i]));
        Self { center, p, exponents, coefficients }
    }
}

/// Functions of a pair of shells of each type: s s, p s, p p.
const FUNCTIONS: [usize; 3] = [1, 3, 9];

/// Classes of quartets: the types of the first and the second pair.
const CLASSES: [[usize; 2]; 6] = [[0, 0], [1, 0], [1, 1], [2, 0], [2, 1], [2, 2]];

/// Where integrals lie. Pairs of shells are sorted by type; quartets are pairs of pairs, the later one first.
/// A class of quartets has all its integrals side by side, and a quartet its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Shells of a pair, p before s, the later before the earlier.
    pairs: Vec<[u32; 2]>,
    /// Where the pairs of a type begin, and where the last end.
    begin: [usize; 4],
    /// Pairs in the order of their shells.
    order: Vec<u32>,
}

impl Layout {
    fn new(shells: &[Shell]) -> Self {
        let mut pairs: Vec<([u32; 2], usize, usize)> = Vec::new();
        for (i, a) in shells.iter().enumerate() {
            for (j, b) in shells[..=i].iter().enumerate() {
                let pair = if b.p && !a.p { [j, i] } else { [i, j] };
                pairs.push((
                    pair.map(|shell| shell as u32),
                    usize::from(a.p) + usize::from(b.p),
                    pairs.len(),
                ));
            }
        }
        pairs.sort_by_key(|&(_, kind, _)| kind);
        let begin = [0, 1, 2, 3].map(|kind| pairs.partition_point(|pair| pair.1 < kind));
        let mut order = vec![0; pairs.len()];
        pairs.iter().enumerate().for_each(|(index, pair)| order[pair.2] = index as u32);
        Self { pairs: pairs.into_iter().map(|pair| pair.0).collect(), begin, order }
    }

    fn kind(&self, pair: usize) -> usize {
        self.begin[1..3].iter().filter(|&&begin| pair >= begin).count()
    }

    fn of(&self, kind: usize) -> usize {
        self.begin[kind + 1] - self.begin[kind]
    }

    fn quartets(&self, [bra, ket]: [usize; 2]) -> usize {
        let n = self.of(bra);
        if bra == ket { n * (n + 1) / 2 } else { n * self.of(ket) }
    }

    /// Where the integrals of a class begin; all of them for the class behind the last.
    fn start(&self, class: usize) -> usize {
        CLASSES[..class].iter().map(|&[b, k]| self.quartets([b, k]) * FUNCTIONS[b] * FUNCTIONS[k]).sum()
    }

    fn len(&self) -> usize {
        self.start(CLASSES.len())
    }

    /// Where the integrals of two pairs begin, the later pair first.
    fn place(&self, [bra, ket]: [usize; 2]) -> usize {
        let kinds = [self.kind(bra), self.kind(ket)];
        let (b, k) = (bra - self.begin[kinds[0]], ket - self.begin[kinds[1]]);
        let quartet = if kinds[0] == kinds[1] { b * (b + 1) / 2 + k } else { b * self.of(kinds[1]) + k };
        let class = CLASSES.iter().position(|&class| class == kinds).unwrap_or(0);
        self.start(class) + quartet * FUNCTIONS[kinds[0]] * FUNCTIONS[kinds[1]]
    }
}

/// All repulsion integrals of a molecule.
#[derive(Debug, Clone)]
pub struct Integrals {
    layout: Layout,
    /// Shell and component of a function.
    functions: Vec<[usize; 2]>,
    values: Vec<f64>,
}

impl Integrals {
    /// How many functions there are: one of an s shell, three (x, y, z) of a p shell, in the order of the
    /// shells.
    pub fn functions(&self) -> usize {
        self.functions.len()
    }

    /// (ij|kl) = ∫∫ i(1) j(1) k(2) l(2) / |1 − 2|, in hartree. Errors: a function that there is not.
    pub fn get(&self, functions: [usize; 4]) -> Result<f64> {
        let most = self.functions.len();
        if let Some(&function) = functions.iter().find(|&&i| i >= most) {
            return Err(Error::value("function of a basis", format!("below {most}"), function));
        }
        let pair = |i: usize, j: usize| {
            let [first, second] = [self.functions[i], self.functions[j]];
            // The place of a pair in the order of shells, and its functions as the pair has them.
            let (high, low) = (first[0].max(second[0]), first[0].min(second[0]));
            let pair = self.layout.order[high * (high + 1) / 2 + low] as usize;
            let turned = self.layout.pairs[pair][0] as usize != first[0];
            (pair, if turned { [second[1], first[1]] } else { [first[1], second[1]] })
        };
        let [i, j, k, l] = functions;
        let mut both = [pair(i, j), pair(k, l)];
        if both[0].0 < both[1].0 {
            both.swap(0, 1);
        }
        let [(bra, b), (ket, k)] = both;
        let within =
            |pair: usize, [c, d]: [usize; 2]| if self.layout.kind(pair) == 2 { 3 * c + d } else { c };
        let ket_functions = FUNCTIONS[self.layout.kind(ket)];
        Ok(self.values[self.layout.place([bra, ket]) + within(bra, b) * ket_functions + within(ket, k)])
    }
}

/// All integrals of these shells.
///
/// Errors: no shells or more than [`MOST_SHELLS`], exponents that are not positive, numbers that are not
/// finite, memory, errors of the device.
pub fn repulsion(shells: &[Shell], device: &Device) -> Result<Integrals> {
    let mut data = Data::new(shells, device, 0)?;
    match device.backend() {
        Backend::Cpu(cpu) => cpu::threads(cpu, &mut data),
        Backend::Cuda(_) => {
            let problem = Problem { atoms: shells.len().div_ceil(2) };
            let config = tuned(&Rpes, &problem, &variants::gpu_pairs(), device);
            cuda::pairs(&config, &mut data)?;
        }
    }
    let components =
        |(index, shell): (usize, &Shell)| (0..if shell.p { 3 } else { 1 }).map(move |c| [index, c]);
    let functions = shells.iter().enumerate().flat_map(components).collect();
    Ok(Integrals { layout: data.layout, functions, values: data.integrals.into_vec()? })
}

/// Atoms with an s and a p shell each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// How many.
    pub atoms: usize,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} atoms", self.atoms)
    }
}

impl Problem {
    fn layout(&self) -> Layout {
        Layout::new(&molecule(self.atoms, 0))
    }
}

/// Atoms on a cubic lattice, about 3 bohr apart, each with the outer shells of oxygen in the basis STO-3G
/// (Hehre, Stewart and Pople, 1969).
fn molecule(atoms: usize, seed: u64) -> Vec<Shell> {
    let side = (1..).find(|side| side * side * side >= atoms).unwrap_or(1);
    let mut shells = Vec::with_capacity(2 * atoms);
    for atom in 0..atoms {
        let place = [atom % side, atom / side % side, atom / side / side];
        let center = [0, 1, 2]
            .map(|d| 3.0 * place[d] as f64 + 0.6 * f64::from(input::signed_unit(seed, 3 * atom + d)));
        let exponents = [5.033151319, 1.169596125, 0.3803889600];
        let s = [-0.09996722919, 0.3995128261, 0.7001154689];
        let p = [0.1559162750, 0.6076837186, 0.3919573931];
        shells.extend(
            [false, true].map(|is_p| Shell::normalised(center, is_p, exponents, if is_p { p } else { s })),
        );
    }
    shells
}

/// A molecule, its pairs of shells and its integrals.
pub struct Data {
    shells: Vec<Shell>,
    layout: Layout,
    double: Tables<f64>,
    /// For kernels in `f32`.
    single: Option<Tables<f32>>,
    integrals: Array<f64>,
    seed: u64,
}

/// What kernels read.
struct Tables<R: rayspin_device::Element> {
    /// Centre, exponents and coefficients of each shell.
    shells: Array<R>,
    pairs: Array<[u32; 2]>,
    order: Array<u32>,
    roots: Array<R>,
    /// [`ROWS`] numbers of each pair, a row of all pairs each.
    rows: Array<R>,
}

impl<R: rayspin_device::Element> Tables<R> {
    fn new(shells: &[Shell], layout: &Layout, device: &Device, round: fn(f64) -> R) -> Result<Self> {
        let numbers = |s: &Shell| s.center.into_iter().chain(s.exponents).chain(s.coefficients);
        let pairs = layout.pairs.len();
        Ok(Self {
            shells: Array::from_vec(
                device,
                &[shells.len(), 9],
                shells.iter().flat_map(numbers).map(round).collect(),
            )?,
            pairs: Array::from_slice(device, &[pairs], &layout.pairs)?,
            order: Array::from_slice(device, &[pairs], &layout.order)?,
            roots: Array::from_vec(
                device,
                &[rys::start(rys::MOST + 1)],
                rys::table().iter().copied().map(round).collect(),
            )?,
            rows: Array::zeros(device, &[ROWS, pairs])?,
        })
    }
}

impl Data {
    fn new(shells: &[Shell], device: &Device, seed: u64) -> Result<Self> {
        if !(1..=MOST_SHELLS).contains(&shells.len()) {
            return Err(Error::value("shells of a molecule", format!("1 to {MOST_SHELLS}"), shells.len()));
        }
        let fine = |s: &Shell| {
            s.center.iter().chain(&s.exponents).chain(&s.coefficients).all(|x| x.is_finite())
                && s.exponents.iter().all(|&a| a > 0.0)
        };
        if let Some(bad) = shells.iter().find(|shell| !fine(shell)) {
            return Err(Error::value("shell", "finite numbers and positive exponents", format!("{bad:?}")));
        }
        let layout = Layout::new(shells);
        Ok(Self {
            double: Tables::new(shells, &layout, device, |x| x)?,
            single: match device.backend() {
                Backend::Cpu(_) => None,
                Backend::Cuda(_) => Some(Tables::new(shells, &layout, device, |x| x as f32)?),
            },
            integrals: Array::zeros(device, &[layout.len()])?,
            shells: shells.to_vec(),
            layout,
            seed,
        })
    }
}

/// The ladder.
#[derive(Debug, Clone, Copy)]
pub struct Rpes;

/// Integrals that are checked: all of a problem with at most this number, or this number at random.
const WHOLE: usize = 700;

impl Algorithm for Rpes {
    type Problem = Problem;
    type Data = Data;

    fn about(&self) -> About {
        About {
            name: "rpes",
            title: "Two-electron repulsion integrals by Rys quadrature",
            readme: include_str!("README.md"),
            unit: Unit::Items("integrals"),
        }
    }

    fn cases(&self) -> Vec<Case<Problem>> {
        let case = |name, summary, atoms| Case { name, summary, problem: Problem { atoms } };
        vec![
            case("8", "8 atoms: 32 functions, 139656 integrals", 8),
            case("32", "32 atoms: 128 functions, 34 million integrals", 32),
        ]
    }

    fn default_case(&self, kind: BackendKind) -> Option<&'static str> {
        (kind == BackendKind::Cuda).then_some("32")
    }

    fn trials(&self) -> Vec<Problem> {
        [1, 2, 4].map(|atoms| Problem { atoms }).to_vec()
    }

    fn sized(&self, _: &Problem, size: &[usize]) -> Result<Problem> {
        match *size {
            [atoms] if (1..=MOST_SHELLS / 2).contains(&atoms) => Ok(Problem { atoms }),
            _ => Err(Error::value(
                "size of rpes",
                format!("ATOMS, 1 to {}", MOST_SHELLS / 2),
                format!("{size:?}"),
            )),
        }
    }

    fn variants(&self, _: &Problem) -> Vec<Row<Self>> {
        variants::rows()
    }

    fn counts(&self, problem: &Problem) -> Counts {
        Counts { peak: Peak::F64, items: problem.layout().len() as f64, ..Counts::default() }
    }

    fn published_application(&self) -> Option<PublishedApplication> {
        let cases = &[("32", "8")];
        Some(PublishedApplication::of_lecture("RPES", "instruction issue", 4096, [210.0, 79.4], cases))
    }

    fn data(&self, problem: &Problem, device: &Device, seed: u64) -> Result<Data> {
        Data::new(&molecule(problem.atoms, seed), device, seed)
    }

    fn poison(&self, data: &mut Data) -> Result<()> {
        data.integrals.fill(f64::NAN)
    }

    /// The largest error over the larger of the integral and 1 hartree.
    fn error(&self, _: &Problem, data: &Data) -> Result<f64> {
        let (layout, integrals) = (&data.layout, data.integrals.read()?);
        let count = integrals.len().min(WHOLE);
        let error = |turn: usize| {
            // Every class, so that small ones are not missed, and any integral of it.
            let class = turn % CLASSES.len();
            let [b, k] = CLASSES[class];
            let random = input::bits(data.seed ^ 0x4f5, turn as u64) as usize;
            let functions = FUNCTIONS[b] * FUNCTIONS[k];
            let len = layout.quartets([b, k]) * functions;
            if len == 0 {
                return 0.0;
            }
            let index = match integrals.len() <= WHOLE {
                true if turn / CLASSES.len() >= len => return 0.0,
                true => turn / CLASSES.len(),
                false => random % len,
            };
            let (quartet, function) = (index / functions, index % functions);
            let (bra, ket) = match b == k {
                true => {
                    let bra = (0..).take_while(|b| b * (b + 1) / 2 <= quartet).count() - 1;
                    (bra, quartet - bra * (bra + 1) / 2)
                }
                false => (quartet / layout.of(k), quartet % layout.of(k)),
            };
            let pairs = [layout.pairs[layout.begin[b] + bra], layout.pairs[layout.begin[k] + ket]];
            let shells = [pairs[0][0], pairs[0][1], pairs[1][0], pairs[1][1]]
                .map(|shell| &data.shells[shell as usize]);
            let components = |kind: usize, f: usize| if kind == 2 { [f / 3, f % 3] } else { [f, 0] };
            let ([i, j], [k, l]) =
                (components(b, function / FUNCTIONS[k]), components(k, function % FUNCTIONS[k]));
            let want = reference::integral(shells, [i, j, k, l]);
            let integral = integrals[layout.start(class) + index];
            if integral.is_nan() { f64::INFINITY } else { (integral - want).abs() / want.abs().max(1.0) }
        };
        let cpu = data.integrals.device().cpu_side();
        // Small problems: every integral of every class.
        let turns = if integrals.len() <= WHOLE { CLASSES.len() * integrals.len() } else { count };
        Ok(cpu.run(|| (0..turns).into_par_iter().map(error).reduce(|| 0.0, f64::max)))
    }
}

//! Both directions as ladders, in f32.

use std::fmt;

use rayspin_core::C32;
use rayspin_tune::{About, Case, Counts, Unit};

use super::variants::{Implementation, Problem, variants};
use super::{Family, Plan, reference};
use crate::flat::{Flat, Given, Out, Want};

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shape: Vec<_> = self.shape.iter().map(ToString::to_string).collect();
        let family = match self.family {
            Family::Haar => "Haar",
            Family::Daubechies2 => "Daubechies D4",
        };
        write!(f, "{family}, {} complex f32", shape.join(" x "))
    }
}

type Ladder = Flat<Problem, Implementation<f32>, Vec<C32>>;

/// Images to coefficients.
pub(crate) fn ladder() -> Ladder {
    Flat {
        about: About {
            name: "wavelet",
            title: "Wavelet transform of an image",
            readme: include_str!("README.md"),
            unit: Unit::Bytes,
        },
        cases: || {
            cases([
                (&[512, 512], Family::Daubechies2),
                (&[128; 3], Family::Daubechies2),
                (&[512, 512], Family::Haar),
            ])
        },
        trials: || {
            let shapes: [&[usize]; 6] = [&[1], &[101], &[16, 40], &[33, 1], &[18, 5, 17], &[35, 44, 50]];
            let plans =
                |shape: &[usize]| [Family::Haar, Family::Daubechies2].map(|family| Plan::new(shape, family));
            shapes.into_iter().flat_map(plans).flatten().collect()
        },
        sized: |plan, size| Plan::new(size, plan.family).ok(),
        size: "one to three axes",
        counts: |_| Counts::default(),
        rows: || variants().into(),
        given: |plan, numbers| {
            let len = plan.shape.iter().product();
            Ok(Given {
                inputs: vec![numbers.complex(len)?],
                reals: vec![],
                out: Out::Fresh(len),
                tools: vec![],
            })
        },
        run: |implementation, cpu, plan, arrays| {
            (implementation.forward)(cpu, plan, &shift(plan), arrays.inputs[0], arrays.out, arrays.tools);
            Ok(())
        },
        want: |plan, held| Want::all(reference::forward(plan, &shift(plan), &held.wide(0))),
    }
}

/// Coefficients to images.
pub(crate) fn inverse_ladder() -> Ladder {
    let forward = ladder();
    Flat {
        about: About {
            name: "wavelet-inverse",
            title: "Inverse wavelet transform to an image",
            ..forward.about
        },
        run: |implementation, cpu, plan, arrays| {
            (implementation.inverse)(cpu, plan, &shift(plan), arrays.inputs[0], arrays.out, arrays.tools);
            Ok(())
        },
        want: |plan, held| Want::all(reference::inverse(plan, &shift(plan), &held.wide(0))),
        ..forward
    }
}

fn cases(sizes: [(&[usize], Family); 3]) -> Vec<Case<Plan>> {
    let texts = [
        ("512x512", "a slice, filters of four taps"),
        ("128x128x128", "a volume"),
        ("512x512-haar", "a slice, filters of two taps"),
    ];
    let case = |((shape, family), (name, summary))| {
        Plan::new(shape, family).ok().map(|problem| Case { name, summary, problem })
    };
    sizes.into_iter().zip(texts).filter_map(case).collect()
}

/// Somewhere on the torus.
fn shift(plan: &Plan) -> Vec<usize> {
    plan.shape.iter().map(|n| n / 3 + 1).collect()
}

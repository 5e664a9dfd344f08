//! A volume that the reader turns and cuts.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{Markup, PreEscaped, html};

/// [NiiVue](https://github.com/niivue/niivue), which draws volumes with WebGL 2.
const NIIVUE: &str = include_str!("niivue/niivue.umd.js");
const SCRIPT: &str = include_str!("volume.js");

/// A volume in a browser: slices across three axes, and the volume itself, which the reader turns, cuts and
/// windows. The page carries the numbers and the script that draws them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct VolumeView {
    /// The volume, a NIfTI-1 file.
    pub nifti: Vec<u8>,
    /// What it is, in a few words.
    pub title: String,
    /// The numbers that are black and white at first.
    pub window: [f32; 2],
    /// A sentence or two about it.
    pub caption: String,
}

/// What a page with volumes may do besides, at the end of the list of pictures: the script's font and tables
/// are data in the script.
pub(super) const POLICY: &str = " blob:; connect-src data: blob:; font-src data:; worker-src blob:";

/// The scripts of pages with volumes.
pub(super) fn scripts() -> Markup {
    html! {
        script { (PreEscaped(NIIVUE)) }
        script { (PreEscaped(SCRIPT)) }
    }
}

const VIEWS: [(&str, &str); 5] = [
    ("all", "slices and volume"),
    ("volume", "volume"),
    ("axial", "axial"),
    ("coronal", "coronal"),
    ("sagittal", "sagittal"),
];

const COLOURS: [(&str, &str); 5] = [
    ("gray", "grey"),
    ("ct_bones", "bones"),
    ("ct_soft_tissue", "soft tissue"),
    ("inferno", "inferno"),
    ("viridis", "viridis"),
];

impl VolumeView {
    pub(super) fn render(&self) -> Markup {
        let [low, high] = self.window;
        let choice = |name: &str, label: &str, choices: &[(&str, &str)]| {
            html! {
                label {
                    (label) " "
                    select name=(name) { @for (value, text) in choices { option value=(value) { (text) } } }
                }
            }
        };
        html! {
            figure.volume data-low=(low) data-high=(high) {
                div.screen { canvas aria-label={ "Volume: " (self.title) } {} }
                p.message role="status" { "Drawing the volume …" }
                div.controls {
                    (choice("view", "View", &VIEWS))
                    (choice("colours", "Colours", &COLOURS))
                    label { "Black " input name="low" type="number" step="any" value=(low); }
                    label { "White " input name="high" type="number" step="any" value=(high); }
                    label { "Cut " input name="cut" type="range" min="0" max="1" step="0.01" value="0"; }
                }
                figcaption { strong { (self.title) } @if !self.caption.is_empty() { (self.caption) } }
                script type="text/plain" { (PreEscaped(STANDARD.encode(&self.nifti))) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{Page, Section};

    #[test]
    fn a_page_with_a_volume_carries_all_that_it_shows() {
        let view = VolumeView {
            nifti: vec![1, 2, 254],
            title: "a <volume>".into(),
            window: [-5.0, 7.5],
            ..VolumeView::default()
        };
        let page = Page::new("Head", "").section(Section::new("Volume").volume(view)).render();
        assert!(page.contains(&STANDARD.encode([1, 2, 254])) && page.contains("a &lt;volume&gt;"));
        assert!(page.contains("data-low=\"-5\"") && page.contains("data-high=\"7.5\""));
        // Only NiiVue's comments name addresses, and the policy would stop a script that requests one.
        let own = page.replace(NIIVUE, "");
        assert!(own.len() + NIIVUE.len() == page.len() && !own.contains("http:") && !own.contains("https:"));
        assert!(page.contains("default-src 'none'") && !page.contains("connect-src *"));
        assert!(["src=\"", "href=\"h"].iter().all(|link| !own.contains(link)));
        assert!(!NIIVUE.contains("</script"));
        assert!(!Page::new("Head", "").render().contains("niivue"));
    }
}

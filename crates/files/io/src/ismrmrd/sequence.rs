//! Times and angles of a header's sequence, from the sequence itself.

use super::header_out::Xml;
use super::identity::write;
use super::xml::{self, Node};

/// What follows from a sequence; empty where it does not follow. ms and degrees.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Followed {
    pub(crate) repetition_times: Vec<f64>,
    /// By the contrast that readouts count.
    pub(crate) echo_times: Vec<f64>,
    pub(crate) flip_angles: Vec<f64>,
}

/// The parts of `sequenceParameters`, in the schema's order.
const PARTS: [&str; 6] = ["TR", "TE", "TI", "flipAngle_deg", "sequence_type", "echo_spacing"];

/// The header with what follows from a sequence in the place of what it states of that. The rest of it stays;
/// so does a header that is no document.
pub(crate) fn with_sequence(xml: String, followed: &Followed) -> String {
    let Ok(root) = xml::parse(&xml) else { return xml };
    let stated = root.child("sequenceParameters").map(Node::children).unwrap_or_default();
    let mut parts = Vec::new();
    for name in PARTS {
        let own: &[f64] = match name {
            "TR" => &followed.repetition_times,
            "TE" => &followed.echo_times,
            "flipAngle_deg" => &followed.flip_angles,
            _ => &[],
        };
        match own {
            [] => parts.extend(stated.iter().filter(|part| part.name == name).cloned()),
            own => parts.extend(own.iter().map(|value| Node::new(name, &value.to_string(), Vec::new()))),
        }
    }
    parts.extend(stated.iter().filter(|part| !PARTS.contains(&part.name.as_str())).cloned());
    if parts.is_empty() {
        return xml;
    }
    let parameters = Node::new("sequenceParameters", "", parts);
    let behind = |node: &Node| ["waveformInformation", "userParameters"].contains(&node.name.as_str());
    let (last, first): (Vec<&Node>, Vec<&Node>) = (root.children().iter())
        .filter(|node| node.name != "sequenceParameters")
        .partition(|node| behind(node));
    let mut out = Xml::default();
    out.text.push_str("<?xml version=\"1.0\"?>\n");
    out.open("ismrmrdHeader xmlns=\"http://www.ismrm.org/ISMRMRD\"");
    first.into_iter().chain([&parameters]).chain(last).for_each(|node| write(&mut out, node));
    out.close("ismrmrdHeader");
    out.text
}

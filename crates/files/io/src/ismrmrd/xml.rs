//! XML as a tree of names and text, whatever prefixes, order and extras a writer chose.

use quick_xml::events::Event;
use quick_xml::reader::Reader;

/// Deeper or larger documents are no headers.
const DEEPEST: usize = 64;
const MOST_NODES: usize = 1_000_000;

/// An element: its name without prefix, its own text, its children. Attributes carry nothing in ISMRMRD.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) name: String,
    text: String,
    children: Vec<Node>,
}

impl Node {
    /// An element of these parts.
    pub(super) fn new(name: &str, text: &str, children: Vec<Self>) -> Self {
        Self { name: name.to_owned(), text: text.to_owned(), children }
    }

    /// Its children, in order.
    pub(super) fn children(&self) -> &[Node] {
        &self.children
    }

    /// The first child of that name.
    pub(super) fn child(&self, name: &str) -> Option<&Node> {
        self.children.iter().find(|c| c.name == name)
    }

    /// The node at the end of a path of names.
    pub(super) fn at(&self, path: &[&str]) -> Option<&Node> {
        path.iter().try_fold(self, |node, name| node.child(name))
    }

    /// Every child of that name.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Node> {
        self.children.iter().filter(move |c| c.name == name)
    }

    /// The text, without white space around it.
    pub(super) fn text(&self) -> &str {
        self.text.trim()
    }

    /// The text of the node at the end of a path, when there is any.
    pub(super) fn text_at(&self, path: &[&str]) -> Option<&str> {
        self.at(path).map(Node::text).filter(|t| !t.is_empty())
    }
}

/// Parses a document; the error is a sentence with the line.
pub(super) fn parse(xml: &str) -> Result<Node, String> {
    let mut reader = Reader::from_str(xml);
    let mut stack: Vec<Node> = Vec::new();
    let mut root: Option<Node> = None;
    let mut nodes = 0usize;
    loop {
        let event = reader
            .read_event()
            .map_err(|e| format!("{e} in line {}", line_of(xml, reader.error_position())))?;
        let here = |reader: &Reader<&[u8]>| line_of(xml, reader.buffer_position());
        match event {
            Event::Start(start) => {
                nodes += 1;
                if stack.len() >= DEEPEST || nodes > MOST_NODES {
                    return Err(format!("elements nested too deeply or too many in line {}", here(&reader)));
                }
                stack.push(Node { name: start.local_name().as_ref().to_owned(), ..Node::default() });
            }
            Event::Empty(empty) => {
                nodes += 1;
                if nodes > MOST_NODES {
                    return Err("too many elements".into());
                }
                let node = Node { name: empty.local_name().as_ref().to_owned(), ..Node::default() };
                close(node, &mut stack, &mut root);
            }
            Event::End(_) => {
                if let Some(node) = stack.pop() {
                    close(node, &mut stack, &mut root);
                }
            }
            Event::Text(text) => {
                if let Some(node) = stack.last_mut() {
                    node.text.push_str(&text.xml10_content());
                }
            }
            Event::CData(text) => {
                if let Some(node) = stack.last_mut() {
                    node.text.push_str(&text.xml10_content());
                }
            }
            Event::GeneralRef(reference) => {
                let c = match &*reference {
                    "lt" => Some('<'),
                    "gt" => Some('>'),
                    "amp" => Some('&'),
                    "apos" => Some('\''),
                    "quot" => Some('"'),
                    _ => {
                        reference.resolve_char_ref().map_err(|e| format!("{e} in line {}", here(&reader)))?
                    }
                };
                let c =
                    c.ok_or_else(|| format!("unknown entity &{}; in line {}", &*reference, here(&reader)))?;
                if let Some(node) = stack.last_mut() {
                    node.text.push(c);
                }
            }
            Event::Decl(_) | Event::PI(_) | Event::DocType(_) | Event::Comment(_) => {}
            Event::Eof => break,
        }
    }
    match (stack.pop(), root) {
        (Some(open), _) => Err(format!("the text ends inside <{}>", open.name)),
        (None, Some(root)) => Ok(root),
        (None, None) => Err("no element in it".into()),
    }
}

fn close(node: Node, stack: &mut [Node], root: &mut Option<Node>) {
    match stack.last_mut() {
        Some(parent) => parent.children.push(node),
        None => {
            root.get_or_insert(node);
        }
    }
}

fn line_of(xml: &str, position: u64) -> usize {
    let end = usize::try_from(position).unwrap_or(usize::MAX).min(xml.len());
    1 + xml.as_bytes()[..end].iter().filter(|b| **b == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_entities_comments_and_order_do_not_matter() {
        let tree = parse(
            "<?xml version='1.0' encoding='ascii'?><!-- a --><m:h xmlns:m='u'><m:a q='1'>x &amp; &#233;<!-- b -->y</m:a>\
             <b/><a><![CDATA[<z>]]></a></m:h>",
        )
        .unwrap();
        assert_eq!(tree.name, "h");
        let texts: Vec<_> = tree.all("a").map(Node::text).collect();
        assert_eq!(texts, ["x & éy", "<z>"]);
        assert!(tree.child("b").is_some() && tree.at(&["a", "b"]).is_none());
    }

    #[test]
    fn broken_documents_are_refused_with_a_sentence() {
        for bad in
            ["", "   ", "<a>", "<a></b>", "<a>&nothing;</a>", "plain", "<a><b></a>", "<a", "<a>&#xD800;</a>"]
        {
            assert!(parse(bad).is_err(), "{bad}");
        }
        let error = parse("<a>\n<b>\n</c>\n</a>").unwrap_err();
        assert!(error.contains("line 3"), "{error}");
        assert!(parse(&"<a>".repeat(100_000)).is_err());
    }
}

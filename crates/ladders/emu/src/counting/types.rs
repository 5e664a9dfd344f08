//! The structures of a program, from its debug information: how they are aligned. A compiler for GPUs reads a
//! structure by accesses that are as wide as its type is aligned.

use std::collections::BTreeMap;

use gimli::{AttributeValue, Dwarf, Reader as _, UnitOffset, constants};

use super::symbols::Bytes;

/// Sizes that the runtime knows alignments of, as in `counting.cc`.
pub(crate) const SIZES: usize = 257;

/// The structures of a program.
#[derive(Debug, Default)]
pub(crate) struct Types {
    structures: Vec<Structure>,
}

#[derive(Debug)]
struct Structure {
    bytes: u64,
    align: u64,
    members: Vec<String>,
}

/// A type as the debug information has it.
#[derive(Debug, Default)]
struct Entry {
    tag: u16,
    bytes: u64,
    /// As the program says; 0 where it does not.
    align: u64,
    inner: Option<UnitOffset>,
    members: Vec<(String, Option<UnitOffset>)>,
}

impl Types {
    pub(crate) fn of(dwarf: &Dwarf<Bytes>) -> gimli::Result<Self> {
        let mut types = Self::default();
        let mut headers = dwarf.units();
        while let Some(header) = headers.next()? {
            let unit = dwarf.unit(header)?;
            let mut entries: BTreeMap<UnitOffset, Entry> = BTreeMap::new();
            // The structures around the present entry, by depth.
            let mut around: Vec<(isize, UnitOffset)> = Vec::new();
            let mut cursor = unit.entries();
            while let Some(die) = cursor.next_dfs()? {
                let depth = die.depth();
                around.retain(|(own, _)| *own < depth);
                let number = |name| die.attr_value(name).and_then(|value| value.udata_value()).unwrap_or(0);
                let inner = match die.attr_value(constants::DW_AT_type) {
                    Some(AttributeValue::UnitRef(offset)) => Some(offset),
                    _ => None,
                };
                let name = match die.attr_value(constants::DW_AT_name) {
                    Some(value) => dwarf.attr_string(&unit, value)?.to_string_lossy()?.into_owned(),
                    None => String::new(),
                };
                if [constants::DW_TAG_member, constants::DW_TAG_inheritance].contains(&die.tag()) {
                    let parent = around.last().filter(|(own, _)| own + 1 == depth);
                    if let Some(owner) = parent.and_then(|(_, offset)| entries.get_mut(offset)) {
                        owner.members.push((name, inner));
                    }
                    continue;
                }
                let entry = Entry {
                    tag: die.tag().0,
                    bytes: number(constants::DW_AT_byte_size),
                    align: number(constants::DW_AT_alignment),
                    inner,
                    members: Vec::new(),
                };
                around.push((depth, die.offset()));
                entries.insert(die.offset(), entry);
            }
            for entry in entries.values().filter(|entry| is_structure(entry.tag) && entry.bytes > 0) {
                types.structures.push(Structure {
                    bytes: entry.bytes,
                    align: alignment(&entries, entry, 0),
                    members: entry.members.iter().map(|(name, _)| name.clone()).collect(),
                });
            }
        }
        Ok(types)
    }

    /// How structures of each size are aligned; 0 where there is none. Of 16 bytes the largest alignment that
    /// one of them has, otherwise the smallest.
    pub(crate) fn alignments(&self) -> [u8; SIZES] {
        let mut alignments = [0; SIZES];
        for Structure { bytes, align, .. } in &self.structures {
            let Some(own) = alignments.get_mut(*bytes as usize) else { continue };
            let align = (*align).min(16) as u8;
            *own = match (*own, *bytes) {
                (0, _) => align,
                (other, 16) => align.max(other),
                (other, _) => align.min(other),
            };
        }
        alignments
    }

    /// Whether accesses to these members of one thing are one of `width` bytes where they fill these: where
    /// all structures with such members and sizes are aligned so.
    pub(crate) fn joined(&self, members: &[&str], width: u64) -> bool {
        let has = |s: &&Structure| members.iter().all(|name| s.members.iter().any(|own| own == name));
        let mut structures = self.structures.iter().filter(has).filter(|s| s.bytes % width == 0).peekable();
        structures.peek().is_some() && structures.all(|s| s.align >= width)
    }
}

fn is_structure(tag: u16) -> bool {
    [constants::DW_TAG_structure_type, constants::DW_TAG_class_type, constants::DW_TAG_union_type]
        .iter()
        .any(|own| own.0 == tag)
}

fn alignment(entries: &BTreeMap<UnitOffset, Entry>, entry: &Entry, depth: u32) -> u64 {
    let aligned = |offset: &Option<UnitOffset>| match offset.and_then(|offset| entries.get(&offset)) {
        // No type lies this deep in others; a damaged file may have circles.
        Some(other) if depth < 40 => alignment(entries, other, depth + 1),
        _ => 1,
    };
    if entry.align > 0 {
        return entry.align;
    }
    if is_structure(entry.tag) {
        return entry.members.iter().map(|(_, offset)| aligned(offset)).max().unwrap_or(1);
    }
    // Pointers have a size of their own.
    if entry.inner.is_some() && entry.bytes == 0 {
        return aligned(&entry.inner);
    }
    entry.bytes.clamp(1, 16)
}

//! The graph of a kernel's blocks of code, and where lanes that part meet again.

use std::collections::BTreeSet;

/// The end of a thread, as a block.
pub(crate) const END: u32 = u32::MAX;

/// Which block follows which, as threads have gone.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    next: Vec<BTreeSet<u32>>,
    /// Blocks in which something is done that counts.
    busy: Vec<bool>,
}

impl Graph {
    /// Notes that `to` follows `from`.
    pub(crate) fn edge(&mut self, from: u32, to: u32) {
        let needed = from.max(if to == END { from } else { to }) as usize + 1;
        if self.next.len() < needed {
            self.next.resize_with(needed, BTreeSet::new);
        }
        self.next[from as usize].insert(to);
    }

    /// Notes that something is done in a block.
    pub(crate) fn busy(&mut self, block: u32) {
        if self.busy.len() <= block as usize {
            self.busy.resize(block as usize + 1, false);
        }
        self.busy[block as usize] = true;
    }

    fn ways(&self, next: &BTreeSet<u32>, end: usize) -> Vec<usize> {
        next.iter().map(|&to| if to == END { end } else { to as usize }).collect()
    }

    /// The blocks from which a thread only goes on to its end: where a function's returns come together.
    fn ending(&self) -> Vec<bool> {
        let mut ending = vec![false; self.next.len()];
        loop {
            let ends = |block: usize| {
                let busy = self.busy.get(block).copied().unwrap_or(false);
                !busy && self.next[block].iter().all(|&to| to == END || ending[to as usize])
            };
            let more: Vec<usize> = (0..ending.len()).filter(|&block| !ending[block] && ends(block)).collect();
            if more.is_empty() {
                return ending;
            }
            more.into_iter().for_each(|block| ending[block] = true);
        }
    }

    /// For each block its immediate post-dominator: the first block that every way from it to the end goes
    /// through.
    ///
    /// A thread that returns early does not keep the others from meeting: a block that may go on or end
    /// counts as one that goes on, unless it could then never end.
    pub(crate) fn meetings(&self) -> Vec<u32> {
        let count = self.next.len();
        let ending = self.ending();
        let ends = |to: u32| to == END || ending[to as usize];
        let mut next: Vec<Vec<usize>> = self
            .next
            .iter()
            .map(|next| {
                let on: Vec<usize> = next.iter().filter(|&&to| !ends(to)).map(|&to| to as usize).collect();
                if on.is_empty() { self.ways(next, count) } else { on }
            })
            .collect();
        // Blocks that no longer reach the end get their way to it back.
        loop {
            let reaching = reaching(&next, count);
            let lost: Vec<usize> = (0..count)
                .filter(|&block| !reaching[block] && self.next[block].iter().any(|&to| ends(to)))
                .collect();
            if lost.is_empty() {
                break;
            }
            lost.into_iter().for_each(|block| next[block] = self.ways(&self.next[block], count));
        }
        dominators(&next, count)
    }
}

fn before(next: &[Vec<usize>], end: usize) -> Vec<Vec<usize>> {
    let mut before = vec![Vec::new(); end + 1];
    for (from, targets) in next.iter().enumerate() {
        for &to in targets {
            before[to].push(from);
        }
    }
    before
}

/// The blocks from which the end can be reached.
fn reaching(next: &[Vec<usize>], end: usize) -> Vec<bool> {
    let before = before(next, end);
    let (mut seen, mut left) = (vec![false; end + 1], vec![end]);
    seen[end] = true;
    while let Some(block) = left.pop() {
        for &from in &before[block] {
            if !std::mem::replace(&mut seen[from], true) {
                left.push(from);
            }
        }
    }
    seen
}

/// Immediate dominators from the end backwards (Cooper, Harvey, Kennedy: "A simple, fast dominance
/// algorithm", 2001).
fn dominators(next: &[Vec<usize>], end: usize) -> Vec<u32> {
    const NONE: usize = usize::MAX;
    let before = before(next, end);
    // Post-order from the end, without recursion.
    let (mut order, mut place) = (Vec::new(), vec![NONE; end + 1]);
    let mut seen = vec![false; end + 1];
    let mut stack = vec![(end, 0)];
    seen[end] = true;
    while let Some((block, child)) = stack.pop() {
        if let Some(&from) = before[block].get(child) {
            stack.push((block, child + 1));
            if !std::mem::replace(&mut seen[from], true) {
                stack.push((from, 0));
            }
        } else {
            place[block] = order.len();
            order.push(block);
        }
    }
    let mut meets = vec![NONE; end + 1];
    meets[end] = end;
    let mut changed = true;
    while changed {
        changed = false;
        for &block in order.iter().rev().filter(|&&block| block != end) {
            let mut found = NONE;
            for &to in next[block].iter().filter(|&&to| meets[to] != NONE) {
                if found == NONE {
                    found = to;
                    continue;
                }
                let (mut a, mut b) = (found, to);
                while a != b {
                    while place[a] < place[b] {
                        a = meets[a];
                    }
                    while place[b] < place[a] {
                        b = meets[b];
                    }
                }
                found = a;
            }
            if meets[block] != found {
                meets[block] = found;
                changed = true;
            }
        }
    }
    let named = |&block: &usize| if block >= end { END } else { block as u32 };
    meets[..end].iter().map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meetings(edges: &[(u32, u32)]) -> Vec<u32> {
        let mut graph = Graph::default();
        (0..9).for_each(|block| graph.busy(block));
        edges.iter().for_each(|&(from, to)| graph.edge(from, to));
        graph.meetings()
    }

    #[test]
    fn lanes_meet_behind_conditions_and_loops() {
        // 0 → if 1 else 2 → 3, and a loop 3 ⇄ 4 with the way out to 5.
        let found = meetings(&[(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (4, 3), (3, 5), (5, END)]);
        assert_eq!(found, [3, 3, 3, 5, 3, END]);
    }

    #[test]
    fn early_ends_do_not_keep_others_apart() {
        // 0 → if 1 { if (…) return; 2 } 3
        assert_eq!(meetings(&[(0, 1), (0, 3), (1, END), (1, 2), (2, 3), (3, END)]), [3, 2, 3, END]);
        // The same, where returns go through block 4 to 5, in which nothing is done.
        let mut graph = Graph::default();
        (0..4).for_each(|block| graph.busy(block));
        for (from, to) in [(0, 1), (0, 3), (1, 4), (1, 2), (2, 3), (3, 5), (4, 5), (5, END)] {
            graph.edge(from, to);
        }
        assert_eq!(graph.meetings(), [3, 2, 3, 5, 5, END]);
        // A loop that only a return leaves.
        assert_eq!(meetings(&[(0, 1), (1, 2), (2, 1), (1, END)]), [1, END, 1]);
    }
}

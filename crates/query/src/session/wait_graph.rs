//! A graph of sessions that wait for each other, and the search for its cycles.

use std::time::Instant;

/// Nodes are the sessions, and behind them groups: sessions that wait for the same others.
pub(super) struct WaitGraph {
    sessions: usize,
    edges: Vec<Vec<usize>>,
    is_gone: Vec<bool>,
}

/// The most waits that one search ends.
const VICTIMS_MAX: usize = 64;

impl WaitGraph {
    pub fn new(sessions: usize) -> WaitGraph {
        WaitGraph { sessions, edges: vec![Vec::new(); sessions], is_gone: vec![false; sessions] }
    }

    pub fn add_edge(&mut self, waiter: usize, blocker: usize) {
        self.edges[waiter].push(blocker);
    }

    /// Adds edges from each of the waiters to each of the blockers.
    pub fn add_group(&mut self, waiters: &[usize], blockers: &[usize]) {
        let node = self.edges.len();
        self.edges.push(blockers.to_vec());
        self.is_gone.push(false);
        waiters.iter().for_each(|waiter| self.edges[*waiter].push(node));
    }

    /// Returns sessions without whose waits there is no cycle. `since` tells when a session began to wait, if its wait can be ended; of those in a cycle the youngest wait is chosen.
    pub fn victims(&mut self, since: impl Fn(usize) -> Option<Instant>) -> Vec<usize> {
        let mut victims = Vec::new();
        while victims.len() < VICTIMS_MAX {
            let mut is_found = false;
            for cycle in self.cycles() {
                let youngest =
                    cycle.into_iter().filter(|at| *at < self.sessions).filter_map(|at| Some((since(at)?, at)));
                if let Some((_, victim)) = youngest.max() {
                    self.is_gone[victim] = true;
                    victims.push(victim);
                    is_found = true;
                }
            }
            if !is_found {
                break;
            }
        }
        victims
    }

    /// Returns the strongly connected components of more than one node: Tarjan's algorithm, with a stack of its own.
    fn cycles(&self) -> Vec<Vec<usize>> {
        const UNSEEN: usize = usize::MAX;
        let count = self.edges.len();
        let (mut index, mut low) = (vec![UNSEEN; count], vec![0; count]);
        let (mut is_on_stack, mut stack, mut path) = (vec![false; count], Vec::new(), Vec::<(usize, usize)>::new());
        let (mut next, mut found) = (0, Vec::new());
        for root in 0..self.sessions {
            if index[root] != UNSEEN || self.edges[root].is_empty() || self.is_gone[root] {
                continue;
            }
            path.push((root, 0));
            while let Some((node, edge)) = path.pop() {
                if edge == 0 {
                    (index[node], low[node]) = (next, next);
                    next += 1;
                    stack.push(node);
                    is_on_stack[node] = true;
                }
                if let Some(&to) = self.edges[node].get(edge) {
                    path.push((node, edge + 1));
                    if !self.is_gone[to] && index[to] == UNSEEN {
                        path.push((to, 0));
                    } else if !self.is_gone[to] && is_on_stack[to] {
                        low[node] = low[node].min(index[to]);
                    }
                    continue;
                }
                if let Some(&(parent, _)) = path.last() {
                    low[parent] = low[parent].min(low[node]);
                }
                if low[node] == index[node] {
                    let start = stack.iter().rposition(|one| *one == node).unwrap_or(0);
                    let component = stack.split_off(start);
                    component.iter().for_each(|one| is_on_stack[*one] = false);
                    if component.len() > 1 {
                        found.push(component);
                    }
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn victims(graph: &mut WaitGraph) -> Vec<usize> {
        let start = Instant::now();
        let mut found = graph.victims(|at| start.checked_add(std::time::Duration::from_millis(at as u64)));
        found.sort_unstable();
        found
    }

    #[test]
    fn the_youngest_wait_of_each_cycle_ends() {
        let mut graph = WaitGraph::new(8);
        // 0 -> 1 -> 2 -> 0, and 3 waits for it; 4 <-> 5 through a group; 6 -> 7 is none.
        [(0, 1), (1, 2), (2, 0), (3, 0), (6, 7)].into_iter().for_each(|(from, to)| graph.add_edge(from, to));
        graph.add_group(&[4], &[5, 7]);
        graph.add_group(&[5], &[4]);
        assert_eq!(victims(&mut graph), [2, 5]);
    }

    #[test]
    fn a_crowd_behind_one_holder_is_no_cycle_until_the_holder_waits_for_one_of_it() {
        let mut graph = WaitGraph::new(10_001);
        let crowd: Vec<usize> = (1..=10_000).collect();
        graph.add_group(&crowd, &[0]);
        assert!(victims(&mut graph).is_empty());
        graph.add_edge(0, 77);
        assert_eq!(victims(&mut graph), [77]);
    }

    #[test]
    fn cycles_that_share_sessions_are_all_broken() {
        let mut graph = WaitGraph::new(4);
        for waiter in 0..4 {
            let others: Vec<usize> = (0..4).filter(|other| *other != waiter).collect();
            graph.add_group(&[waiter], &others);
        }
        assert_eq!(victims(&mut graph), [1, 2, 3], "one goes on");
    }
}

//! The four formats of EXPLAIN: text as people read it, and JSON, YAML and XML with the same properties under PostgreSQL's names.

use std::fmt::Write as _;
use std::time::Duration;

use engine::ThreadCounts;
use query::exec::instrumentation::Measure;

use crate::explain::{Fact, PlanItem};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Form {
    #[default]
    Text,
    Json,
    Yaml,
    Xml,
}

/// A plan, and the facts that are written beside it.
pub(crate) struct Report {
    pub form: Form,
    pub costs: bool,
    pub timing: bool,
    /// Pages are shown.
    pub buffers: bool,
    /// WAL records are shown.
    pub wal: bool,
    pub plan: PlanItem,
    /// The pages that planning has asked for.
    pub planned: Option<ThreadCounts>,
    /// Settings that differ from their defaults and that the planner reads; `None` unless they are asked for.
    pub settings: Option<Vec<(String, String)>>,
    pub planning: Option<Duration>,
    pub execution: Option<Duration>,
}

/// A value of the structured formats.
enum Tree {
    Text(String),
    Bare(String),
    List(Vec<String>),
    Group(Vec<(&'static str, Tree)>),
    /// A list of groups: the name of each in XML.
    Groups(&'static str, Vec<Tree>),
}

/// Returns the lines of a report.
pub(crate) fn written(report: &Report) -> Vec<String> {
    let whole = || {
        let mut group = vec![("Plan", report.tree(&report.plan, true))];
        if let Some(settings) = report.settings.as_ref().filter(|settings| !settings.is_empty()) {
            let settings = settings.iter().map(|(name, value)| format!("{name} = {value}")).collect();
            group.push(("Settings", Tree::List(settings)));
        }
        if let Some(planned) = &report.planned {
            group.push(("Planning", Tree::Group(pages(planned))));
        }
        if let Some(planning) = report.planning {
            group.push(("Planning Time", Tree::Bare(millis(planning))));
        }
        if let Some(execution) = report.execution {
            group.push(("Execution Time", Tree::Bare(millis(execution))));
        }
        Tree::Group(group)
    };
    let text = match report.form {
        Form::Text => return report.text(),
        Form::Json => {
            let mut out = "[\n  ".to_owned();
            json(&whole(), 1, &mut out);
            out + "\n]"
        }
        Form::Yaml => {
            let mut out = "- ".to_owned();
            yaml(&whole(), 1, true, &mut out);
            out
        }
        Form::Xml => {
            let mut out = "<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n".to_owned();
            xml("Query", &whole(), 1, &mut out);
            out + "</explain>"
        }
    };
    // One value: clients read it as a whole.
    vec![text]
}

/// Returns the properties of pages.
fn pages(counts: &ThreadCounts) -> Vec<(&'static str, Tree)> {
    let ThreadCounts { page_hits, page_reads, wal_records: _, wal_images: _, wal_bytes: _ } = counts;
    [("Shared Hit Blocks", page_hits), ("Shared Read Blocks", page_reads)]
        .map(|(name, count)| (name, Tree::Bare(count.to_string())))
        .into()
}

/// Returns the properties of WAL records.
fn wal(counts: &ThreadCounts) -> Vec<(&'static str, Tree)> {
    let ThreadCounts { page_hits: _, page_reads: _, wal_records, wal_images, wal_bytes } = counts;
    [("WAL Records", wal_records), ("WAL FPI", wal_images), ("WAL Bytes", wal_bytes)]
        .map(|(name, count)| (name, Tree::Bare(count.to_string())))
        .into()
}

/// Returns the figures that are not zero, after a word; `None` if all are zero.
fn figures(word: &str, figures: &[(&str, u64)]) -> Option<String> {
    let shown: Vec<String> =
        figures.iter().filter(|(_, count)| *count > 0).map(|(name, count)| format!("{name}={count}")).collect();
    (!shown.is_empty()).then(|| format!("{word} {}", shown.join(" ")))
}

fn pages_line(counts: &ThreadCounts) -> Option<String> {
    figures("Buffers: shared", &[("hit", counts.page_hits), ("read", counts.page_reads)])
}

fn wal_line(counts: &ThreadCounts) -> Option<String> {
    let ThreadCounts { page_hits: _, page_reads: _, wal_records, wal_images, wal_bytes } = *counts;
    figures("WAL:", &[("records", wal_records), ("fpi", wal_images), ("bytes", wal_bytes)])
}

fn millis(time: Duration) -> String {
    format!("{:.3}", time.as_secs_f64() * 1000.0)
}

/// Returns a time per loop, in milliseconds.
fn each(measure: &Measure, time: Duration) -> String {
    format!("{:.3}", time.as_secs_f64() * 1000.0 / measure.loops.max(1) as f64)
}

/// Returns the rows per loop, as PostgreSQL rounds them.
fn rows_each(measure: &Measure) -> String {
    format!("{:.0}", measure.rows as f64 / measure.loops.max(1) as f64)
}

impl Report {
    fn text(&self) -> Vec<String> {
        let mut lines = Vec::new();
        self.item(&self.plan, 0, &mut lines);
        if let Some(settings) = self.settings.as_ref().filter(|settings| !settings.is_empty()) {
            let settings: Vec<String> = settings.iter().map(|(name, value)| format!("{name} = '{value}'")).collect();
            lines.push(format!("Settings: {}", settings.join(", ")));
        }
        if let Some(line) = self.planned.as_ref().and_then(pages_line) {
            lines.extend(["Planning:".to_owned(), format!("  {line}")]);
        }
        if let Some(planning) = self.planning {
            lines.push(format!("Planning Time: {} ms", millis(planning)));
        }
        if let Some(execution) = self.execution {
            lines.push(format!("Execution Time: {} ms", millis(execution)));
        }
        lines
    }

    /// Appends the lines of an item; `indent` is that of its title.
    fn item(&self, item: &PlanItem, indent: usize, lines: &mut Vec<String>) {
        let mut line = match indent {
            0 => String::new(),
            indent => " ".repeat(indent - 4) + "->  ",
        };
        line.push_str(&item.title);
        if self.costs {
            let rows = item.rows.map(|rows| format!("rows={}", rows.round().max(1.0)));
            match (item.cost, rows) {
                (Some(cost), Some(rows)) => {
                    let _ = write!(line, "  (cost={cost:.2} {rows})");
                }
                (None, Some(rows)) => {
                    let _ = write!(line, "  ({rows})");
                }
                _ => {}
            }
        }
        if let Some(measure) = &item.measure {
            line.push_str(&self.actual(measure));
        }
        lines.push(line);
        let own = if indent == 0 { 2 } else { indent + 2 };
        for (name, fact) in &item.details {
            let text = match fact {
                Fact::Text(text) => text.clone(),
                Fact::List(list) => list.join(", "),
            };
            lines.push(format!("{}{name}: {text}", " ".repeat(own)));
        }
        if let Some(measure) = &item.measure {
            let pages = self.buffers.then(|| pages_line(&measure.counts)).flatten();
            let wal = self.wal.then(|| wal_line(&measure.counts)).flatten();
            lines.extend(pages.into_iter().chain(wal).map(|line| format!("{}{line}", " ".repeat(own))));
        }
        for input in &item.inputs {
            let mut at = own + 4;
            if let Some(subplan) = &input.subplan {
                lines.push(format!("{}{subplan}", " ".repeat(own)));
                at += 2;
            }
            self.item(input, at, lines);
        }
    }

    fn actual(&self, measure: &Measure) -> String {
        if measure.loops == 0 {
            return " (never executed)".to_owned();
        }
        let times = match self.timing {
            true => format!("time={}..{} ", each(measure, measure.first), each(measure, measure.time)),
            false => String::new(),
        };
        format!(" (actual {times}rows={} loops={})", rows_each(measure), measure.loops)
    }

    fn tree(&self, item: &PlanItem, is_top: bool) -> Tree {
        let mut group = vec![("Node Type", Tree::Text(item.kind.to_owned()))];
        if !is_top {
            group.push(("Parent Relationship", Tree::Text(item.relationship.to_owned())));
        }
        if let Some(subplan) = &item.subplan {
            group.push(("Subplan Name", Tree::Text(subplan.clone())));
        }
        group.push(("Parallel Aware", Tree::Bare("false".to_owned())));
        group.push(("Async Capable", Tree::Bare("false".to_owned())));
        group.extend(item.facts.iter().map(|(name, fact)| (*name, tree_of(fact))));
        if self.costs {
            if let Some(cost) = item.cost {
                group.push(("Total Cost", Tree::Bare(format!("{cost:.2}"))));
            }
            if let Some(rows) = item.rows {
                group.push(("Plan Rows", Tree::Bare(format!("{}", rows.round().max(1.0)))));
            }
        }
        if let Some(measure) = &item.measure {
            if self.timing {
                group.push(("Actual Startup Time", Tree::Bare(each(measure, measure.first))));
                group.push(("Actual Total Time", Tree::Bare(each(measure, measure.time))));
            }
            group.push(("Actual Rows", Tree::Bare(rows_each(measure))));
            group.push(("Actual Loops", Tree::Bare(measure.loops.to_string())));
        }
        group.extend(item.details.iter().map(|(name, fact)| (*name, tree_of(fact))));
        if let Some(measure) = &item.measure {
            group.extend(if self.buffers { pages(&measure.counts) } else { Vec::new() });
            group.extend(if self.wal { wal(&measure.counts) } else { Vec::new() });
        }
        if !item.inputs.is_empty() {
            let inputs = item.inputs.iter().map(|input| self.tree(input, false)).collect();
            group.push(("Plans", Tree::Groups("Plan", inputs)));
        }
        Tree::Group(group)
    }
}

fn tree_of(fact: &Fact) -> Tree {
    match fact {
        Fact::Text(text) => Tree::Text(text.clone()),
        Fact::List(list) => Tree::List(list.clone()),
    }
}

/// Appends a text in JSON's quotes. YAML's double quotes are the same.
fn quote(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if u32::from(c) < 32 => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

fn json(tree: &Tree, depth: usize, out: &mut String) {
    let indent = |depth: usize| "  ".repeat(depth);
    match tree {
        Tree::Text(text) => quote(text, out),
        Tree::Bare(text) => out.push_str(text),
        Tree::List(list) => {
            out.push('[');
            for (nth, text) in list.iter().enumerate() {
                out.push_str(if nth == 0 { "" } else { ", " });
                quote(text, out);
            }
            out.push(']');
        }
        Tree::Group(group) => {
            out.push('{');
            for (nth, (name, value)) in group.iter().enumerate() {
                out.push_str(if nth == 0 { "\n" } else { ",\n" });
                out.push_str(&indent(depth + 1));
                quote(name, out);
                out.push_str(": ");
                json(value, depth + 1, out);
            }
            out.push('\n');
            out.push_str(&indent(depth));
            out.push('}');
        }
        Tree::Groups(_, list) => {
            out.push('[');
            for (nth, group) in list.iter().enumerate() {
                out.push_str(if nth == 0 { "\n" } else { ",\n" });
                out.push_str(&indent(depth + 1));
                json(group, depth + 1, out);
            }
            out.push('\n');
            out.push_str(&indent(depth));
            out.push(']');
        }
    }
}

/// Appends a value. `is_open`: the first line is already indented.
fn yaml(tree: &Tree, depth: usize, is_open: bool, out: &mut String) {
    let indent = "  ".repeat(depth);
    match tree {
        Tree::Text(text) => quote(text, out),
        Tree::Bare(text) => out.push_str(text),
        Tree::List(list) => {
            for text in list {
                out.push('\n');
                out.push_str(&indent);
                out.push_str("- ");
                quote(text, out);
            }
        }
        Tree::Group(group) => {
            for (nth, (name, value)) in group.iter().enumerate() {
                if nth > 0 || !is_open {
                    out.push('\n');
                    out.push_str(&indent);
                }
                let _ = write!(out, "{name}: ");
                yaml(value, depth + 1, false, out);
            }
        }
        Tree::Groups(_, list) => {
            for group in list {
                out.push('\n');
                out.push_str(&indent);
                out.push_str("- ");
                yaml(group, depth + 1, true, out);
            }
        }
    }
}

fn xml(name: &str, tree: &Tree, depth: usize, out: &mut String) {
    let (indent, tag) = ("  ".repeat(depth), name.replace(' ', "-"));
    match tree {
        Tree::Text(text) | Tree::Bare(text) => {
            let _ = writeln!(out, "{indent}<{tag}>{}</{tag}>", escaped(text));
        }
        Tree::List(list) => {
            let _ = writeln!(out, "{indent}<{tag}>");
            for text in list {
                let _ = writeln!(out, "{indent}  <PlanItem>{}</PlanItem>", escaped(text));
            }
            let _ = writeln!(out, "{indent}</{tag}>");
        }
        Tree::Group(group) => {
            let _ = writeln!(out, "{indent}<{tag}>");
            group.iter().for_each(|(name, value)| xml(name, value, depth + 1, out));
            let _ = writeln!(out, "{indent}</{tag}>");
        }
        Tree::Groups(each, list) => {
            let _ = writeln!(out, "{indent}<{tag}>");
            list.iter().for_each(|group| xml(each, group, depth + 1, out));
            let _ = writeln!(out, "{indent}</{tag}>");
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('\r', "&#x0d;")
}

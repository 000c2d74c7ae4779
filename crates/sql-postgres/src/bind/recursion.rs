//! WITH RECURSIVE: the order in which its queries are bound, and the places in which one may refer to itself.
//!
//! The syntax tree is walked before anything is bound, as PostgreSQL's `parse_cte.c` does: a query may be read by one that is written before it, and an error of a reference comes before those of columns
//! and types. A name is a reference to the nearest WITH around it that has it.

use std::collections::{BTreeSet, HashMap};

use syntax::postgres::tree::{
    self, CommonTableExpr, ConflictAction, Distinct, Expr, FromItem, GroupItem, IndexKey, InsertStmt, JoinKind,
    JoinQual, MergeAction, RangeVar, ResTarget, Select, SelectBody, SelectStmt, SetClause, SetLink, SetOp, Statement,
    TableRef, WithClause,
};

use crate::bind::walk::{children, of_window, subquery_of};
use crate::error::{PgError, state};

/// A query of WITH, and whether it refers to itself.
pub type OrderedCommon<'t> = (&'t CommonTableExpr, bool);

/// An error and its byte in the text.
type RecursionRefusal = Box<(PgError, Option<u32>)>;

/// A place in a recursive query, by what it is for a reference to the query itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReferencePlace {
    Permitted,
    /// A query of the recursive query's own WITH.
    OwnWith,
    NonRecursiveTerm,
    Subquery,
    OuterJoin,
    Intersect,
    Except,
}

impl ReferencePlace {
    fn in_words(self) -> &'static str {
        match self {
            ReferencePlace::Permitted => "",
            ReferencePlace::NonRecursiveTerm => "its non-recursive term",
            ReferencePlace::Subquery | ReferencePlace::OwnWith => "a subquery",
            ReferencePlace::OuterJoin => "an outer join",
            ReferencePlace::Intersect => "INTERSECT",
            ReferencePlace::Except => "EXCEPT",
        }
    }

    /// Returns the place of a part of it, which only a permitted place makes another.
    fn within(self, part: ReferencePlace) -> ReferencePlace {
        if self == ReferencePlace::Permitted { part } else { self }
    }
}

/// A reference to a query of the list, by its number.
struct CommonReference {
    number: usize,
    at: u32,
    place: ReferencePlace,
}

/// Returns the queries in the order in which each is behind those that it reads.
///
/// # Errors
///
/// Queries that read each other, or a reference of a query to itself in a place where there must be none.
pub fn ordered(tables: &[CommonTableExpr]) -> Result<Vec<OrderedCommon<'_>>, RecursionRefusal> {
    let names: HashMap<&str, usize> =
        tables.iter().enumerate().map(|(number, table)| (&*table.name.value, number)).collect();
    let references: Vec<Vec<CommonReference>> = tables.iter().map(|table| references_of(table, &names)).collect();
    let mut missing = vec![0; tables.len()];
    let mut readers = vec![Vec::new(); tables.len()];
    for (reader, references) in references.iter().enumerate() {
        let mut read: Vec<usize> = references.iter().map(|reference| reference.number).collect();
        read.sort_unstable();
        read.dedup();
        for number in read.into_iter().filter(|number| *number != reader) {
            missing[reader] += 1;
            readers[number].push(reader);
        }
    }
    // The first one that is ready changes its place with the first that is left, as in PostgreSQL: views show this order.
    let mut order: Vec<usize> = (0..tables.len()).collect();
    let mut places = order.clone();
    let mut ready: BTreeSet<usize> = order.iter().copied().filter(|number| missing[*number] == 0).collect();
    for at in 0..order.len() {
        let Some(found) = ready.pop_first() else {
            let text = "mutual recursion between WITH items is not implemented";
            let error = PgError::new(state::FEATURE_NOT_SUPPORTED, text);
            return Err(Box::new((error, Some(tables[order[at]].name.at.0))));
        };
        order.swap(at, found);
        places[order[found]] = found;
        for reader in &readers[order[at]] {
            missing[*reader] -= 1;
            if missing[*reader] == 0 {
                ready.insert(places[*reader]);
            }
        }
    }
    order
        .into_iter()
        .map(|number| {
            let is_recursive = references[number].iter().any(|reference| reference.number == number);
            if is_recursive {
                check(&tables[number], number, &references[number])?;
            }
            Ok((&tables[number], is_recursive))
        })
        .collect()
}

/// Refuses a query that refers to itself and has not the form of one, or does so in a place where it must not.
fn check(table: &CommonTableExpr, number: usize, references: &[CommonReference]) -> Result<(), RecursionRefusal> {
    let name = &table.name.value;
    let invalid = |text: String, at: u32| Err(Box::new((PgError::new(state::INVALID_RECURSION, text), Some(at))));
    let Statement::Select(query) = &table.statement else {
        return invalid(
            format!("recursive query \"{name}\" must not contain data-modifying statements"),
            table.name.at.0,
        );
    };
    if terms(query).is_none() {
        let text =
            format!("recursive query \"{name}\" does not have the form non-recursive-term UNION [ALL] recursive-term");
        return invalid(text, table.name.at.0);
    }
    let mut own = references.iter().filter(|reference| reference.number == number).peekable();
    let refused = |reference: &CommonReference| {
        let place = reference.place.in_words();
        invalid(format!("recursive reference to query \"{name}\" must not appear within {place}"), reference.at)
    };
    if let Some(first) = own.next_if(|reference| reference.place == ReferencePlace::OwnWith) {
        return refused(first);
    }
    let unsupported = |clause: &str, at: Option<u32>| {
        let text = format!("{clause} in a recursive query is not implemented");
        Err(Box::new((PgError::new(state::FEATURE_NOT_SUPPORTED, text), at)))
    };
    if let Some(item) = query.order_by.first() {
        return unsupported("ORDER BY", Some(item.expr.span.start));
    }
    let limit = query.limit.as_deref();
    if let Some(offset) = limit.and_then(|limit| limit.offset.as_ref()) {
        return unsupported("OFFSET", Some(offset.span.start));
    }
    if let Some(count) = limit.and_then(|limit| limit.count.as_ref()) {
        return unsupported("LIMIT", Some(count.span.start));
    }
    if !query.locking.is_empty() {
        return unsupported("FOR UPDATE/SHARE", None);
    }
    let mut count = 0;
    for reference in own {
        if reference.place != ReferencePlace::Permitted {
            return refused(reference);
        }
        count += 1;
        if count > 1 {
            let text = format!("recursive reference to query \"{name}\" must not appear more than once");
            return invalid(text, reference.at);
        }
    }
    Ok(())
}

/// Returns the first term of a recursive query, its further operands, and the recursive term.
pub fn terms(query: &SelectStmt) -> Option<(&SelectBody, &[SetLink], &SetLink)> {
    let SelectBody::SetOperations { first, links } = &query.body else { return None };
    let (last, seed) = links.split_last().filter(|(last, _)| last.op == SetOp::Union)?;
    Some((first, seed, last))
}

/// Returns the references in a query of WITH to those of its list, in the order of the walk.
fn references_of<'t>(table: &'t CommonTableExpr, names: &'t HashMap<&'t str, usize>) -> Vec<CommonReference> {
    let mut walk = ReferenceWalk { names, inner: Vec::new(), found: Vec::new() };
    match &table.statement {
        Statement::Select(query) if terms(query).is_some() => walk.recursive_query(query),
        statement => walk.statement(statement, ReferencePlace::Permitted),
    }
    walk.found
}

/// A walk that gathers the references to the queries of a list.
struct ReferenceWalk<'t> {
    /// The numbers of the queries by their names.
    names: &'t HashMap<&'t str, usize>,
    /// The names of each WITH around the place, which hide those of the list.
    inner: Vec<Vec<&'t str>>,
    found: Vec<CommonReference>,
}

impl<'t> ReferenceWalk<'t> {
    fn recursive_query(&mut self, query: &'t SelectStmt) {
        let Some((first, seed, last)) = terms(query) else { return };
        let is_opened = self.open_with(query.with.as_ref(), ReferencePlace::OwnWith);
        self.operations(first, seed, ReferencePlace::NonRecursiveTerm);
        self.body(&last.operand, ReferencePlace::Permitted);
        self.above(query, ReferencePlace::Permitted);
        self.close_with(is_opened);
    }

    fn statement(&mut self, statement: &'t Statement, place: ReferencePlace) {
        match statement {
            Statement::Select(query) => self.query(query, place),
            Statement::Insert(insert) => self.insert(insert, place),
            Statement::Update(update) => {
                let is_opened = self.open_with(update.with.as_ref(), place);
                self.reference(&update.relation, place);
                self.assignments(&update.set, place);
                self.exprs(&update.selection, place);
                update.from.iter().for_each(|item| self.item(item, place));
                self.targets(&update.returning, place);
                self.close_with(is_opened);
            }
            Statement::Delete(delete) => {
                let is_opened = self.open_with(delete.with.as_ref(), place);
                self.reference(&delete.relation, place);
                delete.using.iter().for_each(|item| self.item(item, place));
                self.exprs(&delete.selection, place);
                self.targets(&delete.returning, place);
                self.close_with(is_opened);
            }
            Statement::Merge(merge) => {
                let is_opened = self.open_with(merge.with.as_ref(), place);
                self.reference(&merge.relation, place);
                self.item(&merge.source, place);
                self.expr(&merge.condition, place);
                for when in &merge.whens {
                    self.exprs(&when.condition, place);
                    match &when.action {
                        MergeAction::Update(set) => self.assignments(set, place),
                        MergeAction::Insert { columns: _, overriding: _, values } => self.exprs(values, place),
                        MergeAction::Nothing | MergeAction::Delete => {}
                    }
                }
                self.close_with(is_opened);
            }
            _ => {}
        }
    }

    fn insert(&mut self, insert: &'t InsertStmt, place: ReferencePlace) {
        let is_opened = self.open_with(insert.with.as_ref(), place);
        self.reference(&insert.relation, place);
        if let Some(source) = &insert.source {
            self.query(source, place);
        }
        if let Some(tree::OnConflictClause { target, action, at: _ }) = &insert.on_conflict {
            if let Some(tree::ConflictTarget::Columns { elements, selection, at: _ }) = target {
                let keys = elements.iter().filter_map(|element| match &element.key {
                    IndexKey::Expr(expr) => Some(expr),
                    IndexKey::Column(_) => None,
                });
                self.exprs(keys.chain(selection), place);
            }
            if let ConflictAction::Update { set, selection } = action {
                self.assignments(set, place);
                self.exprs(selection, place);
            }
        }
        self.targets(&insert.returning, place);
        self.close_with(is_opened);
    }

    fn assignments(&mut self, set: &'t [SetClause], place: ReferencePlace) {
        for clause in set {
            let (SetClause::Single { target: _, value } | SetClause::Multiple { targets: _, source: value }) = clause;
            self.expr(value, place);
        }
    }

    fn targets(&mut self, targets: &'t [ResTarget], place: ReferencePlace) {
        self.exprs(targets.iter().map(|target| &target.expr), place);
    }

    fn query(&mut self, query: &'t SelectStmt, place: ReferencePlace) {
        let is_opened = self.open_with(query.with.as_ref(), place);
        self.body(&query.body, place);
        self.above(query, place);
        self.close_with(is_opened);
    }

    /// Walks through the clauses of a whole query.
    fn above(&mut self, query: &'t SelectStmt, place: ReferencePlace) {
        self.exprs(query.order_by.iter().map(|item| &item.expr), place);
        if let Some(limit) = &query.limit {
            self.exprs(limit.offset.iter().chain(&limit.count), place);
        }
        query.locking.iter().flat_map(|clause| &clause.of).for_each(|name| self.reference(name, place));
    }

    /// Walks through the queries of a WITH, whose names hide others until it is closed. False: there is none.
    fn open_with(&mut self, with: Option<&'t WithClause>, place: ReferencePlace) -> bool {
        let Some(WithClause { recursive, tables, at: _ }) = with else { return false };
        let names = tables.iter().map(|table| table.name.value.as_str());
        let last = self.inner.len();
        self.inner.push(if *recursive { names.clone().collect() } else { Vec::new() });
        for (table, name) in tables.iter().zip(names) {
            self.statement(&table.statement, place);
            if !recursive {
                self.inner[last].push(name);
            }
        }
        true
    }

    fn close_with(&mut self, is_opened: bool) {
        if is_opened {
            self.inner.pop();
        }
    }

    fn body(&mut self, body: &'t SelectBody, place: ReferencePlace) {
        match body {
            SelectBody::Select(select) => self.block(select, place),
            SelectBody::Values(rows) => rows.iter().for_each(|row| self.exprs(row, place)),
            SelectBody::Nested(query) => self.query(query, place),
            SelectBody::SetOperations { first, links } => self.operations(first, links, place),
        }
    }

    /// Walks through operands, of which each operation but the first has all before it on its left side.
    fn operations(&mut self, first: &'t SelectBody, links: &'t [SetLink], place: ReferencePlace) {
        let mut left = place;
        let mut rights = Vec::with_capacity(links.len());
        for link in links.iter().rev() {
            let (on_left, on_right) = match (link.op, link.all) {
                (SetOp::Union, _) | (SetOp::Intersect, false) => (left, left),
                (SetOp::Intersect, true) => {
                    (left.within(ReferencePlace::Intersect), left.within(ReferencePlace::Intersect))
                }
                (SetOp::Except, false) => (left, left.within(ReferencePlace::Except)),
                (SetOp::Except, true) => (left.within(ReferencePlace::Except), left.within(ReferencePlace::Except)),
            };
            rights.push(on_right);
            left = on_left;
        }
        self.body(first, left);
        for (link, right) in links.iter().zip(rights.into_iter().rev()) {
            self.body(&link.operand, right);
        }
    }

    fn block(&mut self, select: &'t Select, place: ReferencePlace) {
        if let Some(Distinct::On(list)) = &select.distinct {
            self.exprs(list, place);
        }
        self.targets(&select.targets, place);
        select.from.iter().for_each(|item| self.item(item, place));
        self.exprs(&select.selection, place);
        select.group_by.iter().for_each(|item| self.group(item, place));
        self.exprs(&select.having, place);
        select.windows.iter().for_each(|named| self.exprs(of_window(&named.window), place));
    }

    fn group(&mut self, item: &'t GroupItem, place: ReferencePlace) {
        match item {
            GroupItem::Expr(expr) => self.expr(expr, place),
            GroupItem::Empty(_) => {}
            GroupItem::Rollup(list, _) | GroupItem::Cube(list, _) => self.exprs(list, place),
            GroupItem::GroupingSets(list, _) => list.iter().for_each(|item| self.group(item, place)),
        }
    }

    /// Walks through joined tables, of which each join has all before it on its left side.
    fn item(&mut self, item: &'t FromItem, place: ReferencePlace) {
        let mut left = place;
        let mut rights = Vec::with_capacity(item.joins.len());
        for join in item.joins.iter().rev() {
            let outer = left.within(ReferencePlace::OuterJoin);
            let (on_left, on_right) = match join.kind {
                JoinKind::Inner => (left, left),
                JoinKind::Left => (left, outer),
                JoinKind::Right => (outer, left),
                JoinKind::Full => (outer, outer),
            };
            rights.push((on_right, left));
            left = on_left;
        }
        match &item.first {
            TableRef::Relation(relation) => self.reference(&relation.name, left),
            TableRef::Subselect(select) => self.query(&select.query, left),
            TableRef::Function(function) => {
                self.exprs(function.functions.iter().map(|function| &function.call), left);
            }
            TableRef::Joined(joined) => self.item(&joined.item, left),
        }
        for (join, (right, around)) in item.joins.iter().zip(rights.into_iter().rev()) {
            self.item(&join.right, right);
            if let JoinQual::On(condition) = &join.qual {
                self.expr(condition, around);
            }
        }
    }

    fn exprs(&mut self, exprs: impl IntoIterator<Item = &'t Expr>, place: ReferencePlace) {
        exprs.into_iter().for_each(|expr| self.expr(expr, place));
    }

    fn expr(&mut self, expr: &'t Expr, place: ReferencePlace) {
        if let Some(query) = subquery_of(expr) {
            // A subquery is one wherever it is.
            let within = if place == ReferencePlace::OwnWith { place } else { ReferencePlace::Subquery };
            self.query(query, within);
        }
        self.exprs(children(expr), place);
    }

    fn reference(&mut self, name: &RangeVar, place: ReferencePlace) {
        let is_hidden = || self.inner.iter().flatten().any(|inner| *inner == name.name);
        if name.schema.is_none()
            && let Some(&number) = self.names.get(&*name.name)
            && !is_hidden()
        {
            self.found.push(CommonReference { number, at: name.at.0, place });
        }
    }
}

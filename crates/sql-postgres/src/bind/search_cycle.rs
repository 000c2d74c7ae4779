//! SEARCH and CYCLE of a recursive query, by the rewrite of PostgreSQL's `rewriteSearchCycle.c`.
//!
//! ```text
//!   WITH RECURSIVE t(a) AS (first UNION ALL SELECT .. FROM t ..) SEARCH DEPTH FIRST BY a SET s CYCLE a SET m USING p
//!   ──► WITH RECURSIVE t(a, s, m, p) AS (
//!         SELECT a, ARRAY[ROW(a)], false, ARRAY[ROW(a)] FROM (first) "*TLOCRN*"(a)
//!         UNION ALL
//!         SELECT a, s || ARRAY[ROW(a)], CASE WHEN ROW(a) = ANY (p) THEN true ELSE false END, p || ARRAY[ROW(a)]
//!           FROM (SELECT .., t.s, t.m, t.p FROM t ..) "*TROCRN*"(a, s, m, p) WHERE m <> true)
//! ```
//!
//! BREADTH FIRST makes `s` of `ROW(depth, a)`. The query is bound twice: as it was written, for its errors and its types, and rewritten. Columns have names of their own within the rewritten query, since those of the query need not differ.

use syntax::postgres::tree::{
    Alias, Case, CaseWhen, ColumnRef, CommonTableExpr, Const, CycleClause, Expr, ExprKind, FromItem, Ident,
    Indirection, Link, Location, Operator, Quantified, RangeSubselect, ResTarget, SearchClause, Select, SelectBody,
    SelectStmt, SetLink, SetOp, Span, TableRef, TypeName,
};

use query::types::Column;

use crate::bind::Binder;
use crate::bind::common_table::Added;
use crate::bind::scope::{BoundQuery, Clause, OutputColumn};
use crate::bind::typing::{Operand, shown, unsupported};
use crate::error::{PgError, Result, SqlState, state};
use crate::functions::CastContext;
use crate::types::oid::{self, Oid};
use crate::types::registry::column_type;

/// The names of the subqueries, and of the added columns within them.
const LEFT: &str = "*TLOCRN*";
const RIGHT: &str = "*TROCRN*";
const SEQUENCE: &str = "*SEQUENCE*";
const MARK: &str = "*MARK*";
const PATH: &str = "*PATH*";

/// The rewrite of one query.
struct Rewrite<'r> {
    span: Span,
    /// The names of the query's columns.
    names: &'r [String],
    search: Option<&'r SearchClause>,
    cycle: Option<&'r CycleClause>,
}

impl Binder<'_> {
    /// Binds a query of WITH that has SEARCH or CYCLE.
    pub(super) fn searched(
        &mut self,
        table: &CommonTableExpr,
        query: &SelectStmt,
        id: usize,
        recursive: bool,
    ) -> Result<BoundQuery> {
        let CommonTableExpr { name, columns: given, materialized: _, statement: _, search, cycle } = table;
        let (search, cycle) = (search.as_deref(), cycle.as_deref());
        let mut added = Vec::new();
        if let Some(search) = search {
            let ty = if search.breadth_first { oid::RECORD } else { oid::RECORD_ARRAY };
            added.push(added_column(&search.sequence, ty));
        }
        if let Some(cycle) = cycle {
            added.push(added_column(&cycle.mark, self.type_of_mark(cycle)?));
            added.push(added_column(&cycle.path, oid::RECORD_ARRAY));
        }
        let (sizes, nodes, correlations) = ((self.height, self.weight), self.nodes, self.correlations.clone());
        let as_written = Added { columns: &added, count: added.len() };
        let bound = match recursive {
            true => Some(self.recursive(name, given, query, id, as_written)?),
            false => self.query(query).map(|_| None)?,
        };
        ((self.height, self.weight), self.nodes, self.correlations) = (sizes, nodes, correlations);
        let (Some(bound), SelectBody::SetOperations { first, links }) = (bound, &query.body) else {
            return self.fail(state::SYNTAX_ERROR, "WITH query is not recursive", name.at.0);
        };
        let (Some(last), true) = (links.last(), links.len() == 1 && is_leaf(first)) else {
            return Err(refused_side(state::FEATURE_NOT_SUPPORTED, "left"));
        };
        if !is_leaf(&last.operand) {
            return Err(refused_side(state::SYNTAX_ERROR, "right"));
        }
        let names: Vec<String> = bound.columns.iter().map(|column| column.column.name.clone()).collect();
        self.check_search(search, &names)?;
        if let Some(cycle) = cycle {
            self.check_cycle(cycle, &names)?;
        }
        self.check_names_of_both(search, cycle)?;
        let rewrite = Rewrite { span: Span { start: name.at.0, end: name.at.0 }, names: &names, search, cycle };
        let body = SelectBody::SetOperations {
            first: Box::new(SelectBody::Select(Box::new(rewrite.left(first)))),
            links: vec![SetLink {
                op: SetOp::Union,
                all: last.all,
                operand: SelectBody::Select(Box::new(rewrite.right(&name.value, &last.operand)?)),
                at: last.at,
            }],
        };
        let rewritten = SelectStmt { with: query.with.clone(), ..rewrite.query(body) };
        let columns: Vec<Ident> =
            names.iter().chain(added.iter().map(|column| &column.column.name)).map(Ident::new).collect();
        let within = Added { columns: &[], count: added.len() };
        self.recursive(name, &columns, &rewritten, id, within)
    }

    /// Returns the type of the mark: that of the two constants.
    fn type_of_mark(&mut self, cycle: &CycleClause) -> Result<Oid> {
        self.open_scope();
        self.scope().clause = Clause::Values;
        let (value, otherwise) = (self.cycle_constant(&cycle.value)?, self.cycle_constant(&cycle.otherwise)?);
        self.close_scope();
        let common = self.common_of(&[&value, &otherwise])?;
        let common = common.map_err(|(left, right, at)| {
            let text = format!("CYCLE types {} and {} cannot be matched", shown(left), shown(right));
            self.error(PgError::new(state::DATATYPE_MISMATCH, text), at)
        })?;
        let common = if common == oid::UNKNOWN { oid::TEXT } else { common };
        for (operand, clause) in [(value, "TO"), (otherwise, "DEFAULT")] {
            let (ty, at) = (operand.oid(), operand.at);
            if self.coerce_to(operand, common, -1, CastContext::Implicit)?.is_none() {
                let text = format!("CYCLE/SET/{clause} could not convert type {} to {}", shown(ty), shown(common));
                return self.fail(state::CANNOT_COERCE, text, at);
            }
        }
        // The real server gives no position.
        self.check_comparable(common, 0).map_err(|error| PgError { position: None, ..error })?;
        Ok(common)
    }

    /// Binds a constant. Errors find one with a type at its string.
    fn cycle_constant(&mut self, expr: &Expr) -> Result<Operand> {
        let at = match &expr.kind {
            ExprKind::Cast { operand, to: _, at: _ } => operand.span.start,
            _ => expr.span.start,
        };
        self.expr(expr).map(|bound| Operand { at, ..bound })
    }

    fn check_search(&self, search: Option<&SearchClause>, names: &[String]) -> Result<()> {
        let Some(SearchClause { breadth_first: _, columns, sequence, at }) = search else { return Ok(()) };
        self.check_columns("search", columns, names, *at)?;
        self.check_free_of("search sequence", sequence, names, *at)
    }

    fn check_cycle(&self, cycle: &CycleClause, names: &[String]) -> Result<()> {
        let CycleClause { columns, mark, value: _, otherwise: _, path, at } = cycle;
        self.check_columns("cycle", columns, names, *at)?;
        self.check_free_of("cycle mark", mark, names, *at)?;
        self.check_free_of("cycle path", path, names, *at)?;
        self.check_differ(("cycle mark", mark), ("cycle path", path), *at)
    }

    fn check_names_of_both(&self, search: Option<&SearchClause>, cycle: Option<&CycleClause>) -> Result<()> {
        let (Some(search), Some(cycle)) = (search, cycle) else { return Ok(()) };
        let sequence = ("search sequence", &search.sequence);
        self.check_differ(sequence, ("cycle mark", &cycle.mark), search.at)?;
        self.check_differ(sequence, ("cycle path", &cycle.path), search.at)
    }

    /// Fails unless each column is one of the query, and named once.
    fn check_columns(&self, kind: &str, columns: &[Ident], names: &[String], at: Location) -> Result<()> {
        for (nth, column) in columns.iter().enumerate() {
            let named = format!("{kind} column \"{}\"", column.value);
            if !names.contains(&column.value) {
                return self.fail(state::SYNTAX_ERROR, format!("{named} not in WITH query column list"), at.0);
            }
            if columns[..nth].contains(column) {
                return self.fail(state::DUPLICATE_COLUMN, format!("{named} specified more than once"), at.0);
            }
        }
        Ok(())
    }

    fn check_free_of(&self, kind: &str, name: &Ident, names: &[String], at: Location) -> Result<()> {
        if !names.contains(&name.value) {
            return Ok(());
        }
        let text = format!("{kind} column name \"{}\" already used in WITH query column list", name.value);
        self.fail(state::SYNTAX_ERROR, text, at.0)
    }

    fn check_differ(
        &self,
        (kind, name): (&str, &Ident),
        (other_kind, other): (&str, &Ident),
        at: Location,
    ) -> Result<()> {
        if name != other {
            return Ok(());
        }
        let text = format!("{kind} column name and {other_kind} column name are the same");
        self.fail(state::SYNTAX_ERROR, text, at.0)
    }
}

fn refused_side(state: SqlState, side: &str) -> PgError {
    let text = format!("with a SEARCH or CYCLE clause, the {side} side of the UNION must be a SELECT");
    PgError::new(state, text)
}

fn added_column(name: &Ident, ty: Oid) -> OutputColumn {
    let column = Column::computed(name.value.clone(), column_type(ty, -1, true));
    OutputColumn { column, origin: None, at: name.at.0 }
}

/// Returns whether an operand of a set operation is a query of its own: parentheses alone make none.
fn is_leaf(body: &SelectBody) -> bool {
    match body {
        SelectBody::Select(_) | SelectBody::Values(_) => true,
        SelectBody::SetOperations { .. } => false,
        SelectBody::Nested(query) => {
            let SelectStmt { with, body, order_by, limit, locking, span: _ } = &**query;
            with.is_some() || !order_by.is_empty() || limit.is_some() || !locking.is_empty() || is_leaf(body)
        }
    }
}

/// Returns the name by which the columns of a table of FROM are reached. A join with an alias hides it.
fn reference<'f>(from: &'f [FromItem], table: &str) -> Option<Result<&'f str>> {
    let of_item = |item: &'f FromItem| {
        let first = match &item.first {
            TableRef::Relation(relation) if relation.name.schema.is_none() && relation.name.name == table => {
                Some(Ok(relation.alias.as_ref().map_or(&*relation.name.name, |alias| &*alias.name.value)))
            }
            TableRef::Joined(joined) => {
                let found = reference(std::slice::from_ref(&joined.item), table);
                let is_hidden = joined.alias.is_some();
                found.map(|found| {
                    if is_hidden { Err(unsupported("SEARCH or CYCLE through the alias of a join")) } else { found }
                })
            }
            _ => None,
        };
        first.or_else(|| item.joins.iter().find_map(|join| reference(std::slice::from_ref(&join.right), table)))
    };
    from.iter().find_map(of_item)
}

/// Returns the SELECT with the recursive reference. `None`: the operand is of another form.
fn select_of<'s>(operand: &'s mut SelectBody, table: &str) -> Option<&'s mut Select> {
    match operand {
        SelectBody::Select(select) => Some(select),
        // A query of its own WITH hides that of the same name.
        SelectBody::Nested(query)
            if !query.with.iter().flat_map(|with| &with.tables).any(|own| own.name.value == table) =>
        {
            select_of(&mut query.body, table)
        }
        SelectBody::Nested(_) => None,
        SelectBody::Values(_) | SelectBody::SetOperations { .. } => None,
    }
}

impl Rewrite<'_> {
    fn expr(&self, kind: ExprKind) -> Expr {
        Expr { kind, span: self.span }
    }

    fn column(&self, fields: &[&str]) -> Expr {
        let fields = fields.iter().map(|field| (*field).to_owned()).collect();
        self.expr(ExprKind::Column(ColumnRef { fields, star: false }))
    }

    fn operator(&self, left: Expr, name: &'static str, right: Expr) -> Expr {
        let op = Operator::plain(name, Location(self.span.start));
        self.expr(ExprKind::Chain { first: Box::new(left), links: vec![Link { op, operand: right }] })
    }

    fn query(&self, body: SelectBody) -> SelectStmt {
        SelectStmt { with: None, body, order_by: Vec::new(), limit: None, locking: Vec::new(), span: self.span }
    }

    /// Returns the name of a column of the query within the rewritten one.
    fn own_name(nth: usize) -> String {
        format!("*{nth}*")
    }

    /// Returns the columns of a clause as a row, `first` before them.
    fn row(&self, first: Option<Expr>, columns: &[Ident]) -> Expr {
        let nth = |name: &Ident| self.names.iter().position(|known| *known == name.value).unwrap_or(0);
        let columns = columns.iter().map(|name| self.column(&[&Self::own_name(nth(name))]));
        self.expr(ExprKind::Row { items: first.into_iter().chain(columns).collect(), explicit: true })
    }

    fn list(&self, item: Expr) -> Expr {
        self.expr(ExprKind::Array(vec![item]))
    }

    /// Returns `CASE WHEN condition THEN result ELSE otherwise END`.
    fn case(&self, condition: Expr, result: &Expr, otherwise: &Expr) -> Expr {
        let arms = vec![CaseWhen { condition, result: result.clone() }];
        self.expr(ExprKind::Case(Box::new(Case { operand: None, arms, otherwise: Some(otherwise.clone()) })))
    }

    /// Returns a SELECT of the query's columns and the added ones from a subquery.
    fn select(
        &self,
        query: SelectStmt,
        alias: &str,
        added: &[&str],
        items: Vec<Expr>,
        selection: Option<Expr>,
    ) -> Select {
        let own: Vec<String> = (0..self.names.len()).map(Self::own_name).collect();
        let targets = own.iter().map(|name| self.column(&[name])).chain(items);
        let names = own.iter().map(String::as_str).chain(added.iter().copied());
        let alias = Alias { name: Ident::new(alias), columns: names.map(Ident::new).collect() };
        let at = Location(self.span.start);
        let subselect = RangeSubselect { lateral: false, query, alias: Some(alias), at };
        Select {
            distinct: None,
            targets: targets.map(|expr| ResTarget { expr, alias: None }).collect(),
            into: None,
            from: vec![FromItem { first: TableRef::Subselect(Box::new(subselect)), joins: Vec::new() }],
            selection,
            group_by: Vec::new(),
            group_distinct: false,
            having: None,
            windows: Vec::new(),
        }
    }

    /// Returns the query of the first round.
    fn left(&self, first: &SelectBody) -> Select {
        let mut items = Vec::new();
        if let Some(search) = self.search {
            let zero = Box::new(self.expr(ExprKind::Const(Const::Integer(0))));
            let at = Location(self.span.start);
            let zero = self.expr(ExprKind::Cast { operand: zero, to: Box::new(TypeName::system("int8", at)), at });
            items.push(match search.breadth_first {
                true => self.row(Some(zero), &search.columns),
                false => self.list(self.row(None, &search.columns)),
            });
        }
        if let Some(cycle) = self.cycle {
            // The type is that of both constants.
            let always = self.expr(ExprKind::Const(Const::Bool(true)));
            items.push(self.case(always, &cycle.otherwise, &cycle.value));
            items.push(self.list(self.row(None, &cycle.columns)));
        }
        self.select(self.query(first.clone()), LEFT, &[], items, None)
    }

    /// Returns the query of the rounds after it.
    fn right(&self, table: &str, operand: &SelectBody) -> Result<Select> {
        let mut operand = operand.clone();
        let misplaced = || {
            let text = format!(
                "with a SEARCH or CYCLE clause, the recursive reference to WITH query \"{table}\" must be at the top level of its right-hand SELECT"
            );
            PgError::new(state::FEATURE_NOT_SUPPORTED, text)
        };
        let select = select_of(&mut operand, table).ok_or_else(misplaced)?;
        let reference = reference(&select.from, table).ok_or_else(misplaced)??.to_owned();
        if select.distinct.is_some() || !select.group_by.is_empty() || select.having.is_some() {
            return Err(unsupported("DISTINCT or GROUP BY in the recursive term with SEARCH or CYCLE"));
        }
        let (mut added, mut items) = (Vec::new(), Vec::new());
        let mut read = |name: &Ident, own| {
            let expr = self.column(&[&reference, &name.value]);
            select.targets.push(ResTarget { expr, alias: Some(Ident::new(own)) });
            added.push(own);
        };
        if let Some(SearchClause { breadth_first, columns, sequence, at: _ }) = self.search {
            read(sequence, SEQUENCE);
            let known = self.column(&[SEQUENCE]);
            items.push(match breadth_first {
                true => {
                    let (operand, links) = (Box::new(known), vec![Indirection::Field(Ident::new("f1"))]);
                    let depth = self.expr(ExprKind::Indirection { operand, links });
                    let one = self.expr(ExprKind::Const(Const::Integer(1)));
                    self.row(Some(self.operator(depth, "+", one)), columns)
                }
                false => self.operator(known, "||", self.list(self.row(None, columns))),
            });
        }
        let selection = self.cycle.map(|CycleClause { columns, mark, value, otherwise, path, at: _ }| {
            read(mark, MARK);
            read(path, PATH);
            let is_known = self.expr(ExprKind::Quantified(Box::new(Quantified {
                left: self.row(None, columns),
                op: Operator::plain("=", Location(self.span.start)),
                all: false,
                array: self.column(&[PATH]),
            })));
            items.push(self.case(is_known, value, otherwise));
            items.push(self.operator(self.column(&[PATH]), "||", self.list(self.row(None, columns))));
            self.operator(self.column(&[MARK]), "<>", value.clone())
        });
        let query = match operand {
            SelectBody::Nested(query) => *query,
            body => self.query(body),
        };
        Ok(self.select(query, RIGHT, &added, items, selection))
    }
}

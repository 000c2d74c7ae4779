//! The binder (PostgreSQL's parse analysis): from a syntax tree to a plan of the core with names resolved and types known.
//!
//! ```text
//!   tree::Statement ─► range table, expressions with types ─► QueryBlock, Change ─► BoundStatement
//!                      (this module)                          (query plans them)
//! ```
//!
//! Expressions of a block are bound over its wide rows, with aggregates and window functions at places beyond `scope::AGGREGATES`; `grouped` brings them to the rows of groups (PS-5). Depth counts
//! subqueries in expressions (PS-6).

mod aggregate;
mod array;
mod call;
mod change;
pub(crate) mod coerce;
mod common_table;
mod comparison;
mod composite;
mod conflict;
mod cursor;
pub mod domain;
mod expression;
pub(crate) mod from;
mod full_join;
mod grouped;
mod grouping_sets;
mod insert_part;
mod jsonb_subscript;
mod merge;
mod merge_into;
mod name;
pub mod name_site;
mod operator;
mod ordered_set;
pub(crate) mod output_name;
pub mod polymorphic;
mod project_set;
mod query_expression;
pub(crate) mod record;
pub mod recursion;
pub(crate) mod resolve;
pub(crate) mod rights;
mod rules;
mod scope;
mod search_cycle;
mod sql_json;

pub use sql_json::array_of_rows;

mod select;
mod sequence_row;
mod special;
mod subquery;
mod table_function;
mod table_sample;
pub(crate) mod typing;
mod updatable;
mod view;
mod walk;
mod window;

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::convert::Infallible;
use std::sync::Arc;

use datum::value::RecordType;
use engine::rows::SeenMaps;
use query::catalog::Snapshot;
use query::catalog::object_id::ObjectId;
use query::catalog::table::Table;
use query::catalog::temporary_maps;
use query::catalog::view::View;
use query::nodes::context::EvalContext;
use query::nodes::expr::Expr;
use query::nodes::node::Lock;
use query::nodes::system_table::SystemTable;
use query::plan::statistics::Statistics;
use query::session::statement::{self, Bindings, StatementPart};
use syntax::postgres::tree;

use crate::bind::common_table::PartReads;
use crate::bind::cursor::CursorBlock;
use crate::bind::name_site::NameSite;
use crate::bind::record::is_record;
use crate::bind::scope::{BlockScope, BoundQuery, Common, NameItem, OutputColumn};
use crate::bind::typing::{Operand, unsupported};
use crate::bind::updatable::ChangedView;
use crate::error::{PgError, Result, state};
use crate::rights::needs::{Need, SystemNeed};
use crate::types::oid::{self, Oid};
use crate::types::registry::{oid_of, typmod_of};
use crate::types::user;
use crate::value::Value;

/// Leaves a value as the function gave it.
pub use crate::bind::comparison::comparator;
pub use cursor::{CursorTables, bind_cursor};
pub use from::schema_shown;
pub use operator::FoundOperator;
pub use select::strength_word;
pub use updatable::check_updatable;

pub type Plan = statement::Plan<Infallible>;
pub type BoundStatement = statement::BoundStatement<Infallible>;

/// The session's answers to questions of the binder.
pub trait BindSession: Statistics {
    /// Returns an error if the statement was cancelled.
    fn check_interrupts(&self) -> Result<()>;

    /// Returns the computed table of that name: of `pg_catalog` and `information_schema`.
    fn system_table(&self, schema: &str, name: &str) -> Option<&'static SystemTable>;

    /// Returns what tells the maps apart that the transaction's snapshot sees; `None` if it sees all.
    fn seen_maps(&self) -> Option<&SeenMaps> {
        None
    }

    /// Returns whether a plan made meanwhile depends on the values of parameters (`Statistics::may_depend_on_values`).
    fn depends_on_values(&self) -> bool {
        false
    }

    /// Fails unless the session has the privileges that a statement needs.
    fn check_needs(&self, _: &Environment<'_>, _: &[Need], _: &[SystemNeed]) -> Result<()> {
        Ok(())
    }

    /// Fails unless the session may look names up in a schema, by its stored name.
    fn check_schema(&self, _: &Environment<'_>, _: &str) -> Result<()> {
        Ok(())
    }
}

/// The facts that binding reads. All but `session`, `values` and `snapshot` belong to the plan-cache context.
pub struct Environment<'s> {
    pub snapshot: Arc<Snapshot>,
    pub database: &'s str,
    pub role: &'s str,
    /// The schemas of `search_path` that exist, in order, by their PostgreSQL names; `$user` is replaced. `pg_catalog` is searched first unless it is among them.
    pub search_path: &'s [String],
    pub session: &'s dyn BindSession,
    /// Known values of parameters. Estimates use them, but the plan holds for other values.
    pub values: &'s [Value],
    /// The row lock of plain reads, where the isolation level asks for one.
    pub reads_lock: Option<Lock>,
}

/// A bound statement with what a client is told of it.
#[derive(Debug)]
pub struct Bound {
    pub statement: Arc<BoundStatement>,
    /// The type of each parameter: those that were given, and inferred ones in the place of 0.
    pub parameter_types: Vec<Oid>,
    /// The columns of the result; empty for a statement without RETURNING.
    pub fields: Vec<ResultColumn>,
    /// Types that users have defined and the statement names, or has values of.
    pub user_types: BTreeSet<ObjectId>,
    /// The temporary relations that its own text names.
    pub temporaries: BTreeSet<ObjectId>,
    /// The error of a session that has not the privileges to run it.
    pub denied: Option<PgError>,
}

impl Bound {
    /// Returns the statement if the session may run it.
    pub fn permitted(self) -> Result<Arc<BoundStatement>> {
        match self.denied {
            Some(denied) => Err(denied),
            None => Ok(self.statement),
        }
    }
}

/// A column of a result, as RowDescription has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultColumn {
    pub name: String,
    pub type_oid: Oid,
    /// -1: none.
    pub type_modifier: i32,
    /// The table that the column is of, by its id in the catalog; `None` for an expression.
    pub table: Option<u64>,
    /// From 1; 0 for an expression.
    pub column: u16,
    /// The type behind a domain, as which clients see it.
    pub base: Option<(Oid, i32)>,
}

impl ResultColumn {
    /// Whether a client may take a row with the one column for a row with the other.
    pub fn is_like(&self, other: &ResultColumn) -> bool {
        self.name == other.name && self.type_oid == other.type_oid && self.type_modifier == other.type_modifier
    }
}

/// Returns the OID of a table or view, by its number in the catalog: those below 16384 are the system's, and those of temporary objects have a bit of their own.
pub fn relation_oid(id: u64) -> Oid {
    if id >= temporary_maps::FIRST {
        return 1 << temporary_maps::NARROW_BITS | temporary_maps::narrow(id) as u32;
    }
    let number = || FIRST_OID.saturating_add(u32::try_from(id).unwrap_or(u32::MAX));
    crate::system::keyspace::oid_of(id).unwrap_or_else(number)
}

const FIRST_OID: Oid = 16384;

/// Binds a query, or a statement that changes rows. `text` is what positions in errors refer to; `parameters` are the types that the client has given, 0 where it has not.
pub fn bind(
    environment: &Environment<'_>,
    ctx: &mut EvalContext,
    text: &str,
    statement: &tree::Statement,
    parameters: Vec<Oid>,
) -> Result<Bound> {
    let mut binder = Binder::new(environment, ctx, text);
    binder.parameters = parameters;
    let (plan, fields) = binder.statement(statement)?;
    binder.finish(plan, fields)
}

/// Binds the query of a view for what it reads. The environment has the view's `search_path`.
pub fn bind_view_query(
    environment: &Environment<'_>,
    ctx: &mut EvalContext,
    view: &View,
    statement: &tree::Statement,
) -> Result<Bound> {
    let mut binder = Binder::new(environment, ctx, &view.text);
    binder.see_as(view);
    let (plan, fields) = binder.statement(statement)?;
    binder.finish(plan, fields)
}

/// Returns the names in the query of a view. The environment has the view's `search_path`.
pub fn names_in_view(
    environment: &Environment<'_>,
    ctx: &mut EvalContext,
    view: &View,
    statement: &tree::Statement,
) -> Result<Vec<NameSite>> {
    let mut binder = Binder::new(environment, ctx, &view.text);
    binder.see_as(view);
    binder.note_names();
    binder.statement(statement)?;
    Ok(binder.take_names())
}

/// Binds the query of a materialized view, with the rights of its owner.
pub fn bind_kept_query(environment: &Environment<'_>, ctx: &mut EvalContext, view: &Arc<View>) -> Result<Bound> {
    let mut binder = Binder::new(environment, ctx, &view.text);
    let BoundQuery { node, columns, plain: _ } = binder.view(view)?;
    let columns = columns.into_iter().map(|column| column.column).collect();
    binder.finish(Plan::Query { node, columns }, Vec::new())
}

/// Returns the INSERT of COPY FROM: its rows come from the client, a value for each of `columns`, or for each column of the table if there are none.
pub fn bind_copy_from(
    environment: &Environment<'_>,
    ctx: &mut EvalContext,
    text: &str,
    relation: &tree::RangeVar,
    columns: &[tree::Ident],
) -> Result<Bound> {
    let mut binder = Binder::new(environment, ctx, text);
    let insert = binder.copy_from(relation, columns)?;
    binder.finish(Plan::Insert(insert), Vec::new())
}

/// Binds the WHERE of COPY FROM over the rows of the table.
pub fn bind_copy_condition(
    environment: &Environment<'_>,
    ctx: &mut EvalContext,
    text: &str,
    table: &Arc<Table>,
    condition: &tree::Expr,
) -> Result<Expr> {
    Binder::new(environment, ctx, text).copy_condition(table, condition)
}

/// The kind of an expression in a table's definition. It decides what the expression may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableExpression {
    /// May read no column.
    Default,
    Check,
    Generated,
    /// A part of an index; of any type.
    IndexPart,
    IndexPredicate,
}

/// Binds an expression of a table's definition over the table's columns, and coerces it to the type: that of the column, or bool for a condition.
pub fn bind_table_expression(
    environment: &Environment<'_>,
    ctx: &mut EvalContext,
    text: &str,
    (table, expression): (&Arc<Table>, &tree::Expr),
    kind: TableExpression,
    column: Option<usize>,
) -> Result<Expr> {
    Binder::new(environment, ctx, text).table_expression(table, expression, kind, column)
}

/// Binds an expression of a table's definition from its text. Returns it with the types that users have defined and it names or has values of.
pub fn bind_definition(
    environment: &Environment<'_>,
    ctx: &mut EvalContext,
    (table, text): (&Arc<Table>, &str),
    kind: TableExpression,
    column: Option<usize>,
) -> Result<(Expr, BTreeSet<ObjectId>)> {
    let mut binder = Binder::new(environment, ctx, text);
    let expr = binder.definition(table, text, kind, column)?;
    Ok((expr, binder.user_types))
}

/// Returns the names in an expression of a table's definition.
pub fn names_in_definition(
    environment: &Environment<'_>,
    ctx: &mut EvalContext,
    (table, text): (&Arc<Table>, &str),
    kind: TableExpression,
    column: Option<usize>,
) -> Result<Vec<NameSite>> {
    let mut binder = Binder::new(environment, ctx, text);
    binder.note_names();
    binder.definition(table, text, kind, column)?;
    Ok(binder.take_names())
}

/// Returns the default of a domain.
pub fn bind_default_of_domain(environment: &Environment<'_>, ctx: &mut EvalContext, domain: Oid) -> Result<Expr> {
    Binder::new(environment, ctx, "").default_of_domain(domain)
}

/// Returns for each type with values of domains the checks of a value that was read without them: an expression over a row of the value.
pub fn bind_domain_checks(
    environment: &Environment<'_>,
    ctx: &mut EvalContext,
    types: impl Iterator<Item = Oid>,
) -> Result<Vec<Option<Expr>>> {
    let mut binder = Binder::new(environment, ctx, "");
    types.map(|ty| binder.checks_of_read(ty)).collect()
}

/// Returns the OID and the modifier of a type.
pub fn bind_type_name(
    environment: &Environment<'_>,
    ctx: &mut EvalContext,
    text: &str,
    name: &tree::TypeName,
) -> Result<(Oid, i32)> {
    Binder::new(environment, ctx, text).type_named(name)
}

/// Binds an expression without tables and parameters, such as an argument of EXECUTE or CALL, and coerces it to the type; 0 leaves it as it is.
pub fn bind_constant(
    environment: &Environment<'_>,
    ctx: &mut EvalContext,
    text: &str,
    expression: &tree::Expr,
    target: Oid,
) -> Result<Expr> {
    Binder::new(environment, ctx, text).constant(expression, target)
}

/// Binds one statement.
pub struct Binder<'s> {
    environment: &'s Environment<'s>,
    ctx: &'s mut EvalContext,
    text: &'s str,
    /// The schemas that unqualified names are looked up in; those of a view while its text is bound.
    search_path: Vec<String>,
    scopes: Vec<BlockScope>,
    parameters: Vec<Oid>,
    /// There is no statement that could have parameters.
    has_no_parameters: bool,
    commons: Vec<Common>,
    /// The number of queries around the part that is bound, those of set operations too.
    query_level: usize,
    /// The height of the plan bound so far for the current query.
    height: usize,
    /// The number of its nodes, with shared ones counted at each reference.
    weight: usize,
    /// For each depth, the outer references of its blocks: (depth, place).
    correlations: Vec<Vec<(usize, usize)>>,
    /// Tables whose metadata locks the statement needs.
    tables: Vec<Arc<Table>>,
    named: Vec<(u64, String)>,
    /// Tables that only foreign keys reach.
    linked: Vec<Arc<Table>>,
    /// Tables that are read, with the ages of their statistics.
    known: Vec<(Arc<Table>, u64)>,
    views: Vec<Arc<View>>,
    /// Types that users have defined and the statement names, or has values of.
    user_types: BTreeSet<ObjectId>,
    /// Views whose texts are being bound.
    open_views: Vec<u64>,
    /// The definitions that the view sees whose text is being bound; `None`: all that the session sees.
    view_definitions: Option<Arc<Snapshot>>,
    /// The temporary relations that the statement's own text names.
    temporaries: BTreeSet<ObjectId>,
    /// The names in the text, if they are asked for.
    name_sites: Option<RefCell<Vec<NameSite>>>,
    /// The plan holds for this run only.
    volatile: bool,
    next_id: usize,
    /// The expressions bound so far.
    nodes: usize,
    /// Nodes that the bound tree has again.
    copied: usize,
    /// The statement changes rows, so stored tables carry their rows' keys.
    keyed: bool,
    /// Tables beside a derived table, which it cannot name, for the error of one that does.
    unreachable: Vec<NameItem>,
    /// The parts of WITH that change rows.
    parts: Vec<StatementPart<Infallible>>,
    /// The tables and the parts that each part reads.
    parts_read: Vec<PartReads>,
    /// The same of the part that is bound, or of the main statement.
    reads: PartReads,
    /// The address of the WITH whose parts may change rows.
    changing_with: usize,
    /// The privileges that the statement needs.
    needs: Vec<Need>,
    system_needs: Vec<SystemNeed>,
    /// Those of each common table expression, by its number, until it is referred to.
    common_needs: HashMap<usize, (Vec<Need>, Vec<SystemNeed>)>,
    /// The owner of the view that is bound, whose rights count there.
    viewer: Option<Oid>,
    /// The view through which the change under way is made.
    through: Option<ChangedView>,
    /// The statement is the query of a cursor.
    cursor: Option<CursorBlock>,
    /// The constraints of domains that were met.
    domain_rules: Vec<(Oid, Arc<domain::DomainRules>)>,
    /// The checks of the fields of composite types that were met.
    field_checks: Vec<(Oid, Option<Arc<Expr>>)>,
    /// The types of rows: the modifier of a `record` is a place here (PS-41).
    row_types: Vec<Arc<RecordType>>,
}

impl<'s> Binder<'s> {
    pub(crate) fn new(environment: &'s Environment<'s>, ctx: &'s mut EvalContext, text: &'s str) -> Binder<'s> {
        Binder {
            environment,
            ctx,
            text,
            search_path: environment.search_path.to_vec(),
            scopes: Vec::new(),
            parameters: Vec::new(),
            has_no_parameters: false,
            commons: Vec::new(),
            query_level: 0,
            height: 0,
            weight: 0,
            correlations: vec![Vec::new()],
            tables: Vec::new(),
            named: Vec::new(),
            linked: Vec::new(),
            known: Vec::new(),
            views: Vec::new(),
            user_types: BTreeSet::new(),
            open_views: Vec::new(),
            view_definitions: None,
            temporaries: BTreeSet::new(),
            name_sites: None,
            volatile: false,
            next_id: 0,
            nodes: 0,
            copied: 0,
            keyed: false,
            unreachable: Vec::new(),
            parts: Vec::new(),
            parts_read: Vec::new(),
            reads: PartReads::default(),
            changing_with: 0,
            needs: Vec::new(),
            system_needs: Vec::new(),
            common_needs: HashMap::new(),
            viewer: None,
            through: None,
            cursor: None,
            domain_rules: Vec::new(),
            field_checks: Vec::new(),
            row_types: Vec::new(),
        }
    }

    pub(crate) fn context(&mut self) -> &mut EvalContext {
        self.ctx
    }

    fn statement(&mut self, statement: &tree::Statement) -> Result<(Plan, Vec<ResultColumn>)> {
        use tree::Statement as Tree;
        self.changing_with = common_table::address_of_with(statement);
        Ok(match statement {
            Tree::Select(select) => {
                let BoundQuery { node, columns, plain: _ } = self.query(select)?;
                let fields = self.fields_of_result(Some(&columns));
                let columns = columns.into_iter().map(|column| column.column).collect();
                (Plan::Query { node, columns }, fields)
            }
            Tree::Insert(insert) => {
                let (insert, columns) = self.insert(insert)?;
                let fields = self.fields_of_result(insert.returning.as_ref().map(|_| &columns[..]));
                (Plan::Insert(insert), fields)
            }
            Tree::Update(update) => {
                let (update, columns) = self.update(update)?;
                let fields = self.fields_of_result(update.returning.as_ref().map(|_| &columns[..]));
                (Plan::Update(update), fields)
            }
            Tree::Delete(delete) => {
                let (delete, columns) = self.delete(delete)?;
                let fields = self.fields_of_result(delete.returning.as_ref().map(|_| &columns[..]));
                (Plan::Delete(delete), fields)
            }
            Tree::Merge(merge) => (Plan::Merge(Box::new(self.merge(merge)?)), Vec::new()),
            _ => return Err(unsupported("this statement here")),
        })
    }

    /// Returns the columns of a result as clients see them; none without a result.
    fn fields_of_result(&self, columns: Option<&[OutputColumn]>) -> Vec<ResultColumn> {
        let field = |OutputColumn { column, origin, at: _ }: &OutputColumn| {
            let ty = oid_of(&column.ty);
            ResultColumn {
                name: column.name.clone(),
                type_oid: ty,
                type_modifier: if is_record(ty) { -1 } else { typmod_of(&column.ty) },
                base: user::is_domain(ty).then(|| self.base_type(ty).ok()).flatten(),
                table: origin.map(|(id, _)| id),
                column: origin.map_or(0, |(_, number)| number),
            }
        };
        columns.unwrap_or_default().iter().map(field).collect()
    }

    /// Makes a statement of the plan and of the definitions that binding has met.
    fn finish(mut self, plan: Plan, fields: Vec<ResultColumn>) -> Result<Bound> {
        if let Some(number) = self.parameters.iter().position(|ty| *ty == 0 || *ty == oid::UNKNOWN) {
            let text = format!("could not determine data type of parameter ${}", number + 1);
            return Err(PgError::new(state::INDETERMINATE_DATATYPE, text));
        }
        let denied = self.check_needs().err();
        let mut locked = self.tables.clone();
        locked.extend(self.linked.drain(..).filter(|table| !self.tables.iter().any(|known| known.id == table.id)));
        let plan = self.with_parts(plan);
        self.volatile |= self.environment.session.depends_on_values();
        let (tables, named, views) = (self.tables, self.named, self.views);
        let bindings = Bindings { tables, named, locked, views, planned_with: self.known };
        let statement = Arc::new(BoundStatement::new(plan, bindings, self.volatile, 0));
        let (parameter_types, user_types, temporaries) = (self.parameters, self.user_types, self.temporaries);
        Ok(Bound { statement, parameter_types, fields, user_types, temporaries, denied })
    }

    /// Gives an error its position.
    fn error(&self, error: PgError, at: u32) -> PgError {
        // A view's text is not the statement's.
        if self.open_views.is_empty() { error.at(self.text, at as usize) } else { error }
    }

    fn fail<T>(&self, state: &'static str, text: impl Into<String>, at: u32) -> Result<T> {
        Err(self.error(PgError::new(state, text), at))
    }

    /// Counts an expression, and looks for interrupts between many.
    fn count_node(&mut self) -> Result<()> {
        self.nodes += 1;
        if self.nodes.is_multiple_of(1024) { self.environment.session.check_interrupts() } else { Ok(()) }
    }

    /// Returns an operand that the bound tree has twice. Copies within copies double, so their nodes are bounded.
    fn copy(&mut self, expr: &Expr) -> Result<Expr> {
        expr.walk(&mut |_| self.copied += 1);
        match self.copied <= COPIED_MAX {
            true => Ok(expr.clone()),
            false => Err(PgError::new(
                state::STATEMENT_TOO_COMPLEX,
                "nested expressions need too many copies of their operands",
            )),
        }
    }

    fn copy_operand(&mut self, operand: &Operand) -> Result<Operand> {
        Ok(Operand { expr: self.copy(&operand.expr)?, at: operand.at })
    }

    fn new_id(&mut self) -> usize {
        self.next_id += 1;
        self.next_id
    }

    fn scope(&mut self) -> &mut BlockScope {
        self.scopes.last_mut().unwrap_or_else(|| unreachable!("an expression is bound within a scope"))
    }

    fn open_scope(&mut self) {
        self.scopes.push(BlockScope::default());
    }

    fn close_scope(&mut self) -> BlockScope {
        self.scopes.pop().unwrap_or_default()
    }

    /// Returns `$n`, with its type as far as it is known.
    fn parameter(&mut self, number: u32, at: u32) -> Result<Operand> {
        let place = (number as usize).wrapping_sub(1);
        if number == 0 || place >= PARAMETERS_MAX || self.has_no_parameters {
            return self.fail(state::UNDEFINED_PARAMETER, format!("there is no parameter ${number}"), at);
        }
        if self.parameters.len() <= place {
            self.parameters.resize(place + 1, 0);
        }
        let ty = if self.parameters[place] == 0 { oid::UNKNOWN } else { self.parameters[place] };
        if crate::types::registry::by_oid(ty).is_none() {
            return Err(self.error(unsupported(format!("a parameter of type {}", typing::shown(ty))), at));
        }
        let expr = Expr::Parameter(place, crate::types::registry::column_type(ty, -1, true));
        // The value was read as one of the base type.
        let expr = self.checked_parameter(expr, ty)?;
        Ok(Operand { expr, at })
    }

    /// Returns an operand that is bound a second time: a parameter has the type that was deduced since.
    fn deduced(&self, mut operand: Operand) -> Operand {
        if let Expr::Parameter(place, ty) = &mut operand.expr {
            let known = self.parameters.get(*place).copied().filter(|known| *known != 0);
            *ty = known.map_or_else(|| ty.clone(), |known| crate::types::registry::column_type(known, -1, true));
        }
        operand
    }

    fn set_parameter(&mut self, place: usize, ty: Oid) {
        if let Some(known) = self.parameters.get_mut(place) {
            *known = ty;
        }
    }

    /// Counts nodes above the plan bound so far for the current query.
    fn rise(&mut self, nodes: usize) -> Result<()> {
        self.height += nodes;
        self.weight += nodes;
        if self.weight > WEIGHT_MAX {
            let text = format!("views and common table expressions come to more than {WEIGHT_MAX} plan nodes");
            return Err(PgError::new(state::PROGRAM_LIMIT_EXCEEDED, text));
        }
        if self.height > HEIGHT_MAX {
            let text = format!("the plan is more than {HEIGHT_MAX} nodes high");
            return Err(PgError::new(state::STATEMENT_TOO_COMPLEX, text));
        }
        Ok(())
    }

    /// Binding takes more stack for a level than whatever walks the bound tree afterwards, so it may use half.
    fn check_stack(&self) -> Result<()> {
        match stdx::stack::is_half_free() {
            true => Ok(()),
            false => Err(PgError::new(state::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded")),
        }
    }
}

/// The greatest number of a parameter: it has 16 bits in the protocol.
const PARAMETERS_MAX: usize = 65535;

/// The greatest height of a plan (joins, derived tables, views, chained WITH tables); planner and executor recurse.
const HEIGHT_MAX: usize = 1600;

/// The most nodes of expressions that are bound a second time.
const COPIED_MAX: usize = 250_000;

/// The most nodes of a plan. Each reference to a common table expression counts all of its nodes.
const WEIGHT_MAX: usize = 100_000;

#[cfg(test)]
mod tests;

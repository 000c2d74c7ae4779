//! Changes through views: a view over one table whose rows are rows of that table stands for it.
//!
//! The change is one of the table. Names reach the view's columns, which are expressions over the table's row; the view's conditions join those of the statement; and WITH CHECK OPTION becomes conditions that new rows
//! must satisfy.

use std::sync::Arc;

use query::catalog::table::Table;
use query::catalog::view::{CheckOption, View};
use query::nodes::context::EvalContext;
use query::nodes::expr::Expr;
use query::nodes::walk::{conjuncts, has_subquery};
use syntax::postgres::tree::{Select, SelectBody, SelectStmt, Statement, TableRef};

use crate::bind::from::FoundRelation;
use crate::bind::rights::ChangedNeed;
use crate::bind::rules::MAKER;
use crate::bind::scope::{Clause, NameColumn, NameItem, Presence};
use crate::bind::typing::unsupported;
use crate::bind::walk::has_aggregate;
use crate::bind::{Binder, Environment};
use crate::error::{PgError, Result, state};
use crate::rights::privilege::{self, Privileges};

/// The statement that changes rows through a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Insert,
    Update,
    Delete,
}

impl Verb {
    /// Returns the privilege that the change needs.
    pub fn privilege(self) -> Privileges {
        match self {
            Verb::Insert => privilege::INSERT,
            Verb::Update => privilege::UPDATE,
            Verb::Delete => privilege::DELETE,
        }
    }
}

/// A view as the table that is changed through it. All expressions are over the row of the table, at the beginning of the wide row.
#[derive(Clone, Debug)]
pub struct ChangedView {
    pub name: String,
    /// The need of the table, which is its view's owner's.
    pub need: ChangedNeed,
    pub columns: Vec<NameColumn>,
    /// The conditions of the rows that are seen, each with the name of its view.
    pub conditions: Vec<(String, Expr)>,
    /// The conditions of new rows, each with the name of its view.
    pub options: Vec<(String, Expr)>,
}

/// The verb with the view, as in errors: `cannot insert into view`.
fn refused(view: &View, verb: Verb, detail: &str) -> PgError {
    let (verb, doing, event) = match verb {
        Verb::Insert => ("insert into", "inserting into", "INSERT"),
        Verb::Update => ("update", "updating", "UPDATE"),
        Verb::Delete => ("delete from", "deleting from", "DELETE"),
    };
    let error = PgError::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, format!("cannot {verb} view \"{}\"", view.name));
    error.detail(detail).hint(format!(
        "To enable {doing} the view, provide an INSTEAD OF {event} trigger or an unconditional ON {event} DO INSTEAD rule."
    ))
}

/// Returns the part of a view's query by which its rows are not those of one table.
fn obstacle(query: &SelectStmt) -> Option<&'static str> {
    let SelectBody::Select(select) = &query.body else {
        return Some("Views containing UNION, INTERSECT, or EXCEPT are not automatically updatable.");
    };
    let is_of_one =
        matches!(&select.from[..], [item] if item.joins.is_empty() && matches!(item.first, TableRef::Relation(_)));
    match () {
        () if select.distinct.is_some() => Some("Views containing DISTINCT are not automatically updatable."),
        () if !select.group_by.is_empty() => Some("Views containing GROUP BY are not automatically updatable."),
        () if select.having.is_some() => Some("Views containing HAVING are not automatically updatable."),
        () if query.with.is_some() => Some("Views containing WITH are not automatically updatable."),
        () if query.limit.is_some() => Some("Views containing LIMIT or OFFSET are not automatically updatable."),
        () if select.targets.iter().any(|target| has_aggregate(&target.expr)) => {
            Some("Views that return aggregate functions are not automatically updatable.")
        }
        () if !is_of_one => {
            Some("Views that do not select from a single table or view are not automatically updatable.")
        }
        () => None,
    }
}

impl Binder<'_> {
    /// Returns the table behind a view, and the view over it.
    pub fn changed_view(&mut self, view: &Arc<View>, verb: Verb) -> Result<(Arc<Table>, ChangedView)> {
        if view.maker != MAKER {
            return Err(unsupported(format!("the view \"{}\" of another dialect", view.name)));
        }
        self.check_stack()?;
        if self.open_views.contains(&view.id) {
            let text = format!("infinite recursion detected in rules for relation \"{}\"", view.name);
            return Err(PgError::new(state::INVALID_OBJECT_DEFINITION, text));
        }
        if !self.views.iter().any(|known| known.id == view.id) {
            self.views.push(view.clone());
        }
        let meaningless = || PgError::new(state::DATA_CORRUPTED, format!("view \"{}\" has no query", view.name));
        let statements = syntax::postgres::parse_script(&view.text, &|| false).map_err(|_| meaningless())?;
        let [statement] = &statements[..] else { return Err(meaningless()) };
        let Statement::Select(query) = &statement.statement else { return Err(meaningless()) };
        if let Some(detail) = obstacle(query) {
            return Err(refused(view, verb, detail));
        }
        let SelectBody::Select(select) = &query.body else { return Err(meaningless()) };
        self.open_views.push(view.id);
        let path = view.modes.split(',').filter(|schema| !schema.is_empty()).map(str::to_owned).collect();
        let path = std::mem::replace(&mut self.search_path, path);
        let seen = self.view_definitions.replace(self.environment.snapshot.seen_by_view(view));
        let (commons, keyed) = (std::mem::take(&mut self.commons), std::mem::take(&mut self.keyed));
        let has_no_parameters = std::mem::replace(&mut self.has_no_parameters, true);
        let need = self.need_of_view(view);
        self.need_whole(need, verb.privilege());
        let depth = self.scopes.len();
        let bound = self.with_rights_of(view, |binder| binder.view_over_table(view, select, verb, Some(need)));
        self.scopes.truncate(depth);
        self.has_no_parameters = has_no_parameters;
        (self.commons, self.keyed) = (commons, keyed);
        (self.search_path, self.view_definitions) = (path, seen);
        self.open_views.pop();
        bound
    }

    fn view_over_table(
        &mut self,
        view: &Arc<View>,
        select: &Select,
        verb: Verb,
        need: Option<ChangedNeed>,
    ) -> Result<(Arc<Table>, ChangedView)> {
        let single = "Views that do not select from a single table or view are not automatically updatable.";
        let [item] = &select.from[..] else { return Err(refused(view, verb, single)) };
        let TableRef::Relation(relation) = &item.first else { return Err(refused(view, verb, single)) };
        if relation.sample.is_some() {
            return Err(refused(view, verb, "Views containing TABLESAMPLE are not automatically updatable."));
        }
        let (table, below, (below_need, was_needed, base_need)) = match self.find_relation(&relation.name)? {
            FoundRelation::Table(table) => {
                let need = self.need_of_table(&table);
                (table, None, (need, self.is_selected(need), need))
            }
            FoundRelation::View(view) => {
                let own = self.need_of_view(&view);
                let was_needed = self.is_selected(own);
                let (table, below) = self.changed_view(&view, verb)?;
                let base = below.need;
                (table, Some(below), (own, was_needed, base))
            }
            FoundRelation::System(_) | FoundRelation::Sequence(_) => return Err(refused(view, verb, single)),
        };
        let shown = relation.alias.as_ref().map_or(relation.name.name.as_str(), |alias| alias.name.value.as_str());
        self.open_scope();
        self.add_target(&table, shown);
        if let Some(below) = &below {
            let item = below.names(shown);
            self.scope().names = vec![item];
        }
        if let Some(alias) = &relation.alias {
            let mut item = self.scope().names.swap_remove(0);
            self.rename(&mut item, &alias.columns)?;
            self.scope().names.push(item);
        }
        let mut own = Vec::new();
        if let Some(selection) = &select.selection {
            self.set_clause(Clause::Where);
            conjuncts(self.condition(selection, "WHERE")?, &mut own);
        }
        let items = self.items(&select.targets)?;
        let targets = self.targets(&items, Clause::SelectList, false)?;
        if !self.scope().sets.calls.is_empty() {
            let detail = "Views that return set-returning functions are not automatically updatable.";
            return Err(refused(view, verb, detail));
        }
        if self.scope().windowed.is_used() {
            let detail = "Views that return window functions are not automatically updatable.";
            return Err(refused(view, verb, detail));
        }
        self.close_scope();
        self.need_through(need, below_need, was_needed);
        if own.iter().chain(targets.iter().map(|target| &target.expr)).any(has_subquery) {
            return Err(unsupported(format!("a change through view \"{}\", which has a subquery,", view.name)));
        }
        let column = |(target, name): (crate::bind::select::Target, &String)| NameColumn {
            name: name.clone(),
            expr: target.expr,
            origin: None,
            is_hidden: false,
            is_unexpanded: false,
        };
        let mut columns: Vec<NameColumn> = targets.into_iter().zip(&view.columns).map(column).collect();
        for (nth, column) in columns.iter_mut().enumerate() {
            column.origin = Some((view.id, nth as u16 + 1));
        }
        if verb != Verb::Delete && !columns.iter().any(|column| matches!(column.expr, Expr::Column(..))) {
            let detail = "Views that have no updatable columns are not automatically updatable.";
            return Err(refused(view, verb, detail));
        }
        let (mut conditions, mut options) = match below {
            Some(below) => (below.conditions, below.options),
            None => (Vec::new(), Vec::new()),
        };
        let own = own.into_iter().map(|condition| (view.name.clone(), condition));
        match view.check {
            CheckOption::None => conditions.extend(own),
            CheckOption::Local => {
                let own: Vec<_> = own.collect();
                options.extend(own.iter().cloned());
                conditions.extend(own);
            }
            CheckOption::Cascaded => {
                conditions.extend(own);
                options.clone_from(&conditions);
            }
        }
        Ok((table, ChangedView { name: view.name.clone(), need: base_need, columns, conditions, options }))
    }
}

impl ChangedView {
    /// Returns the conditions of the rows that are seen.
    pub fn rows(&self) -> impl Iterator<Item = Expr> {
        self.conditions.iter().map(|(_, condition)| condition.clone())
    }

    /// Returns the names by which a statement reaches the view's columns.
    pub fn names(&self, shown: &str) -> NameItem {
        NameItem {
            alias: shown.to_owned(),
            schema: None,
            table_name: Some(self.name.clone()),
            columns: self.columns.clone().into(),
            is_relation_visible: true,
            is_scalar: false,
            composite: None,
            presence: Presence::Always,
            are_columns_visible: true,
        }
    }

    /// Returns the column of the table behind a column of the view.
    pub fn base_column(&self, name: &str, verb: &str) -> Result<Option<usize>> {
        let Some(column) = self.columns.iter().find(|column| column.name == name) else { return Ok(None) };
        match &column.expr {
            Expr::Column(at, _) => Ok(Some(*at)),
            _ => {
                let text = format!("cannot {verb} column \"{name}\" of view \"{}\"", self.name);
                let detail = "View columns that are not columns of their base relation are not updatable.";
                Err(PgError::new(state::FEATURE_NOT_SUPPORTED, text).detail(detail))
            }
        }
    }
}

/// Fails if a view of this query could not be changed through.
pub fn check_updatable(
    environment: &Environment<'_>,
    ctx: &mut EvalContext,
    text: &str,
    statement: &Statement,
) -> Result<()> {
    let Statement::Select(query) = statement else { return Err(unsupported("a view of this statement")) };
    let view = Arc::new(View { name: "view".to_owned(), maker: MAKER, ..View::default() });
    if let Some(detail) = obstacle(query) {
        return Err(refused(&view, Verb::Update, detail));
    }
    let SelectBody::Select(select) = &query.body else { return Err(unsupported("a view of this statement")) };
    Binder::new(environment, ctx, text).view_over_table(&view, select, Verb::Delete, None).map(drop)
}

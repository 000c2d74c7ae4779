//! CREATE VIEW.
//!
//! A view keeps the text of its query and the `search_path` in which it was made. A `*` is replaced by the columns that it means at that time.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use query::catalog::view::{CheckOption, View};
use syntax::postgres::tree::{
    self, ExprKind, Persistence, RangeVar, RawStatement, SelectBody, SelectStmt, Span, Statement, ViewStmt,
};

use crate::bind::ResultColumn;
use crate::define::create_table::check_column_count;
use crate::define::names::{Relation, not_a};
use crate::define::owner::NewObject;
use crate::error::{PgError, Result, state};
use crate::rights::object::Object;
use crate::session::{Session, is_on, quoted};
use crate::types::registry;

impl Session {
    pub(super) fn create_view(&mut self, create: &ViewStmt, text: &Arc<str>) -> Result<()> {
        let ViewStmt { view: name, persistence, replace, recursive, columns, options, query, query_span, check_option } =
            create;
        if *recursive {
            return Err(PgError::unsupported("CREATE RECURSIVE VIEW"));
        }
        let mut invoker = false;
        for option in options {
            match &*option.name {
                "security_invoker" => invoker = is_on(option),
                name => return Err(PgError::unsupported(format!("the view option {name}"))),
            }
        }
        let raw = raw_of(query, *query_span);
        // The privileges of the view's owner count when it is read.
        let bound = self.bind_unchecked(&raw, text, &[], &[])?;
        if !bound.parameter_types.is_empty() {
            let message = "views must not contain parameters";
            return Err(PgError::new(state::UNDEFINED_PARAMETER, message));
        }
        let persistence = match (persistence, bound.temporaries.is_empty()) {
            (Persistence::Permanent, false) => {
                let message = format!("view \"{}\" will be a temporary view", name.name);
                self.skip_notice(super::SUCCESSFUL, message);
                Persistence::Temporary
            }
            _ => *persistence,
        };
        if check_option.is_some()
            && let Err(error) = self.check_updatable(&raw, text)
        {
            let message = "WITH CHECK OPTION is supported only on automatically updatable views";
            let refused = PgError::new(state::FEATURE_NOT_SUPPORTED, message);
            return Err(match error.detail {
                Some(detail) => refused.hint(detail),
                None => error,
            });
        }
        let mut fields = bound.fields;
        check_column_count(fields.len())?;
        if columns.len() > fields.len() {
            let message = "CREATE VIEW specifies more column names than columns";
            return Err(PgError::new(state::SYNTAX_ERROR, message));
        }
        fields.iter_mut().zip(columns).for_each(|(field, name)| field.name.clone_from(&name.value));
        let (schema, temporary) = self.creation_place(name, persistence)?;
        self.check_creation(&schema, temporary)?;
        for (nth, field) in fields.iter().enumerate() {
            if fields[..nth].iter().any(|other| other.name == field.name) {
                let message = format!("column \"{}\" specified more than once", field.name);
                return Err(PgError::new(state::DUPLICATE_COLUMN, message));
            }
            if registry::by_oid(field.type_oid).is_none_or(|row| !row.kind.has_values()) {
                let message = format!(
                    "column \"{}\" has pseudo-type {}",
                    field.name,
                    registry::format_type(field.type_oid, None)
                );
                return Err(PgError::new(state::INVALID_TABLE_DEFINITION, message));
            }
        }
        let source = self.expanded(query, *query_span, text)?;
        let old = self.replaced(&schema, name, *replace, &fields)?;
        let types =
            fields.iter().map(|field| registry::column_type(field.type_oid, field.type_modifier, true)).collect();
        if let Some(old) = &old {
            self.check_owns(&Object::view(old))?;
            if old.columns.len() != fields.len() {
                self.check_no_rows(&self.catalog.clone(), old.id, "view", &old.name)?;
            }
        }
        let is_new = old.is_none();
        let (search_path, owner) = (self.search_path(), self.current_identity().current);
        let db = self.database().clone();
        let mut writing = self.write_of(&db, temporary)?;
        let id = match &old {
            Some(old) => old.id,
            None => writing.new_id(),
        };
        writing.put_view(View {
            id,
            maker: crate::MAKER,
            schema: schema.clone(),
            name: name.name.clone(),
            columns: fields.into_iter().map(|field| field.name).collect(),
            types,
            text: source,
            definer: self.role_name(),
            invoker,
            modes: search_path.join(","),
            check: match check_option {
                None => CheckOption::None,
                Some(tree::CheckOption::Local) => CheckOption::Local,
                Some(tree::CheckOption::Cascaded) => CheckOption::Cascaded,
            },
            temporary,
            reads: bound.temporaries.into_iter().collect(),
            // Whoever replaces it owns the new text.
            owner,
            gone: AtomicBool::new(false),
            ..View::default()
        })?;
        if is_new && !temporary {
            self.own(&mut writing, NewObject::relation(id, &schema))?;
        }
        self.finish(writing)
    }

    /// Fails if a view of this query cannot be changed through.
    fn check_updatable(&mut self, raw: &RawStatement, text: &str) -> Result<()> {
        self.with_environment(&[], |environment, ctx| {
            crate::bind::check_updatable(environment, ctx, text, &raw.statement)
        })
    }

    /// Returns the view that is replaced. Its columns must be the first of the new one.
    fn replaced(
        &mut self,
        schema: &str,
        name: &RangeVar,
        replace: bool,
        fields: &[ResultColumn],
    ) -> Result<Option<Arc<View>>> {
        let old = match self.is_relation(schema, &name.name) {
            None => {
                self.refuse_type_name(&self.catalog, schema, &name.name)?;
                return Ok(None);
            }
            Some(_) if !replace => {
                let message = format!("relation \"{}\" already exists", name.name);
                return Err(PgError::new(state::DUPLICATE_TABLE, message));
            }
            Some(Relation::View(view)) => view,
            Some(_) => return Err(not_a(&name.name, "view")),
        };
        if fields.len() < old.columns.len() {
            return Err(PgError::new(state::INVALID_TABLE_DEFINITION, "cannot drop columns from view"));
        }
        for ((field, column), ty) in fields.iter().zip(&old.columns).zip(&old.types) {
            if field.name != *column {
                let message = format!("cannot change name of view column \"{column}\" to \"{}\"", field.name);
                let error = PgError::new(state::INVALID_TABLE_DEFINITION, message);
                let hint = "Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead.";
                return Err(error.hint(hint));
            }
            if registry::oid_of(ty) != field.type_oid {
                let message = format!(
                    "cannot change data type of view column \"{column}\" from {} to {}",
                    registry::format_type(registry::oid_of(ty), Some(registry::typmod_of(ty))),
                    registry::format_type(field.type_oid, Some(field.type_modifier)),
                );
                return Err(PgError::new(state::INVALID_TABLE_DEFINITION, message));
            }
        }
        Ok(Some(old))
    }

    /// Returns the text of the query with the columns that a `*` of its select list means.
    pub(super) fn expanded(&mut self, query: &SelectStmt, span: Span, text: &str) -> Result<String> {
        let source = text[span.start as usize..span.end as usize].trim();
        let is_star = |target: &syntax::postgres::tree::ResTarget| matches!(&target.expr.kind, ExprKind::Column(column) if column.star);
        let SelectBody::Select(select) = &query.body else {
            return Ok(source.to_owned());
        };
        let stars: Vec<usize> = (0..select.targets.len()).filter(|at| is_star(&select.targets[*at])).collect();
        let [star] = &stars[..] else {
            return match stars.is_empty() {
                true => Ok(source.to_owned()),
                false => Err(PgError::unsupported("a view with more than one * in its select list")),
            };
        };
        let bound = self.bind_unchecked(&raw_of(query, span), text, &[], &[])?;
        let others = select.targets.len() - 1;
        let columns = &bound.fields[*star..bound.fields.len() - (others - star)];
        let ExprKind::Column(column) = &select.targets[*star].expr.kind else { return Ok(source.to_owned()) };
        let qualifier: String = column.fields.iter().map(|part| quoted(part) + ".").collect();
        let list: Vec<String> = columns.iter().map(|field| format!("{qualifier}{}", quoted(&field.name))).collect();
        let at = select.targets[*star].expr.span;
        let (before, after) =
            (&text[span.start as usize..at.start as usize], &text[at.end as usize..span.end as usize]);
        Ok(format!("{before}{}{after}", list.join(", ")).trim().to_owned())
    }
}

fn raw_of(query: &SelectStmt, span: Span) -> RawStatement {
    RawStatement {
        statement: Statement::Select(Box::new(query.clone())),
        start: span.start as usize,
        end: span.end as usize,
        parameters: 0,
        height: 0,
    }
}

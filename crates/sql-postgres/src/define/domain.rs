//! CREATE DOMAIN and ALTER DOMAIN.
//!
//! A change of a domain's constraints gives each table with its values a new version under the table's exclusive metadata
//! lock. So rows that other transactions write meanwhile are checked too, and no bound generated column keeps the former
//! checks.

use std::collections::BTreeSet;
use std::sync::Arc;

use query::catalog::object_id::ObjectId;
use query::catalog::table::Table;
use query::catalog::user_type::{DomainCheck, DomainDefinition, TypeDefinition, UserType};
use query::nodes::expr::Expr as Bound;
use query::types::TypeId;
use syntax::postgres::tree::{
    AlterDomainAction, AlterDomainStmt, AnyName, Constraint, ConstraintKind, CreateDomainStmt, Expr, Ident,
};

use crate::bind::domain::{VALUE, value_table};
use crate::bind::{self, TableExpression};
use crate::define::composite::altered_type_of_column;
use crate::define::object_name::domain_check_name;
use crate::define::source::{after_word, balanced, within_parentheses};
use crate::error::{PgError, Result, state};
use crate::functions::state::StateOf as _;
use crate::session::Session;
use crate::types::{registry, user};

/// The most domains that are over each other.
const DEPTH_MAX: usize = 32;

/// A condition that the values of some columns are to satisfy from now on.
#[derive(Clone, Debug)]
pub(super) struct NewDomainCheck {
    pub columns: Vec<usize>,
    /// Over a row of the value. `None`: it must not be NULL.
    pub condition: Option<Arc<Bound>>,
}

/// Constraints that a domain cannot have.
fn refused_kind(kind: &ConstraintKind) -> Option<PgError> {
    let what = match kind {
        ConstraintKind::Unique(_) => "unique",
        ConstraintKind::PrimaryKey(_) => "primary key",
        ConstraintKind::Foreign(_) => "foreign key",
        ConstraintKind::Exclusion(_) => "exclusion",
        ConstraintKind::Identity { .. } => {
            return Some(PgError::new(state::INTERNAL_ERROR, "unrecognized constraint subtype: 3"));
        }
        ConstraintKind::Generated(_) => {
            let message = "specifying GENERATED not supported for domains";
            return Some(PgError::new(state::FEATURE_NOT_SUPPORTED, message));
        }
        _ => return None,
    };
    Some(PgError::new(state::SYNTAX_ERROR, format!("{what} constraints not possible for domains")))
}

fn missing_constraint(constraint: &str, domain: &str) -> PgError {
    let message = format!("constraint \"{constraint}\" of domain \"{domain}\" does not exist");
    PgError::new(state::UNDEFINED_OBJECT, message)
}

fn without_place(error: PgError) -> PgError {
    PgError { position: None, ..error }
}

impl Session {
    pub(super) fn create_domain(&mut self, create: &CreateDomainStmt, text: &str) -> Result<()> {
        let CreateDomainStmt { name, ty, collation, constraints } = create;
        let name = self.relation_name_of(name)?;
        let schema = self.creation_schema(&name)?;
        self.refuse_temporary_type(&schema)?;
        self.refuse_taken_type(&self.catalog.clone(), &schema, &name.name)?;
        let (base, typmod) = self
            .with_environment(&[], |environment, ctx| bind::bind_type_name(environment, ctx, text, ty))
            .map_err(without_place)?;
        let row = registry::by_oid(base).filter(|row| row.kind.has_values());
        let Some(row) = row else {
            let message = format!("\"{}\" is not a valid base type for a domain", ty.name.dotted());
            return Err(PgError::new(state::DATATYPE_MISMATCH, message));
        };
        if let Some(collation) = collation {
            if !row.is_collatable {
                let shown = registry::format_type(base, None);
                let message = format!("collations are not supported by type {shown}");
                return Err(PgError::new(state::DATATYPE_MISMATCH, message));
            }
            if !matches!(collation.last(), "C" | "POSIX" | "default") {
                return Err(PgError::unsupported(format!("collation \"{}\"", collation.last())));
            }
        }
        let inherited = self.inherited_default(base)?;
        let base_type = registry::column_type(base, typmod, true);
        let mut domain =
            DomainDefinition { base: base_type, default: inherited, is_not_null: false, checks: Vec::new() };
        let (mut null, mut has_default) = (None, false);
        for constraint in constraints {
            self.check_domain_constraint(constraint)?;
            match &constraint.kind {
                ConstraintKind::Default(expr) => {
                    if std::mem::replace(&mut has_default, true) {
                        return Err(PgError::new(state::SYNTAX_ERROR, "multiple default expressions"));
                    }
                    domain.default =
                        self.domain_default((&schema, &name.name), &domain, expr, constraint.at.0, text)?;
                }
                kind @ (ConstraintKind::Null | ConstraintKind::NotNull) => {
                    let is_not_null = *kind == ConstraintKind::NotNull;
                    if null.is_some_and(|known| known != is_not_null) {
                        return Err(PgError::new(state::SYNTAX_ERROR, "conflicting NULL/NOT NULL constraints"));
                    }
                    (null, domain.is_not_null) = (Some(is_not_null), is_not_null);
                }
                _ => {}
            }
        }
        let db = self.database().clone();
        let mut writing = self.write(&db)?;
        let id = writing.new_id();
        let numbers = match user::domain_oids(id, base) {
            Some(oids) => oids?.into_iter().map(TypeId).collect(),
            None => {
                let shown = registry::format_type(base, None);
                return Err(PgError::unsupported(format!("a domain over type {shown}")));
            }
        };
        for constraint in constraints {
            if let ConstraintKind::Check(expr) = &constraint.kind {
                let id = writing.new_id();
                let check = self.domain_check((&schema, &name.name), &domain, (constraint, expr), id, text)?;
                domain.checks.push(check);
            }
        }
        let (maker, name, comment) = (crate::MAKER, name.name, String::new());
        let definition = TypeDefinition::Domain(domain);
        writing.put_type(UserType { id, maker, schema, name, numbers, comment, definition })?;
        self.finish(writing)
    }

    /// Returns the default of a domain, which another domain over it begins with.
    fn inherited_default(&mut self, base: u32) -> Result<Option<String>> {
        let (mut inner, mut depth) = (base, 0);
        let mut default = None;
        while user::is_domain(inner) {
            let ty = user::definition(inner, &self.context().state().io)?;
            let domain = user::domain(&ty)?;
            if depth == 0 {
                default.clone_from(&domain.default);
            }
            (inner, depth) = (registry::oid_of(&domain.base), depth + 1);
        }
        match depth < DEPTH_MAX {
            true => Ok(default),
            false => {
                let message = format!("domains are over each other at most {DEPTH_MAX} times");
                Err(PgError::new(state::PROGRAM_LIMIT_EXCEEDED, message))
            }
        }
    }

    fn check_domain_constraint(&self, constraint: &Constraint) -> Result<()> {
        if let Some(error) = refused_kind(&constraint.kind) {
            return Err(error);
        }
        if constraint.no_inherit && matches!(constraint.kind, ConstraintKind::Check(_)) {
            let message = "check constraints for domains cannot be marked NO INHERIT";
            return Err(PgError::new(state::INVALID_OBJECT_DEFINITION, message));
        }
        if constraint.deferrable {
            let message = "specifying constraint deferrability not supported for domains";
            return Err(PgError::new(state::FEATURE_NOT_SUPPORTED, message));
        }
        Ok(())
    }

    /// Returns the text of a default; `None` for NULL.
    fn domain_default(
        &mut self,
        (schema, name): (&str, &str),
        domain: &DomainDefinition,
        expr: &Expr,
        at: u32,
        text: &str,
    ) -> Result<Option<String>> {
        let over = Arc::new(value_table(schema, name, domain));
        let kind = TableExpression::Default;
        let bound = self.with_environment(&[], |environment, ctx| {
            bind::bind_table_expression(environment, ctx, text, (&over, expr), kind, Some(0))
        });
        if matches!(bound.map_err(without_place)?, Bound::Literal(value, _) if value.is_null()) {
            return Ok(None);
        }
        let from = after_word(text, at as usize, "default");
        Ok(from.and_then(|from| balanced(text, from, expr.span.end as usize)).map(str::to_owned))
    }

    fn domain_check(
        &mut self,
        (schema, name): (&str, &str),
        domain: &DomainDefinition,
        (constraint, expr): (&Constraint, &Expr),
        id: ObjectId,
        text: &str,
    ) -> Result<DomainCheck> {
        let chosen = match &constraint.name {
            Some(Ident { value, .. }) if domain.checks.iter().any(|check| check.name == *value) => {
                let message = format!("constraint \"{value}\" for domain \"{name}\" already exists");
                return Err(PgError::new(state::DUPLICATE_OBJECT, message));
            }
            Some(given) => given.value.clone(),
            None => domain_check_name(self.catalog.schemas.get(schema).map(|schema| &**schema), name, &domain.checks),
        };
        let over = Arc::new(value_table(schema, VALUE, domain));
        let bound = self.with_environment(&[], |environment, ctx| {
            bind::bind_table_expression(environment, ctx, text, (&over, expr), TableExpression::Check, None)
        });
        bound.map_err(without_place)?;
        let text = within_parentheses(text, constraint.at.0 as usize).unwrap_or_default().to_owned();
        Ok(DomainCheck { id, name: chosen, text, is_validated: !constraint.not_valid })
    }

    /// Returns the domain of a name.
    pub(super) fn named_domain(&mut self, name: &AnyName) -> Result<Arc<UserType>> {
        let not_one = |oid: u32| {
            let message = format!("{} is not a domain", registry::format_type(oid, None));
            PgError::new(state::WRONG_OBJECT_TYPE, message)
        };
        let ty = self.user_type(name)?.map_err(not_one)?;
        user::domain(&ty)?;
        Ok(ty)
    }

    pub(super) fn alter_domain(&mut self, alter: &AlterDomainStmt, text: &str) -> Result<()> {
        let AlterDomainStmt { name, action } = alter;
        let ty = self.named_domain(name)?;
        let mut domain = user::domain(&ty)?.clone();
        let place = (&*ty.schema, &*ty.name);
        // The condition that the values must satisfy; an inner `None` is NOT NULL.
        let mut validated: Option<Option<String>> = None;
        match action {
            AlterDomainAction::SetDefault(None) => domain.default = None,
            AlterDomainAction::SetDefault(Some(expr)) => {
                domain.default = self.domain_default(place, &domain, expr, name.at.0, text)?;
            }
            AlterDomainAction::SetNotNull(is_not_null) => {
                if domain.is_not_null == *is_not_null {
                    return Ok(());
                }
                domain.is_not_null = *is_not_null;
                validated = is_not_null.then_some(None);
            }
            AlterDomainAction::AddConstraint(constraint) => {
                self.check_domain_constraint(constraint)?;
                let ConstraintKind::Check(expr) = &constraint.kind else {
                    return Err(PgError::unsupported("this constraint of a domain"));
                };
                let db = self.database().clone();
                let mut writing = self.write(&db)?;
                let id = writing.new_id();
                self.finish(writing)?;
                let check = self.domain_check(place, &domain, (constraint, expr), id, text)?;
                validated = check.is_validated.then(|| Some(check.text.clone()));
                domain.checks.push(check);
            }
            AlterDomainAction::DropConstraint { constraint, missing_ok, cascade: _ } => {
                let Some(at) = domain.checks.iter().position(|check| check.name == constraint.value) else {
                    let error = missing_constraint(&constraint.value, &ty.name);
                    if !missing_ok {
                        return Err(error);
                    }
                    self.skip_notice(super::SUCCESSFUL, error.message + ", skipping");
                    return Ok(());
                };
                domain.checks.remove(at);
            }
            AlterDomainAction::ValidateConstraint(constraint) => {
                let check = domain.checks.iter_mut().find(|check| check.name == constraint.value);
                let Some(check) = check else { return Err(missing_constraint(&constraint.value, &ty.name)) };
                if std::mem::replace(&mut check.is_validated, true) {
                    return Ok(());
                }
                validated = Some(Some(check.text.clone()));
            }
        }
        self.put_domain(&ty, domain, validated)
    }

    pub(super) fn drop_domain_check(&mut self, ty: &Arc<UserType>, name: &str) -> Result<()> {
        let mut domain = user::domain(ty)?.clone();
        domain.checks.retain(|check| check.name != name);
        self.put_domain(ty, domain, None)
    }

    /// ALTER DOMAIN ... RENAME CONSTRAINT.
    pub(super) fn rename_domain_constraint(&mut self, name: &AnyName, from: &str, to: &str) -> Result<()> {
        let ty = self.named_domain(name)?;
        let mut domain = user::domain(&ty)?.clone();
        let shown = registry::format_type(user::oid_of(&ty), None);
        let taken = domain.checks.iter().any(|check| check.name == to);
        let Some(check) = domain.checks.iter_mut().find(|check| check.name == from) else {
            let message = format!("constraint \"{from}\" for domain {shown} does not exist");
            return Err(PgError::new(state::UNDEFINED_OBJECT, message));
        };
        if taken {
            let message = format!("constraint \"{to}\" for domain {shown} already exists");
            return Err(PgError::new(state::DUPLICATE_OBJECT, message));
        }
        to.clone_into(&mut check.name);
        self.put_domain(&ty, domain, None)
    }

    /// Stores a changed domain, and gives the tables that have its values a new version. `validated` is a new condition of them, or NOT NULL.
    fn put_domain(
        &mut self,
        ty: &Arc<UserType>,
        domain: DomainDefinition,
        validated: Option<Option<String>>,
    ) -> Result<()> {
        let over = Arc::new(value_table(&ty.schema, VALUE, &domain));
        let condition = match &validated {
            Some(Some(text)) => {
                let bound = self.bind_text(&over, text, TableExpression::Check, None);
                Some(Arc::new(bound.map_err(without_place)?))
            }
            _ => None,
        };
        let family = self.domains_over(ty);
        let numbers: Vec<TypeId> = family.iter().filter_map(|ty| ty.numbers.first().copied()).collect();
        // Domains over arrays of these, and composite types with attributes of them.
        let mut containers = self.catalog.user_types_over(ty);
        containers.retain(|over| !family.iter().any(|known| known.id == over.id));
        let ids: BTreeSet<ObjectId> = family.iter().chain(&containers).map(|ty| ty.id).collect();
        let mut containing = self.catalog.types_containing(&ty.numbers);
        containing.retain(|number| !numbers.contains(number));
        let tables = self.own_tables();
        if validated.is_some() {
            self.refuse_containers(ty)?;
        }
        let db = self.database().clone();
        let mut writing = self.write(&db)?;
        writing.put_type(UserType { definition: TypeDefinition::Domain(domain), ..(**ty).clone() })?;
        self.finish(writing)?;
        for table in tables {
            let is_one = |number: &TypeId| numbers.contains(number) || containing.contains(number);
            let has_values = table.columns.iter().any(|column| is_one(&column.ty.id));
            if !has_values && !self.computes_by(&table, &ids) {
                continue;
            }
            let (condition, is_checked) = (condition.clone(), validated.is_some());
            self.change_table(&table, |_, draft, _| {
                let columns = draft.new.columns.iter().enumerate();
                let of_type = columns.filter(|(_, column)| numbers.contains(&column.ty.id) && !column.is_hidden());
                let columns = of_type.map(|(at, _)| at).collect();
                draft.domain_check = is_checked.then_some(NewDomainCheck { columns, condition });
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Returns a domain and those over it.
    fn domains_over(&self, ty: &Arc<UserType>) -> Vec<Arc<UserType>> {
        let mut family = vec![ty.clone()];
        let all: Vec<Arc<UserType>> = self.catalog.user_types().cloned().collect();
        let mut at = 0;
        while let Some(inner) = family.get(at).cloned() {
            at += 1;
            family.extend(all.iter().filter(|over| is_over(over, &inner, 0)).cloned());
        }
        family
    }

    /// Fails if a column has values that contain values of the domain: they are not searched.
    fn refuse_containers(&mut self, ty: &UserType) -> Result<()> {
        let arrays: Vec<u32> = ty.numbers.iter().skip(1).map(|number| number.0).collect();
        let mut column = arrays.into_iter().find_map(|array| self.column_with_type(array));
        for over in self.types_over(user::oid_of(ty)) {
            match &over.definition {
                _ if column.is_some() => break,
                TypeDefinition::Domain(_) => self.refuse_containers(&over)?,
                _ => column = self.column_with_type(user::oid_of(&over)),
            }
        }
        column.map_or(Ok(()), |column| Err(altered_type_of_column(ty, &column)))
    }

    /// Returns whether a generated column, or a column of an index, has values of one of the types.
    fn computes_by(&mut self, table: &Arc<Table>, types: &BTreeSet<ObjectId>) -> bool {
        let generated = table.columns.iter().enumerate();
        let texts: Vec<(usize, String)> = generated
            .filter_map(|(at, column)| column.generated.as_ref().map(|generated| (at, generated.text.clone())))
            .collect();
        texts.into_iter().any(|(at, text)| {
            let (_, used) = self.read_by(table, &text, TableExpression::Generated, Some(at));
            !used.is_disjoint(types)
        })
    }
}

/// Returns whether a domain is over the type, or over arrays of it: the place among the type's numbers.
pub(super) fn is_over(domain: &UserType, inner: &UserType, place: usize) -> bool {
    match &domain.definition {
        TypeDefinition::Domain(domain) => inner.numbers.get(place) == Some(&domain.base.id),
        TypeDefinition::Enumeration(_) | TypeDefinition::Composite(_) => false,
    }
}

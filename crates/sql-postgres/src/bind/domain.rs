//! Domains: the types behind them, and the checks of values that become theirs.
//!
//! Operators and functions take a value of a domain as one of its base type. A value becomes one of a domain through a
//! chain of calls of `DOMAIN_CHECK`, one for each constraint, each over a row of the value alone (PS-52).

use std::collections::BTreeSet;
use std::sync::Arc;

use datum::value::RecordType;
use query::catalog::objects::Object;
use query::catalog::table::{Table, TableColumn};
use query::catalog::user_type::{DomainDefinition, UserType};
use query::nodes::expr::{Call, Expr, Extra};
use query::types::{Collation, Type};

use crate::bind::coerce::{REFORM, call_of, common_type};
use crate::bind::typing::{Operand, retyped, shown};
use crate::bind::{Binder, TableExpression};
use crate::error::{PgError, Result, state};
use crate::functions::CastContext;
use crate::functions::array::construct::EACH;
use crate::functions::domain::{DOMAIN_CHECK, DOMAIN_FIELDS};
use crate::types::oid::Oid;
use crate::types::record::is_row;
use crate::types::registry::{self, column_type};
use crate::types::user;

/// The constraints of a domain and of those that it is over.
#[derive(Debug)]
pub struct DomainRules {
    is_not_null: bool,
    /// Names and conditions, those of inner domains first.
    checks: Vec<(Box<str>, Arc<Expr>)>,
}

/// Returns a table of one column, over which a domain's expressions are bound: `value`, or for a default the domain's name, which errors show.
pub fn value_table(schema: &str, column: &str, domain: &DomainDefinition) -> Table {
    let column = TableColumn::new(column.to_owned(), domain.base.clone().with_nullable(true), 0);
    let (schema, maker) = (schema.to_owned(), crate::MAKER);
    Table { schema, maker, ..Table::draft("", &[column]) }.with_derived_fields()
}

/// Returns the value as one of a type over the same values. A call keeps its type, on which its function may depend.
fn relabeled(expr: Expr, target: Oid, typmod: i32) -> Expr {
    match expr {
        Expr::Column(..) | Expr::Literal(..) | Expr::Parameter(..) | Expr::Outer { .. } => {
            retyped(expr, target, typmod)
        }
        other => call_of(&REFORM, vec![other], target, typmod),
    }
}

/// The name of the value in checks.
pub const VALUE: &str = "value";

impl Binder<'_> {
    fn domain_type(&self, ty: Oid) -> Result<Arc<UserType>> {
        match user::object_of(ty).and_then(|id| self.environment.snapshot.object(id)) {
            Some(Object::Type(found)) => Ok(found.clone()),
            _ => Err(PgError::new(state::INTERNAL_ERROR, format!("cache lookup failed for type {ty}"))),
        }
    }

    /// Returns the type behind a domain, with its modifier; another type as it is.
    pub fn base_type(&self, ty: Oid) -> Result<(Oid, i32)> {
        let (mut ty, mut typmod) = (ty, -1);
        while user::is_domain(ty) {
            let found = self.domain_type(ty)?;
            let base = &user::domain(&found)?.base;
            (ty, typmod) = (registry::oid_of(base), registry::typmod_of(base));
        }
        Ok((ty, typmod))
    }

    /// Returns the type as which operators and functions take values of a type: domains are replaced, in arrays too.
    pub fn flat(&self, ty: Oid) -> Result<Oid> {
        if !user::is_user_type(ty) && !user::is_domain(ty) {
            return Ok(ty);
        }
        let (base, _) = self.base_type(ty)?;
        match registry::element_of(base) {
            Some(element) if user::is_domain(element.oid) => {
                let element = self.flat(element.oid)?;
                Ok(registry::array_of(element).unwrap_or(base))
            }
            _ => Ok(base),
        }
    }

    pub fn flat_all(&self, types: &[Oid]) -> Result<Vec<Oid>> {
        types.iter().map(|ty| self.flat(*ty)).collect()
    }

    /// Returns whether values of the type are arrays of a domain's.
    pub fn is_array_of_domain(ty: Oid) -> bool {
        registry::element_of(ty).is_some_and(|element| user::is_domain(element.oid))
    }

    /// Returns a value of a domain as one of the base type.
    pub fn smashed(&self, operand: Operand) -> Result<Operand> {
        let ty = operand.oid();
        if !user::is_domain(ty) {
            return Ok(operand);
        }
        let (base, typmod) = self.base_type(ty)?;
        Ok(Operand { expr: relabeled(operand.expr, base, typmod), at: operand.at })
    }

    /// Returns the common type of expressions: a domain only if all are of it. `Err` has the two types that differ and the place of the second.
    pub fn common_of(&self, operands: &[&Operand]) -> Result<std::result::Result<Oid, (Oid, Oid, u32)>> {
        if let Some(first) = operands.first().map(|first| first.oid())
            && user::is_user_type(first)
            && operands.iter().all(|operand| operand.oid() == first)
        {
            return Ok(Ok(first));
        }
        let types = operands.iter().map(|operand| Ok((self.flat(operand.oid())?, operand.at)));
        Ok(common_type(&types.collect::<Result<Vec<_>>>()?))
    }

    /// Coerces to a domain. `None`: there is no such cast to its base type in the context.
    #[inline(never)]
    pub fn coerce_to_domain(&mut self, operand: Operand, target: Oid, context: CastContext) -> Result<Option<Expr>> {
        if operand.oid() == target {
            return Ok(Some(operand.expr));
        }
        self.user_types.extend(user::object_of(target));
        if operand.is_unknown() && matches!(operand.expr, Expr::Parameter(..)) {
            let value = self.coerce_unknown(operand, target, -1)?;
            return self.checked_value(value, target).map(|(value, _)| Some(value));
        }
        let (base, typmod) = self.base_type(target)?;
        let value = self.coerce_to(operand, base, typmod, context).map_err(|error| {
            // A row that does not fit is refused in the name of the domain.
            let refused = |ty: Oid| format!("cannot cast type record to {}", shown(ty));
            let is_row = error.state == state::CANNOT_COERCE && error.message == refused(base);
            PgError { message: if is_row { refused(target) } else { error.message }, ..error }
        })?;
        value.map(|value| self.checked(value, target)).transpose()
    }

    /// Puts the checks of a domain around a value.
    pub fn checked(&mut self, value: Expr, domain: Oid) -> Result<Expr> {
        self.check_stack()?;
        let rules = self.domain_rules(domain)?;
        let mut value = relabeled(value, domain, -1);
        let not_null = rules.is_not_null.then_some((None, ""));
        let checks = rules.checks.iter().map(|(name, check)| (Some(check.clone()), &**name));
        for (each, name) in not_null.into_iter().chain(checks) {
            let extra = Extra { each, text: name.into(), ..Extra::default() };
            let ty = column_type(domain, -1, true);
            let (function, arguments) = (&DOMAIN_CHECK, vec![value]);
            value = Expr::Call(Box::new(Call { function, arguments, ty, collation: Collation::Binary, extra }));
        }
        Ok(value)
    }

    fn domain_rules(&mut self, domain: Oid) -> Result<Arc<DomainRules>> {
        if let Some((_, rules)) = self.domain_rules.iter().find(|(known, _)| *known == domain) {
            return Ok(rules.clone());
        }
        let mut chain = Vec::new();
        let mut inner = domain;
        while user::is_domain(inner) {
            let ty = self.domain_type(inner)?;
            inner = registry::oid_of(&user::domain(&ty)?.base);
            chain.push(ty);
        }
        let (mut is_not_null, mut checks) = (false, Vec::new());
        for ty in chain.iter().rev() {
            let definition = user::domain(ty)?;
            is_not_null |= definition.is_not_null;
            let table = Arc::new(value_table(&ty.schema, VALUE, definition));
            let mut own: Vec<_> = definition.checks.iter().collect();
            own.sort_by(|a, b| a.name.cmp(&b.name));
            for check in own {
                // Types that the check names, and the places of names, are those of the domain, not of its user.
                let kept = (std::mem::take(&mut self.user_types), self.name_sites.take());
                let bound = self.definition(&table, &check.text, TableExpression::Check, None);
                (self.user_types, self.name_sites) = kept;
                checks.push((check.name.as_str().into(), Arc::new(bound?)));
            }
        }
        let rules = Arc::new(DomainRules { is_not_null, checks });
        self.domain_rules.push((domain, rules.clone()));
        Ok(rules)
    }

    /// Returns the default of a domain as a value of it, or NULL.
    pub fn default_of_domain(&mut self, domain: Oid) -> Result<Expr> {
        let ty = self.domain_type(domain)?;
        let definition = user::domain(&ty)?;
        let value = match &definition.default {
            Some(text) => {
                let table = Arc::new(value_table(&ty.schema, &ty.name, definition));
                let name_sites = self.name_sites.take();
                let bound = self.definition(&table, text, TableExpression::Default, Some(0));
                self.name_sites = name_sites;
                bound?
            }
            None => Expr::Literal(crate::value::Value::Null, definition.base.clone().with_nullable(true)),
        };
        match self.coerce_to_domain(Operand { expr: value, at: 0 }, domain, CastContext::Assignment)? {
            Some(value) => Ok(value),
            None => Err(PgError::new(state::DATA_CORRUPTED, "the default of a domain is of another type")),
        }
    }

    /// Puts the checks around a value that was read as one of a type whose parts are domains.
    pub fn checked_parts(&mut self, value: Expr) -> Result<Expr> {
        let ty = value.ty();
        let of = registry::oid_of(&ty);
        let is_composite =
            is_row(of) || registry::element_of(of).is_some_and(|element| user::is_composite(element.oid));
        if is_composite { self.checked_value(value, of).map(|(checked, _)| checked) } else { Ok(value) }
    }

    /// Puts the checks around a literal that was read as one of a type whose parts are domains. They are evaluated at once, as input functions do.
    pub fn checked_literal(&mut self, literal: Expr, at: u32) -> Result<Expr> {
        let ty = literal.ty();
        match self.checked_parts(literal)? {
            literal @ Expr::Literal(..) => Ok(literal),
            checks => {
                let value = checks.eval(&[], self.ctx).map_err(PgError::from);
                Ok(Expr::Literal(value.map_err(|error| self.error(error, at))?, ty))
            }
        }
    }

    /// Returns the checks of the fields of rows: an expression over a row of the row. `None`: there are none.
    fn checks_of_fields(&mut self, ty: &Type) -> Result<Option<Arc<Expr>>> {
        let of = registry::oid_of(ty);
        if let Some((_, known)) = self.field_checks.iter().find(|(known, _)| *known == of) {
            return Ok(known.clone());
        }
        let is_composite = user::is_composite(of);
        let row = self.row_type_of(ty).filter(|_| !is_composite || self.has_domain_within(of));
        let checks = match row {
            Some(row) => self.fields_with_checks(&row, ty)?,
            None => None,
        };
        if is_composite {
            self.field_checks.push((of, checks.clone()));
        }
        Ok(checks)
    }

    fn fields_with_checks(&mut self, row: &Arc<RecordType>, ty: &Type) -> Result<Option<Arc<Expr>>> {
        self.check_stack()?;
        let whole = Expr::Column(0, ty.clone());
        let (mut fields, mut has_checks) = (Vec::with_capacity(row.fields.len()), false);
        for (place, field) in row.fields.iter().enumerate() {
            let value = self.field_at(whole.clone(), row, place);
            let (value, is_checked) = self.checked_value(value, field.number)?;
            has_checks |= is_checked;
            fields.push(value);
        }
        Ok(has_checks.then(|| Arc::new(self.row_of(row.clone(), fields))))
    }

    /// Puts the checks around a parameter of a type, which was read without them.
    pub fn checked_parameter(&mut self, value: Expr, ty: Oid) -> Result<Expr> {
        self.checked_value(value, ty).map(|(checked, _)| checked)
    }

    /// Puts the checks around a value that was read as one of the type without them, and tells whether there are any.
    fn checked_value(&mut self, value: Expr, ty: Oid) -> Result<(Expr, bool)> {
        if user::is_domain(ty) {
            let (base, typmod) = self.base_type(ty)?;
            let value = match self.has_domain_within(base) {
                true => self.checked_value(relabeled(value, base, typmod), base)?.0,
                false => value,
            };
            return Ok((self.checked(value, ty)?, true));
        }
        if Self::is_array_of_domain(ty) {
            let flat = relabeled(value, self.flat(ty)?, -1);
            return Ok((self.coerce_elements(flat, ty, (-1, CastContext::Explicit))?, true));
        }
        let element = registry::element_of(ty).filter(|element| user::is_composite(element.oid));
        let own = value.ty();
        let (row, is_array) = match element {
            Some(element) => (column_type(element.oid, -1, true), true),
            None if is_row(ty) => (own.clone(), false),
            None => return Ok((value, false)),
        };
        let Some(each) = self.checks_of_fields(&row)? else { return Ok((value, false)) };
        let checked = |value: Expr, ty: Type| {
            let extra = Extra { each: Some(each), ..Extra::default() };
            let (function, arguments) = (&DOMAIN_FIELDS, vec![value]);
            Expr::Call(Box::new(Call { function, arguments, ty, collation: Collation::Binary, extra }))
        };
        if !is_array {
            return Ok((checked(value, own), true));
        }
        let element = checked(Expr::Column(0, row.clone()), row);
        let extra = Extra { each: Some(Arc::new(element)), ..Extra::default() };
        let (function, arguments) = (&EACH, vec![value]);
        let call = Call { function, arguments, ty: own, collation: Collation::Binary, extra };
        Ok((Expr::Call(Box::new(call)), true))
    }

    /// Returns the checks of values of a type that were read without them: an expression over a row of the value. `None`: there are none.
    pub fn checks_of_read(&mut self, ty: Oid) -> Result<Option<Expr>> {
        let place = Expr::Column(0, column_type(ty, -1, true));
        let (checks, has_checks) = self.checked_value(place, ty)?;
        Ok(Some(checks).filter(|checks| has_checks && !matches!(checks, Expr::Column(..))))
    }

    /// Returns whether values of a type are of domains, or have values of domains within.
    pub fn has_domain_within(&self, ty: Oid) -> bool {
        let (mut open, mut known) = (vec![ty], BTreeSet::new());
        while let Some(ty) = open.pop() {
            if has_domain(ty) {
                return true;
            }
            if let Some(row) = self.composite_row(ty) {
                open.extend(row.fields.iter().map(|field| field.number).filter(|field| known.insert(*field)));
            }
        }
        false
    }

    /// Refuses rows with domains where a function reads many of them.
    pub fn refuse_domains_in_rows(&self, ty: &Type, what: &str) -> Result<()> {
        let row = self.row_type_of(ty);
        match row.is_some_and(|row| row.fields.iter().any(|field| self.has_domain_within(field.number))) {
            true => Err(PgError::unsupported(format!("{what} of rows with a domain"))),
            false => Ok(()),
        }
    }
}

/// Returns whether values of the type are a domain's, or arrays of them.
fn has_domain(ty: Oid) -> bool {
    user::is_domain(ty) || registry::element_of(ty).is_some_and(|element| user::is_domain(element.oid))
}

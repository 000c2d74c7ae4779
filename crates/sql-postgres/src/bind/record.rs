//! Rows as values: ROW(...), whole rows of tables, fields, and casts to the row type of a relation.
//!
//! The type of such an expression is `record`; its modifier is the place of its fields in `Binder::row_types`. So fields are known wherever types go within the statement, and outside of it a row is a
//! plain record, which knows its fields by itself (PS-41).

use std::sync::Arc;

use datum::Array;
use datum::value::{RecordField, RecordType};
use query::nodes::expr::{Call, Case, Expr, Extra};
use query::nodes::function::Function;
use query::types::{Collation, Type};
use syntax::postgres::tree::{self, AnyName, ColumnRef, ExprKind, Ident, Indirection, RangeVar};

use crate::bind::Binder;
use crate::bind::from::FoundRelation;
use crate::bind::scope::{NameColumn, NameItem, Presence};
use crate::bind::typing::{Operand, oid_of, settled, shown, typmod_of_expr, unsupported};
use crate::error::{PgError, Result, state};
use crate::functions::CastContext;
use crate::functions::record::{ALL_NULL, FIELD, NONE_NULL, RECORD_IN, ROW, SET_FIELD};
use crate::functions::state::StateOf as _;
use crate::types::array;
use crate::types::foreign::{is_foreign, type_of as foreign_type};
use crate::types::io::IoContext;
use crate::types::oid::{self, Oid};
use crate::types::record::{anonymous_input, field, input, is_row, number_of_relation, type_of};
use crate::types::registry::{self, column_type};
use crate::types::{row_type, user};
use crate::value::Value;

/// The most fields of a row.
const FIELDS_MAX: usize = 1664;

/// Returns whether expressions of the type are rows without a type of their own, or arrays of them.
pub fn is_record(ty: Oid) -> bool {
    matches!(ty, oid::RECORD | oid::RECORD_ARRAY)
}

fn call_with(function: &'static Function, arguments: Vec<Expr>, ty: Type, extra: Extra) -> Expr {
    Expr::Call(Box::new(Call { function, arguments, ty, collation: Collation::Binary, extra }))
}

impl Binder<'_> {
    /// Returns a row type of these names and types.
    pub fn type_of_fields<'f>(&self, number: u32, fields: impl Iterator<Item = (&'f str, Type)>) -> Arc<RecordType> {
        let of = |(name, ty): (&str, Type)| {
            // A composite type tells its own fields.
            let record = self.row_type_of(&ty).filter(|_| is_record(registry::oid_of(&ty)));
            RecordField { record, ..field(name, &ty) }
        };
        Arc::new(RecordType { number, fields: fields.map(of).collect() })
    }

    /// Returns the type of a field as the statement has it.
    pub fn type_of_field(&mut self, field: &RecordField) -> Type {
        match &field.record {
            Some(row) => {
                let typmod = self.known_row_type(row.clone());
                column_type(field.number, typmod, true)
            }
            None => type_of(field),
        }
    }

    /// Returns the modifier under which the statement knows a row type.
    pub fn known_row_type(&mut self, ty: Arc<RecordType>) -> i32 {
        let known = self.row_types.iter().position(|known| *known == ty);
        let at = known.unwrap_or_else(|| {
            self.row_types.push(ty);
            self.row_types.len() - 1
        });
        i32::try_from(at).unwrap_or(-1)
    }

    /// Returns the fields of a row, or of the rows of an array, if the statement knows them.
    pub fn row_type_of(&self, ty: &Type) -> Option<Arc<RecordType>> {
        if let Some(row) = self.composite_row(registry::oid_of(ty)) {
            return Some(row);
        }
        let is_known = is_record(registry::oid_of(ty));
        usize::try_from(registry::typmod_of(ty))
            .ok()
            .filter(|_| is_known)
            .and_then(|at| self.row_types.get(at).cloned())
    }

    /// Returns the modifier of a polymorphic result: that of the first argument that is a row, or an array of rows.
    pub fn row_modifier(&self, arguments: &[Expr], result: Oid) -> i32 {
        if !is_record(result) {
            return -1;
        }
        let rows = arguments.iter().filter(|argument| is_record(oid_of(argument)));
        rows.map(typmod_of_expr).find(|typmod| *typmod >= 0).unwrap_or(-1)
    }

    /// Returns the row of these expressions, whose type is known.
    #[inline(never)]
    pub fn row_of(&mut self, ty: Arc<RecordType>, values: Vec<Expr>) -> Expr {
        let of = self.type_of_row(&ty).with_nullable(false);
        let extra = Extra { record: Some(ty), ..Extra::default() };
        call_with(&ROW, values, of, extra)
    }

    /// Returns the type of expressions whose values are rows of a row type.
    pub fn type_of_row(&mut self, row: &Arc<RecordType>) -> Type {
        match user::is_composite(row.number) {
            true => column_type(row.number, -1, true),
            false => {
                let typmod = self.known_row_type(row.clone());
                column_type(oid::RECORD, typmod, true)
            }
        }
    }

    /// Binds the items of a row; `table.*` stands for all columns of a table.
    pub fn row_items(&mut self, items: &[tree::Expr]) -> Result<Vec<Operand>> {
        let mut bound = Vec::with_capacity(items.len());
        for item in items {
            match &item.kind {
                ExprKind::Column(name) if name.star => {
                    let at = item.span.start;
                    let Some((depth, item)) = self.starred(&name.fields, at)? else {
                        bound.push(self.expr(item)?);
                        continue;
                    };
                    for column in item.columns.iter().filter(|column| !column.is_hidden && !column.is_unexpanded) {
                        bound.push(self.read(depth, column, at)?);
                    }
                }
                _ => bound.push(self.expr(item)?),
            }
        }
        Ok(bound)
    }

    /// Returns the table whose columns `fields.*` stands for.
    fn starred(&self, fields: &[String], at: u32) -> Result<Option<(usize, NameItem)>> {
        let [.., table] = fields else { return Ok(None) };
        let schema = fields.len().checked_sub(2).map(|nth| fields[nth].as_str());
        self.find_item(schema, table, at)
    }

    /// Binds ROW(...).
    #[inline(never)]
    pub fn row(&mut self, items: &[tree::Expr], at: u32) -> Result<Operand> {
        let items = self.row_items(items)?;
        if items.len() > FIELDS_MAX {
            let text = format!("ROW expressions can have at most {FIELDS_MAX} entries");
            return self.fail(state::TOO_MANY_COLUMNS, text, at);
        }
        let names: Vec<String> = (1..=items.len()).map(|nth| format!("f{nth}")).collect();
        let values: Vec<Expr> = items.into_iter().map(|item| item.expr).collect();
        let types = values.iter().map(settled_or_unknown);
        let ty = self.type_of_fields(oid::RECORD, names.iter().map(String::as_str).zip(types));
        Ok(Operand { expr: self.row_of(ty, values), at })
    }

    /// Returns the row of a table, a join or a function in FROM.
    #[inline(never)]
    pub fn whole_row(&mut self, depth: usize, item: &NameItem, at: u32) -> Result<Operand> {
        if item.is_scalar {
            return self.read(depth, &item.columns[0], at);
        }
        let columns: Vec<_> = item.columns.iter().filter(|column| !column.is_hidden).collect();
        let mut values = Vec::with_capacity(columns.len());
        for column in &columns {
            values.push(self.read(depth, column, at)?.expr);
        }
        let number = match columns.first().and_then(|column| column.origin) {
            Some((id, _)) if item.is_stored() => number_of_relation(id),
            _ => oid::RECORD,
        };
        let types: Vec<Type> = values.iter().map(|value| settled(&value.ty())).collect();
        // A stored table's row type has the names of its columns, whatever an alias calls them.
        let own_name = |column: &&NameColumn| {
            let (id, number) = column.origin.filter(|_| item.is_stored())?;
            let table = self.tables.iter().find(|table| table.id == id)?;
            table.columns.get(usize::from(number).checked_sub(1)?).map(|column| column.name.clone())
        };
        let names: Vec<String> =
            columns.iter().map(|column| own_name(column).unwrap_or_else(|| column.name.clone())).collect();
        let ty = match item.composite.and_then(|composite| self.composite_row(composite)) {
            Some(row) if row.fields.len() == values.len() && (!item.is_stored() || is_row_of(&row, &types)) => row,
            _ => self.type_of_fields(number, names.iter().map(String::as_str).zip(types)),
        };
        let is_null = |value: &Expr| Expr::IsNull(Box::new(value.clone()));
        let absent: Option<Vec<Expr>> = match item.presence {
            Presence::Always => None,
            Presence::OfColumn(nth) => {
                let witness = self.read(depth, &item.columns[nth], at)?.expr;
                Some(vec![is_null(&witness)])
            }
            Presence::OfAny => Some(values.iter().map(is_null).collect()),
        };
        let row = self.row_of(ty, values);
        let Some(absent) = absent else { return Ok(Operand { expr: row, at }) };
        let ty = row.ty().with_nullable(true);
        let null = Expr::Literal(Value::Null, ty.clone());
        let case = Case { arms: vec![(Expr::and(absent), null)], otherwise: row, ty };
        Ok(Operand { expr: Expr::Case(Box::new(case)), at })
    }

    /// Returns a test of a record for NULL, or `None` for an expression of another type.
    pub fn record_test(&self, expr: &Expr, negated: bool) -> Option<Expr> {
        if !self.base_type(oid_of(expr)).is_ok_and(|(base, _)| is_row(base)) {
            return None;
        }
        let function = if negated { &NONE_NULL } else { &ALL_NULL };
        Some(call_with(function, vec![expr.clone()], column_type(oid::BOOL, -1, false), Extra::default()))
    }

    /// Returns a field of a row by its name.
    #[inline(never)]
    pub fn field_of(&mut self, operand: Operand, name: &Ident) -> Result<Operand> {
        let ty = operand.oid();
        let Operand { expr, at } = self.smashed(operand)?;
        if !is_row(oid_of(&expr)) {
            let (shown, name) = (shown(ty), &name.value);
            let text = format!("column notation .{name} applied to type {shown}, which is not a composite type");
            return self.fail(state::WRONG_OBJECT_TYPE, text, at);
        }
        let row = self.row_type_of(&expr.ty());
        let is_it = |field: &RecordField| *field.name == *name.value;
        let place = row.as_ref().and_then(|row| row.fields.iter().position(is_it));
        if row.as_ref().is_some_and(|row| row.fields.iter().filter(|field| is_it(field)).count() > 1) {
            let text = format!("column reference \"{}\" is ambiguous", name.value);
            return self.fail(state::AMBIGUOUS_COLUMN, text, at);
        }
        match (row, place) {
            (Some(row), Some(place)) => {
                let expr = self.field_at(expr, &row, place);
                Ok(Operand { expr, at })
            }
            (Some(row), None) if row.number != oid::RECORD => {
                let of = if user::is_domain(ty) { shown(ty) } else { self.row_name(&row) };
                let text = format!("column \"{}\" not found in data type {of}", name.value);
                self.fail(state::UNDEFINED_COLUMN, text, at)
            }
            _ => {
                let text = format!("could not identify column \"{}\" in record data type", name.value);
                self.fail(state::UNDEFINED_COLUMN, text, at)
            }
        }
    }

    /// Returns a field of a row by its place.
    pub fn field_at(&mut self, expr: Expr, row: &Arc<RecordType>, place: usize) -> Expr {
        if let Expr::Call(call) = &expr
            && std::ptr::eq(call.function, &ROW)
            && let Some(value) = call.arguments.get(place)
        {
            return value.clone();
        }
        if let Expr::Call(call) = &expr
            && std::ptr::eq(call.function, &SET_FIELD)
        {
            let is_it = usize::from(u16::from_le_bytes(call.extra.word)) == place;
            let part = call.arguments[usize::from(is_it)].clone();
            return if is_it { part } else { self.field_at(part, row, place) };
        }
        let word = u16::try_from(place).unwrap_or(u16::MAX).to_le_bytes();
        let ty = self.type_of_field(&row.fields[place]).with_nullable(true);
        let record = user::is_composite(row.number).then(|| row.clone());
        call_with(&FIELD, vec![expr], ty, Extra { word, record, ..Extra::default() })
    }

    /// Returns the name of a row type as errors have it.
    pub fn row_name(&self, row: &RecordType) -> String {
        if user::is_composite(row.number) {
            return shown(row.number);
        }
        let tables = self.environment.snapshot.schemas.values().flat_map(|schema| schema.tables.values());
        let mut named = tables.filter(|table| number_of_relation(table.id) == row.number);
        named.next().map_or_else(|| "record".to_owned(), |table| table.name.clone())
    }

    /// Returns the fields of `(row).*` with their names.
    pub fn all_fields(&mut self, operand: Operand) -> Result<Vec<(String, Operand)>> {
        let ty = operand.oid();
        let Operand { expr, at } = self.smashed(operand)?;
        if !is_row(oid_of(&expr)) {
            return Err(PgError::new(state::WRONG_OBJECT_TYPE, format!("type {} is not composite", shown(ty))));
        }
        let Some(row) = self.row_type_of(&expr.ty()) else {
            return self.fail(state::WRONG_OBJECT_TYPE, "record type has not been registered", at);
        };
        let mut fields = Vec::with_capacity(row.fields.len());
        for (place, field) in row.fields.iter().enumerate() {
            let expr = self.copy(&expr)?;
            fields.push((field.name.to_string(), Operand { expr: self.field_at(expr, &row, place), at }));
        }
        Ok(fields)
    }

    /// Binds the first links of an indirection, if they are fields. Returns the value and the number of links.
    #[inline(never)]
    pub fn fields(&mut self, operand: &tree::Expr, links: &[Indirection]) -> Result<(Operand, usize)> {
        let mut bound = match (&operand.kind, links) {
            (ExprKind::Column(name), [Indirection::Field(_) | Indirection::Star, ..]) => {
                self.column(name, operand.span.start)?
            }
            _ => self.expr(operand)?,
        };
        if let (ExprKind::Column(ColumnRef { fields, star: false }), Some(Indirection::Field(name))) =
            (&operand.kind, links.first())
            && let [table] = &fields[..]
            && let Some(row) = self.row_type_of(&bound.expr.ty())
            && !row.fields.iter().any(|field| *field.name == *name.value)
            && self.find_item(None, table, bound.at)?.is_some()
        {
            return Err(self.undefined_column(Some(table), &name.value, bound.at));
        }
        let mut count = 0;
        while let Some(Indirection::Field(name)) = links.get(count) {
            bound = self.field_of(bound, name)?;
            count += 1;
        }
        Ok((bound, count))
    }

    /// Returns the row type of a relation by its name as that of a type; `None` if there is none.
    pub fn row_type_named(&mut self, name: &AnyName) -> Result<Option<Arc<RecordType>>> {
        let (schema, bare) = match &name.parts[..] {
            [bare] => (None, bare),
            [schema, bare] => (Some(schema.clone()), bare),
            _ => return Ok(None),
        };
        let relation = RangeVar { catalog: None, schema, name: bare.clone(), only: false, at: name.at };
        let found = match self.find_relation(&relation) {
            Ok(found) => found,
            Err(error) if error.state == state::UNDEFINED_TABLE => return Ok(None),
            Err(error) => return Err(error),
        };
        let columns: Vec<(String, Type)> = match &found {
            FoundRelation::Table(table) => {
                let shown = table.columns.iter().filter(|column| !column.is_hidden());
                self.tables_of_row_types(table);
                shown.map(|column| (column.name.clone(), column.ty.clone())).collect()
            }
            FoundRelation::View(view) => {
                if !view.temporary && !self.views.iter().any(|known| known.id == view.id) {
                    self.views.push(view.clone());
                }
                view.columns.iter().cloned().zip(view.types.iter().cloned()).collect()
            }
            FoundRelation::System(system) => {
                system.columns_as("").into_iter().map(|column| (column.name, column.ty)).collect()
            }
            FoundRelation::Sequence(_) => return Ok(None),
        };
        let own = match &found {
            FoundRelation::Table(table) => row_type::of_table(table),
            FoundRelation::View(view) => row_type::of_view(view),
            _ => None,
        };
        if let Some(row) = own.as_ref().and_then(|ty| ty.row()) {
            self.user_types.extend(user::object_of(row.number));
            return Ok(Some(row.clone()));
        }
        let number = match &found {
            FoundRelation::Table(table) => number_of_relation(table.id),
            FoundRelation::View(view) => number_of_relation(view.id),
            _ => oid::RECORD,
        };
        let mut fields = Vec::with_capacity(columns.len());
        for (name, ty) in columns {
            let own = match (is_foreign(&ty) || ty.id.0 < 16, foreign_type(&ty)) {
                (false, _) => ty,
                (true, Some(known)) => column_type(known.oid, known.typmod, true),
                (true, None) => return Err(unsupported(format!("the type of column \"{name}\""))),
            };
            fields.push((name, own));
        }
        Ok(Some(self.type_of_fields(number, fields.iter().map(|(name, ty)| (name.as_str(), ty.clone())))))
    }

    /// Returns the types of rows that have a type of their own, and of arrays of them.
    pub fn numbers_of_rows(&self, row: &RecordType) -> Option<[Oid; 2]> {
        let arrays = registry::array_of(row.number).filter(|_| user::is_composite(row.number))?;
        Some([row.number, arrays])
    }

    /// Keeps a table whose row type the statement uses as it is.
    fn tables_of_row_types(&mut self, table: &Arc<query::catalog::table::Table>) {
        if !table.is_keyspace() && !self.tables.iter().any(|known| known.id == table.id) {
            self.tables.push(table.clone());
        }
    }

    /// Casts to the row type of a relation. `None`: there is no such cast.
    #[inline(never)]
    pub fn cast_to_row(&mut self, operand: Operand, typmod: i32, at: u32) -> Result<Operand> {
        let Some(row) = usize::try_from(typmod).ok().and_then(|nth| self.row_types.get(nth).cloned()) else {
            return self.fail(state::CANNOT_COERCE, "cannot cast to an unknown row type", at);
        };
        let ty = column_type(oid::RECORD, typmod, true);
        let source = operand.oid();
        let place = operand.at;
        match operand.expr {
            Expr::Literal(Value::Null, _) => Ok(Operand { expr: Expr::Literal(Value::Null, ty), at }),
            Expr::Literal(Value::Text(text), _) if source == oid::UNKNOWN => {
                let value = input(&row, &text, &self.ctx.state().io).map_err(|error| self.error(error, place))?;
                let expr = self.checked_literal(Expr::Literal(value, ty.with_nullable(false)), place)?;
                Ok(Operand { expr, at })
            }
            expr if source == oid::RECORD && typmod_of_expr(&expr) == typmod => Ok(Operand { expr, at }),
            Expr::Call(call) if std::ptr::eq(call.function, &ROW) => {
                self.row_as(call.arguments, &row, (place.max(at), at), CastContext::Explicit)
            }
            expr if source == oid::UNKNOWN || registry::by_oid(source).is_some_and(|row| row.category == 'S') => {
                let text = self.coerce(Operand { expr, at: place }, oid::TEXT, CastContext::Explicit)?;
                let extra = Extra { record: Some(row), ..Extra::default() };
                let expr = self.checked_parts(call_with(&RECORD_IN, vec![text], ty, extra))?;
                Ok(Operand { expr, at })
            }
            _ => {
                let text = format!("cannot cast type {} to {}", shown(source), self.row_name(&row));
                self.fail(state::CANNOT_COERCE, text, at)
            }
        }
    }

    /// Casts to an array of rows of a known type.
    #[inline(never)]
    pub fn cast_to_rows(&mut self, operand: Operand, typmod: i32, at: u32) -> Result<Operand> {
        let ty = column_type(oid::RECORD_ARRAY, typmod, true);
        self.refuse_domains_in_rows(&ty, "input of an array")?;
        let (source, place) = (operand.oid(), operand.at);
        match operand.expr {
            Expr::Literal(Value::Null, _) => Ok(Operand { expr: Expr::Literal(Value::Null, ty), at }),
            Expr::Literal(Value::Text(text), _) if source == oid::UNKNOWN => {
                let row = usize::try_from(typmod).ok().and_then(|nth| self.row_types.get(nth).cloned());
                let io = &self.ctx.state().io;
                let value = row.ok_or_else(anonymous_input).and_then(|row| array_of_rows(&row, &text, io));
                let value = value.map_err(|error| self.error(error, place))?;
                Ok(Operand { expr: Expr::Literal(value, ty.with_nullable(false)), at })
            }
            expr if source == oid::RECORD_ARRAY && typmod_of_expr(&expr) == typmod => Ok(Operand { expr, at }),
            _ => {
                let row = usize::try_from(typmod).ok().and_then(|nth| self.row_types.get(nth).cloned());
                let name = row.map_or_else(|| "record".to_owned(), |row| self.row_name(&row));
                self.fail(state::CANNOT_COERCE, format!("cannot cast type {} to {name}[]", shown(source)), at)
            }
        }
    }

    /// Brings the items of a row to the types of another row's fields.
    pub fn row_as(
        &mut self,
        items: Vec<Expr>,
        row: &Arc<RecordType>,
        (place, at): (u32, u32),
        context: CastContext,
    ) -> Result<Operand> {
        let refuse = |binder: &Self, detail: String| {
            let text = format!("cannot cast type record to {}", binder.row_name(row));
            binder.error(PgError::new(state::CANNOT_COERCE, text).detail(detail), at)
        };
        let count = row.fields.len();
        if items.len() < count {
            return Err(refuse(self, "Input has too few columns.".to_owned()));
        }
        let is_longer = items.len() > count;
        let mut values = Vec::with_capacity(count);
        for (nth, (item, field)) in items.into_iter().zip(&row.fields).enumerate() {
            let to = self.type_of_field(field);
            let (target, typmod) = (registry::oid_of(&to), registry::typmod_of(&to));
            let source = oid_of(&item);
            match self.coerce_to(Operand { expr: item, at: place }, target, typmod, context)? {
                Some(value) => values.push(value),
                None => {
                    let (source, target) = (shown(source), shown(target));
                    let detail = format!("Cannot cast type {source} to {target} in column {}.", nth + 1);
                    return Err(refuse(self, detail));
                }
            }
        }
        if is_longer {
            return Err(refuse(self, "Input has too many columns.".to_owned()));
        }
        Ok(Operand { expr: self.row_of(row.clone(), values), at })
    }
}

/// Reads an array whose elements are rows.
fn array_of_rows(row: &Arc<RecordType>, text: &str, io: &IoContext) -> Result<Value> {
    let texts = array::input(oid::TEXT_ARRAY, -1, text, io)?;
    let Value::Array(texts) = texts else { return Err(anonymous_input()) };
    let mut values = Vec::with_capacity(texts.len());
    for value in texts.values() {
        values.push(match value {
            Value::Text(text) => input(row, text, io)?,
            _ => Value::Null,
        });
    }
    Ok(Value::Array(Array::new(registry::shape_of(oid::RECORD), texts.dimensions(), values)))
}

/// Returns whether a relation's row type has these columns: the definition that is being made of it may have others.
fn is_row_of(row: &RecordType, types: &[Type]) -> bool {
    row.fields.iter().map(|field| field.number).eq(types.iter().map(registry::oid_of))
}

/// Returns the type of an item of a row, which may be unknown.
fn settled_or_unknown(value: &Expr) -> Type {
    match oid_of(value) {
        oid::UNKNOWN => column_type(oid::UNKNOWN, -1, true),
        _ => settled(&value.ty()),
    }
}

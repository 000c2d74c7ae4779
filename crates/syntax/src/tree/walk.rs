//! Walks over trees. A visitor sees every expression, query and table name, outer ones first.

use super::*;

/// Called for each node on the way down. Returning false leaves out what lies below the node.
pub trait Visitor {
    fn expr(&mut self, _expr: &Expr) -> bool {
        true
    }

    fn query(&mut self, _query: &Query) -> bool {
        true
    }

    fn table(&mut self, _table: &TableName) {}
}

fn all<V: Visitor + ?Sized>(list: &[Expr], visitor: &mut V) {
    list.iter().for_each(|item| expr(item, visitor));
}

fn ordering<V: Visitor + ?Sized>(list: &[OrderItem], visitor: &mut V) {
    list.iter().for_each(|OrderItem { expr: item, descending: _ }| expr(item, visitor));
}

/// Visits an expression and everything below it.
pub fn expr<V: Visitor + ?Sized>(node: &Expr, visitor: &mut V) {
    let Expr { kind, span: _ } = node;
    if !visitor.expr(node) {
        return;
    }
    operands(node, &mut |operand| expr(operand, visitor));
    match kind {
        ExprKind::Quantified { op: _, left: _, all: _, query: inner }
        | ExprKind::InQuery { operand: _, query: inner, negated: _ }
        | ExprKind::Exists(inner)
        | ExprKind::Subquery(inner) => query(inner, visitor),
        ExprKind::Function(function) => {
            if let Some(Over::Window(spec)) = &function.over {
                window(spec, visitor);
            }
        }
        _ => {}
    }
}

/// The expressions directly below one, in the order of the text: for readers and for writers of trees.
macro_rules! operands {
    ($(#[$doc:meta])* $name:ident, $iter:ident $(, $mut:ident)?) => {
$(#[$doc])*
pub fn $name<'e>(node: &'e $($mut)? Expr, each: &mut dyn FnMut(&'e $($mut)? Expr)) {
    let Expr { kind, span: _ } = node;
    match kind {
        ExprKind::Literal(_)
        | ExprKind::Introduced { charset: _, literal: _ }
        | ExprKind::Column(_)
        | ExprKind::Parameter(_)
        | ExprKind::UserVariable(_)
        | ExprKind::SystemVariable { scope: _, name: _ }
        | ExprKind::Default
        | ExprKind::DefaultOf(_)
        | ExprKind::InsertedValue(_)
        | ExprKind::JsonPath { column: _, path: _, unquote: _ }
        | ExprKind::Exists(_)
        | ExprKind::Subquery(_) => {}
        ExprKind::Assign { name: _, value } => each(value),
        ExprKind::Row(list)
        | ExprKind::And(list)
        | ExprKind::Or(list)
        | ExprKind::Xor(list)
        | ExprKind::Concat(list)
        | ExprKind::Char { numbers: list, charset: _ } => list.$iter().for_each(each),
        ExprKind::Unary { op: _, operand }
        | ExprKind::Is { operand, test: _, negated: _ }
        | ExprKind::Collate { operand, collation: _ }
        | ExprKind::Cast { operand, to: _, array: _ }
        | ExprKind::CastAtZone { operand, zone: _, scale: _ }
        | ExprKind::ConvertUsing { operand, charset: _ }
        | ExprKind::Extract { unit: _, operand }
        | ExprKind::GetFormat { of: _, region: operand }
        | ExprKind::WeightString { operand, pad: _ }
        | ExprKind::Quantified { op: _, left: operand, all: _, query: _ }
        | ExprKind::InQuery { operand, query: _, negated: _ }
        | ExprKind::Match { columns: _, against: operand, mode: _ } => each(operand),
        ExprKind::Chain { first, links } => {
            each(first);
            links.$iter().for_each(|Link { op: _, operand }| each(operand));
        }
        ExprKind::Compare { op: _, left, right }
        | ExprKind::SoundsLike { left, right }
        | ExprKind::Regexp { operand: left, pattern: right, negated: _ }
        | ExprKind::MemberOf { value: left, array: right }
        | ExprKind::TimestampAdd { unit: _, count: left, operand: right }
        | ExprKind::TimestampDiff { unit: _, from: left, to: right } => {
            each(left);
            each(right);
        }
        ExprKind::Between { operand, low, high, negated: _ } => {
            each(operand);
            each(low);
            each(high);
        }
        ExprKind::InList { operand, list, negated: _ } => {
            each(operand);
            list.$iter().for_each(each);
        }
        ExprKind::Like { operand, pattern, escape, negated: _ } => {
            each(operand);
            each(pattern);
            escape.$iter().for_each(|escape| each(escape));
        }
        ExprKind::Case { operand, arms, otherwise } => {
            operand.$iter().for_each(|operand| each(operand));
            for Arm { condition, result } in arms {
                each(condition);
                each(result);
            }
            otherwise.$iter().for_each(|otherwise| each(otherwise));
        }
        ExprKind::Function(function) => {
            function.arguments.$iter().for_each(&mut *each);
            function.order_by.$iter().for_each(|OrderItem { expr, descending: _ }| each(expr));
        }
        ExprKind::DateShift { operand, interval, subtract: _ } => {
            each(operand);
            each(&$($mut)? interval.value);
        }
        ExprKind::Trim { side: _, remove, operand } => {
            remove.$iter().for_each(|remove| each(remove));
            each(operand);
        }
        ExprKind::JsonValue(value) => {
            each(&$($mut)? value.document);
            each(&$($mut)? value.path);
        }
    }
}
    };
}

operands!(
    /// Calls `each` with every expression directly below one. Queries and windows are left out.
    operands,
    iter
);
operands!(
    /// The same for changing them.
    operands_mut,
    iter_mut,
    mut
);

/// Visits the expressions of a window.
pub fn window<V: Visitor + ?Sized>(spec: &Window, visitor: &mut V) {
    let Window { base: _, partition_by, order_by, frame } = spec;
    all(partition_by, visitor);
    ordering(order_by, visitor);
    let Some(Frame { unit: _, start, end, exclude: _ }) = frame else { return };
    for bound in [Some(start), end.as_ref()].into_iter().flatten() {
        match bound {
            Bound::CurrentRow | Bound::UnboundedPreceding | Bound::UnboundedFollowing => {}
            Bound::Preceding(offset) | Bound::Following(offset) => match &**offset {
                Offset::Rows(count) => expr(count, visitor),
                Offset::Interval(Interval { value, unit: _ }) => expr(value, visitor),
            },
        }
    }
}

/// Visits a query and everything below it.
pub fn query<V: Visitor + ?Sized>(node: &Query, visitor: &mut V) {
    if !visitor.query(node) {
        return;
    }
    let Query { with: commons, body: inner, order_by, limit: rows, locks: _, into: _, span: _ } = node;
    with(commons.as_ref(), visitor);
    body(inner, visitor);
    ordering(order_by, visitor);
    limit(rows.as_ref(), visitor);
}

fn with<V: Visitor + ?Sized>(commons: Option<&With>, visitor: &mut V) {
    let Some(With { recursive: _, tables }) = commons else { return };
    for CommonTable { name: _, columns: _, query: inner } in tables {
        query(inner, visitor);
    }
}

fn limit<V: Visitor + ?Sized>(rows: Option<&Limit>, visitor: &mut V) {
    let Some(Limit { count, offset }) = rows else { return };
    expr(count, visitor);
    offset.iter().for_each(|offset| expr(offset, visitor));
}

/// Visits what lies below a query's body.
pub fn body<V: Visitor + ?Sized>(node: &QueryBody, visitor: &mut V) {
    match node {
        QueryBody::Select(block) => select(block, visitor),
        QueryBody::Values(rows) => rows.iter().for_each(|row| all(row, visitor)),
        QueryBody::Table(name) => visitor.table(name),
        QueryBody::Query(inner) => query(inner, visitor),
        QueryBody::SetOperations { first, links } => {
            body(first, visitor);
            links.iter().for_each(|SetLink { op: _, all: _, operand }| body(operand, visitor));
        }
    }
}

/// Visits what lies below a query block.
pub fn select<V: Visitor + ?Sized>(node: &Select, visitor: &mut V) {
    let Select {
        hints: _,
        distinct: _,
        straight_join: _,
        calc_found_rows: _,
        items,
        from,
        selection,
        group_by,
        rollup: _,
        having,
        windows,
    } = node;
    select_items(items, visitor);
    joined(from, visitor);
    selection.iter().for_each(|selection| expr(selection, visitor));
    all(group_by, visitor);
    having.iter().for_each(|having| expr(having, visitor));
    windows.iter().for_each(|NamedWindow { name: _, window: spec }| window(spec, visitor));
}

fn select_items<V: Visitor + ?Sized>(items: &[SelectItem], visitor: &mut V) {
    for item in items {
        match item {
            SelectItem::All(_) | SelectItem::AllOf(..) => {}
            SelectItem::Expr(SelectExpr { expr: item, alias: _, text: _ }) => expr(item, visitor),
        }
    }
}

/// Visits the tables and conditions of FROM.
pub fn joined<V: Visitor + ?Sized>(list: &[Joined], visitor: &mut V) {
    for Joined { first, joins } in list {
        table(first, visitor);
        for Join { kind: _, table: other, constraint } in joins {
            table(other, visitor);
            match constraint {
                JoinConstraint::On(condition) => expr(condition, visitor),
                JoinConstraint::None | JoinConstraint::Using(_) | JoinConstraint::Natural => {}
            }
        }
    }
}

fn table<V: Visitor + ?Sized>(node: &TableRef, visitor: &mut V) {
    match node {
        TableRef::Table(name) => visitor.table(name),
        TableRef::Derived(derived) => {
            let Derived { lateral: _, query: inner, alias: _, columns: _ } = &**derived;
            query(inner, visitor);
        }
        TableRef::JsonTable(json) => {
            let JsonTable { document, path: _, columns: _, alias: _ } = &**json;
            expr(document, visitor);
        }
        TableRef::Nested(list) => joined(list, visitor),
    }
}

fn assignments<V: Visitor + ?Sized>(list: &[Assignment], visitor: &mut V) {
    list.iter().for_each(|Assignment { column: _, value }| expr(value, visitor));
}

/// Visits a statement that is bound to a plan: queries and changes. Others have nothing to visit.
pub fn statement<V: Visitor + ?Sized>(node: &Statement, visitor: &mut V) {
    match node {
        Statement::Query(inner) => query(inner, visitor),
        Statement::Insert(insert) => {
            let Insert {
                replace: _,
                ignore: _,
                hints: _,
                table: _,
                partitions: _,
                columns: _,
                source,
                row_alias: _,
                on_duplicate,
                returning,
            } = &**insert;
            match source {
                InsertSource::Values(rows) => rows.iter().for_each(|row| all(row, visitor)),
                InsertSource::Set(list) => assignments(list, visitor),
                InsertSource::Query(inner) => query(inner, visitor),
            }
            assignments(on_duplicate, visitor);
            returning.iter().for_each(|items| select_items(items, visitor));
        }
        Statement::Update(update) => {
            let Update {
                with: commons,
                hints: _,
                ignore: _,
                tables,
                assignments: list,
                selection,
                order_by,
                limit: rows,
                returning,
            } = &**update;
            with(commons.as_ref(), visitor);
            joined(tables, visitor);
            assignments(list, visitor);
            selection.iter().for_each(|selection| expr(selection, visitor));
            ordering(order_by, visitor);
            limit(rows.as_ref(), visitor);
            returning.iter().for_each(|items| select_items(items, visitor));
        }
        Statement::Delete(delete) => {
            let Delete {
                with: commons,
                hints: _,
                ignore: _,
                targets: _,
                tables,
                selection,
                order_by,
                limit: rows,
                returning,
            } = &**delete;
            with(commons.as_ref(), visitor);
            joined(tables, visitor);
            selection.iter().for_each(|selection| expr(selection, visitor));
            ordering(order_by, visitor);
            limit(rows.as_ref(), visitor);
            returning.iter().for_each(|items| select_items(items, visitor));
        }
        Statement::Do(list) => all(list, visitor),
        Statement::Explain { statement: inner, analyze: _, format: _ } => statement(inner, visitor),
        _ => {}
    }
}

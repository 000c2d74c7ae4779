//! Names of result columns: those of PostgreSQL's `FigureColname`.

use syntax::postgres::tree::{
    self, ExprKind, Indirection, JsonContent, ResTarget, SelectBody, SelectStmt, SqlValueFunction,
};

/// The name of a column that has none.
pub const UNNAMED: &str = "?column?";

/// Returns the name of an item of a select list.
pub fn name_of_item(item: &ResTarget) -> String {
    match &item.alias {
        Some(alias) => alias.value.clone(),
        None => figured(&item.expr).map_or_else(|| UNNAMED.to_owned(), |(name, _)| name),
    }
}

/// Returns the name that an expression gives a function in FROM.
pub fn name_of_expr(expr: &tree::Expr) -> String {
    figured(expr).map_or_else(|| UNNAMED.to_owned(), |(name, _)| name)
}

/// Returns a name, and whether it is a good one: a cast prefers the name of its operand only if that is good.
fn figured(expr: &tree::Expr) -> Option<(String, bool)> {
    let good = |name: &str| Some((name.to_owned(), true));
    match &expr.kind {
        ExprKind::Column(column) => column.fields.last().filter(|_| !column.star).and_then(|name| good(name)),
        ExprKind::Indirection { operand, links } => {
            let field = links.iter().rev().find_map(|link| match link {
                Indirection::Field(name) => Some(name.value.as_str()),
                _ => None,
            });
            field.map_or_else(|| figured(operand), good)
        }
        ExprKind::Function(call) => match (&call.json, &call.arguments[..]) {
            (Some(_), [_, _]) => good("json_objectagg"),
            (Some(_), _) => good("json_arrayagg"),
            (None, _) => good(call.name.last()),
        },
        ExprKind::JsonConstructor(node) => match node.content {
            JsonContent::Object(_) => good("json_object"),
            JsonContent::Array(_) | JsonContent::Query(..) => good("json_array"),
        },
        ExprKind::NullIf { left: _, right: _ } => good("nullif"),
        ExprKind::Cast { operand, to, at: _ } => match figured(operand) {
            Some((name, true)) => Some((name, true)),
            _ => Some((to.name.last().to_owned(), false)),
        },
        ExprKind::Collate { operand, collation: _, at: _ } => figured(operand),
        ExprKind::Grouping(_) => good("grouping"),
        ExprKind::Exists(_) => good("exists"),
        ExprKind::ArrayQuery(_) | ExprKind::Array(_) => good("array"),
        ExprKind::Subquery(query) => figured_of_query(query),
        ExprKind::Case(case) => match case.otherwise.as_ref().and_then(figured) {
            Some((name, true)) => Some((name, true)),
            _ => Some(("case".to_owned(), false)),
        },
        ExprKind::Row { items: _, explicit: true } => good("row"),
        ExprKind::Row { items: _, explicit: false } => good("row"),
        ExprKind::Coalesce(_) => good("coalesce"),
        ExprKind::Greatest(_) => good("greatest"),
        ExprKind::Least(_) => good("least"),
        ExprKind::SqlValue(function) => good(sql_value_name(*function)),
        _ => None,
    }
}

/// Returns the name of the first column of a subquery.
fn figured_of_query(query: &SelectStmt) -> Option<(String, bool)> {
    let mut body = &query.body;
    loop {
        match body {
            SelectBody::Select(select) => {
                let item = select.targets.first()?;
                return match &item.alias {
                    Some(alias) => Some((alias.value.clone(), true)),
                    None => figured(&item.expr),
                };
            }
            SelectBody::Values(_) => return Some(("column1".to_owned(), true)),
            SelectBody::SetOperations { first, links: _ } => body = first,
            SelectBody::Nested(query) => body = &query.body,
        }
    }
}

fn sql_value_name(function: SqlValueFunction) -> &'static str {
    use SqlValueFunction as Sql;
    match function {
        Sql::CurrentDate => "current_date",
        Sql::CurrentTime(_) => "current_time",
        Sql::CurrentTimestamp(_) => "current_timestamp",
        Sql::LocalTime(_) => "localtime",
        Sql::LocalTimestamp(_) => "localtimestamp",
        Sql::CurrentRole => "current_role",
        Sql::CurrentUser => "current_user",
        Sql::User => "user",
        Sql::SessionUser => "session_user",
        Sql::SystemUser => "system_user",
        Sql::CurrentCatalog => "current_catalog",
        Sql::CurrentSchema => "current_schema",
    }
}

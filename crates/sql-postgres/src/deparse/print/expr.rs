//! Expressions: `get_rule_expr`.

use crate::deparse::node::{
    Aggregate, Frame, Over, SortItem, SqlForm, SqlNode, Sublink, SublinkKind, Ty, Window, WindowBound,
};
use crate::deparse::print::simple::is_simple;
use crate::deparse::print::{Printer, VAR};
use crate::deparse::text::{self, Label};
use crate::types::registry::format_type;
use crate::types::user;

impl Printer {
    /// Writes an operand, in parentheses where the pretty text needs them.
    fn operand(&mut self, node: &SqlNode, shows_implicit: bool, parent: &SqlNode) {
        let needs = self.style.is_pretty && !is_simple(node, parent);
        if needs {
            self.out.push('(');
        }
        self.node(node, shows_implicit);
        if needs {
            self.out.push(')');
        }
    }

    fn list(&mut self, nodes: &[SqlNode], shows_implicit: bool) {
        for (nth, node) in nodes.iter().enumerate() {
            if nth > 0 {
                self.out.push_str(", ");
            }
            self.node(node, shows_implicit);
        }
    }

    fn joined(&mut self, nodes: &[SqlNode], word: &str, parent: &SqlNode) {
        self.open_parenthesis();
        for (nth, node) in nodes.iter().enumerate() {
            if nth > 0 {
                self.out.push_str(word);
            }
            self.operand(node, false, parent);
        }
        self.close_parenthesis();
    }

    /// Writes an expression. An implicit cast at its top is written if `shows_implicit`.
    pub fn node(&mut self, node: &SqlNode, shows_implicit: bool) {
        match node {
            SqlNode::Column { level, table, column, ty: _ } => {
                let (text, _) = self.column_text(*level, *table, *column);
                self.out.push_str(if self.is_over_value { "VALUE" } else { &text });
            }
            SqlNode::Const { text, ty } => self.out.push_str(&text::constant(text.as_deref(), *ty, Label::Needed)),
            SqlNode::Call { name, arguments, ty, form } => {
                self.call(node, (name, arguments), (*ty, *form), shows_implicit)
            }
            SqlNode::Cast { operand, ty, form } => match form {
                SqlForm::Implicit if !shows_implicit && user::is_domain(ty.0) => self.node(operand, false),
                SqlForm::Implicit if !shows_implicit => self.operand(operand, false, node),
                // The type of a row is shown where the cast is written.
                SqlForm::Implicit if matches!(**operand, SqlNode::Row(_)) => self.node(operand, false),
                _ => self.cast(operand, *ty, node),
            },
            SqlNode::Operator { name, operands, ty: _ } => {
                self.open_parenthesis();
                match &operands[..] {
                    [left, right] => {
                        self.operand(left, true, node);
                        self.out.push_str(&format!(" {name} "));
                        self.operand(right, true, node);
                    }
                    operands => {
                        self.out.push_str(&format!("{name} "));
                        operands.iter().for_each(|operand| self.operand(operand, true, node));
                    }
                }
                self.close_parenthesis();
            }
            SqlNode::Distinct(left, right) => {
                self.open_parenthesis();
                self.operand(left, true, node);
                self.out.push_str(" IS DISTINCT FROM ");
                self.operand(right, true, node);
                self.close_parenthesis();
            }
            SqlNode::NullIf(left, right) => {
                self.out.push_str("NULLIF(");
                self.node(left, true);
                self.out.push_str(", ");
                self.node(right, true);
                self.out.push(')');
            }
            SqlNode::And(items) => self.joined(items, " AND ", node),
            SqlNode::Or(items) => self.joined(items, " OR ", node),
            SqlNode::Not(operand) => {
                self.open_parenthesis();
                self.out.push_str("NOT ");
                self.operand(operand, false, node);
                self.close_parenthesis();
            }
            SqlNode::NullTest { operand, negated } => {
                self.open_parenthesis();
                self.operand(operand, true, node);
                self.out.push_str(if *negated { " IS NOT NULL" } else { " IS NULL" });
                self.close_parenthesis();
            }
            SqlNode::BooleanTest { operand, test } => {
                self.open_parenthesis();
                self.operand(operand, false, node);
                self.out.push_str(&format!(" {test}"));
                self.close_parenthesis();
            }
            SqlNode::JsonValue { operand, format } => {
                self.node(operand, false);
                self.out.push_str(format);
            }
            SqlNode::JsonConstructor { is_object, items, clauses, ty: _ } => {
                self.out.push_str(if *is_object { "JSON_OBJECT(" } else { "JSON_ARRAY(" });
                self.members(items, *is_object);
                self.out.push_str(clauses);
                self.out.push(')');
            }
            SqlNode::JsonTest { operand, words } => {
                self.open_parenthesis();
                self.operand(operand, true, node);
                self.out.push_str(words);
                self.close_parenthesis();
            }
            SqlNode::Case { operand, arms, otherwise, ty: _ } => self.case(operand.as_deref(), arms, otherwise),
            SqlNode::Coalesce(items, _) => {
                self.out.push_str("COALESCE(");
                self.list(items, true);
                self.out.push(')');
            }
            SqlNode::Extreme { word, items, ty: _ } => {
                self.out.push_str(&format!("{word}("));
                self.list(items, true);
                self.out.push(')');
            }
            SqlNode::Array { items, ty } => {
                self.out.push_str("ARRAY[");
                self.list(items, true);
                self.out.push(']');
                if items.is_empty() {
                    self.out.push_str(&format!("::{}", format_type(*ty, Some(-1))));
                }
            }
            SqlNode::Quantified { name, operand, array, is_any } => {
                self.open_parenthesis();
                self.operand(operand, true, node);
                self.out.push_str(&format!(" {name} {} (", if *is_any { "ANY" } else { "ALL" }));
                self.operand(array, true, node);
                self.out.push(')');
                self.close_parenthesis();
            }
            SqlNode::SqlValue { text, ty: _ } => self.out.push_str(text),
            SqlNode::Collate { operand, collation } => {
                self.open_parenthesis();
                self.operand(operand, shows_implicit, node);
                self.out.push_str(&format!(" COLLATE {}", text::name(collation)));
                self.close_parenthesis();
            }
            SqlNode::Row(items) => {
                self.out.push_str("ROW(");
                self.list(items, true);
                self.out.push(')');
            }
            SqlNode::Field { operand, name, ty: _ } => {
                let is_postfix = matches!(**operand, SqlNode::Field { .. } | SqlNode::Element { .. });
                self.within(operand, !is_postfix);
                self.out.push_str(&format!(".{}", text::name(name)));
            }
            SqlNode::Element { parts, ty: _ } => {
                let Some((array, subscripts)) = parts.split_first() else { return };
                self.within(array, !matches!(array, SqlNode::Field { .. } | SqlNode::Column { .. }));
                for subscript in subscripts {
                    self.out.push('[');
                    self.node(subscript, false);
                    self.out.push(']');
                }
            }
            SqlNode::Aggregate(call) => self.aggregate(call),
            SqlNode::Window(window) => {
                self.aggregate(&window.call);
                self.out.push_str(" OVER ");
                match &window.over {
                    Over::Named(name) => self.out.push_str(&text::name(name)),
                    Over::Window(window) => self.window(window),
                }
            }
            SqlNode::Sublink(link) => self.sublink(link),
        }
    }

    /// Writes an expression before a postfix.
    fn within(&mut self, node: &SqlNode, has_parentheses: bool) {
        self.out.push_str(if has_parentheses { "(" } else { "" });
        self.node(node, true);
        self.out.push_str(if has_parentheses { ")" } else { "" });
    }

    /// Writes a cast: `get_coercion_expr`.
    fn cast(&mut self, operand: &SqlNode, (ty, typmod): Ty, node: &SqlNode) {
        match operand {
            SqlNode::Const { text, ty: (of, -1) } if *of == ty => {
                self.out.push_str(&text::constant(text.as_deref(), (*of, -1), Label::Never));
            }
            operand @ SqlNode::Row(_) if user::is_composite(ty) => self.node(operand, false),
            operand => {
                self.open_parenthesis();
                self.operand(operand, false, node);
                self.close_parenthesis();
            }
        }
        self.out.push_str(&format!("::{}", format_type(ty, Some(typmod))));
    }

    fn call(
        &mut self,
        node: &SqlNode,
        (name, arguments): (&str, &[SqlNode]),
        (ty, form): (Ty, SqlForm),
        shows_implicit: bool,
    ) {
        match (form, arguments) {
            (SqlForm::Implicit, [operand, ..]) if !shows_implicit => self.operand(operand, false, node),
            (SqlForm::Explicit | SqlForm::Implicit, [operand, ..]) => self.cast(operand, ty, node),
            (SqlForm::Sql, _) if self.sql_syntax(node, name, arguments) => {}
            (SqlForm::Variadic, [others @ .., array]) => {
                self.out.push_str(&format!("{}(", text::name(name)));
                self.list(others, true);
                self.out.push_str(if others.is_empty() { "VARIADIC " } else { ", VARIADIC " });
                self.node(array, true);
                self.out.push(')');
            }
            _ => {
                self.out.push_str(&format!("{}(", text::name(name)));
                self.list(arguments, true);
                self.out.push(')');
            }
        }
    }

    /// Writes a call in SQL's own notation: `get_func_sql_syntax`. Returns false for a function that has none.
    fn sql_syntax(&mut self, node: &SqlNode, name: &str, arguments: &[SqlNode]) -> bool {
        match (name, arguments) {
            ("timezone", [zone, time]) => {
                self.out.push('(');
                self.operand(time, false, node);
                self.out.push_str(" AT TIME ZONE ");
                self.operand(zone, false, node);
                self.out.push(')');
            }
            ("overlaps", [a, b, c, d]) => {
                self.out.push_str("((");
                self.node(a, false);
                self.out.push_str(", ");
                self.node(b, false);
                self.out.push_str(") OVERLAPS (");
                self.node(c, false);
                self.out.push_str(", ");
                self.node(d, false);
                self.out.push_str("))");
            }
            ("extract", [SqlNode::Const { text: Some(field), .. }, source]) => {
                self.out.push_str(&format!("EXTRACT({field} FROM "));
                self.node(source, false);
                self.out.push(')');
            }
            ("position", [whole, part]) => {
                self.out.push_str("POSITION((");
                self.node(part, false);
                self.out.push_str(") IN (");
                self.node(whole, false);
                self.out.push_str("))");
            }
            ("overlay", [text, new, rest @ ..]) => {
                self.out.push_str("OVERLAY(");
                self.node(text, false);
                self.out.push_str(" PLACING ");
                self.node(new, false);
                for (word, node) in [" FROM ", " FOR "].into_iter().zip(rest) {
                    self.out.push_str(word);
                    self.node(node, false);
                }
                self.out.push(')');
            }
            ("substring", [text, rest @ ..]) if rest.iter().all(|node| node.ty().0 == crate::types::oid::INT4) => {
                self.out.push_str("SUBSTRING(");
                self.node(text, false);
                for (word, node) in [" FROM ", " FOR "].into_iter().zip(rest) {
                    self.out.push_str(word);
                    self.node(node, false);
                }
                self.out.push(')');
            }
            ("substring", [text, pattern, escape]) => {
                self.out.push_str("SUBSTRING(");
                self.node(text, false);
                self.out.push_str(" SIMILAR ");
                self.node(pattern, false);
                self.out.push_str(" ESCAPE ");
                self.node(escape, false);
                self.out.push(')');
            }
            ("btrim" | "ltrim" | "rtrim", [text, rest @ ..]) => {
                self.out.push_str(match name {
                    "btrim" => "TRIM(BOTH",
                    "ltrim" => "TRIM(LEADING",
                    _ => "TRIM(TRAILING",
                });
                for node in rest {
                    self.out.push(' ');
                    self.node(node, false);
                }
                self.out.push_str(" FROM ");
                self.node(text, false);
                self.out.push(')');
            }
            ("normalize", [text]) => {
                self.out.push_str("NORMALIZE(");
                self.node(text, false);
                self.out.push(')');
            }
            _ => return false,
        }
        true
    }

    fn case(&mut self, operand: Option<&SqlNode>, arms: &[(SqlNode, SqlNode)], otherwise: &SqlNode) {
        self.keyword("CASE", 0, VAR, 0);
        if let Some(operand) = operand {
            self.out.push(' ');
            self.node(operand, true);
        }
        for (when, then) in arms {
            self.keyword("WHEN ", 0, 0, 0);
            self.node(when, false);
            self.out.push_str(" THEN ");
            self.node(then, true);
        }
        self.keyword("ELSE ", 0, 0, 0);
        self.node(otherwise, true);
        self.keyword("END", -VAR, 0, 0);
    }

    /// Writes the arguments of an SQL/JSON function: those of an object are keys and values by turns.
    fn members(&mut self, items: &[SqlNode], is_object: bool) {
        for (nth, item) in items.iter().enumerate() {
            self.out.push_str(match nth {
                0 => "",
                nth if is_object && nth % 2 == 1 => " : ",
                _ => ", ",
            });
            self.node(item, true);
        }
    }

    fn aggregate(&mut self, call: &Aggregate) {
        let is_object = call.arguments.len() == 2;
        match call.json {
            Some(_) => self.out.push_str(if is_object { "JSON_OBJECTAGG(" } else { "JSON_ARRAYAGG(" }),
            None => self.out.push_str(&format!("{}(", text::name(&call.name))),
        }
        if call.distinct {
            self.out.push_str("DISTINCT ");
        }
        match call.star {
            true => self.out.push('*'),
            false if call.json.is_some() => self.members(&call.arguments, is_object),
            false => self.list(&call.arguments, true),
        }
        if !call.order_by.is_empty() {
            self.out.push_str(" ORDER BY ");
            self.sorts(&call.order_by, false);
        }
        self.out.push_str(call.json.as_deref().unwrap_or(""));
        self.out.push(')');
        if let Some(filter) = &call.filter {
            self.out.push_str(" FILTER (WHERE ");
            self.node(filter, false);
            self.out.push(')');
        }
    }

    /// Writes keys of ORDER BY; by the number of the column where a set operation is ordered.
    pub fn sorts(&mut self, sorts: &[SortItem], by_number: bool) {
        for (nth, sort) in sorts.iter().enumerate() {
            if nth > 0 {
                self.out.push_str(", ");
            }
            match sort.target.filter(|_| by_number) {
                Some(target) => self.out.push_str(&target.to_string()),
                None => self.key(&sort.key),
            }
            self.out.push_str(match (sort.descending, sort.nulls_first) {
                (false, false) => "",
                (false, true) => " NULLS FIRST",
                (true, true) => " DESC",
                (true, false) => " DESC NULLS LAST",
            });
        }
    }

    /// Writes a key of ORDER BY, GROUP BY or DISTINCT ON: `get_rule_sortgroupclause`.
    pub fn key(&mut self, node: &SqlNode) {
        match node {
            SqlNode::Const { text, ty } => self.out.push_str(&text::constant(text.as_deref(), *ty, Label::Always)),
            SqlNode::Column { .. } => {
                let before = std::mem::replace(&mut self.in_order_by, true);
                self.node(node, false);
                self.in_order_by = before;
            }
            node => {
                let is_call = matches!(node, SqlNode::Call { .. } | SqlNode::Aggregate(_) | SqlNode::Window(_));
                let needs = self.style.is_pretty || is_call;
                if needs {
                    self.out.push('(');
                }
                let before = std::mem::replace(&mut self.in_order_by, true);
                self.node(node, true);
                self.in_order_by = before;
                if needs {
                    self.out.push(')');
                }
            }
        }
    }

    pub fn window(&mut self, window: &Window) {
        self.out.push('(');
        let mut parts = 0;
        let mut space = |printer: &mut Printer| {
            if parts > 0 {
                printer.out.push(' ');
            }
            parts += 1;
        };
        if let Some(base) = &window.base {
            space(self);
            self.out.push_str(&text::name(base));
        }
        if !window.partition_by.is_empty() {
            space(self);
            self.out.push_str("PARTITION BY ");
            for (nth, key) in window.partition_by.iter().enumerate() {
                if nth > 0 {
                    self.out.push_str(", ");
                }
                self.key(key);
            }
        }
        if !window.order_by.is_empty() {
            space(self);
            self.out.push_str("ORDER BY ");
            self.sorts(&window.order_by, false);
        }
        if let Some(frame) = &window.frame {
            space(self);
            self.frame(frame);
        }
        self.out.push(')');
    }

    fn frame(&mut self, frame: &Frame) {
        self.out.push_str(frame.unit);
        self.out.push(' ');
        if frame.end.is_some() {
            self.out.push_str("BETWEEN ");
        }
        self.bound(&frame.start);
        if let Some(end) = &frame.end {
            self.out.push_str(" AND ");
            self.bound(end);
        }
        self.out.push_str(frame.exclusion);
    }

    fn bound(&mut self, bound: &WindowBound) {
        match bound {
            WindowBound::Word(word) => self.out.push_str(word),
            WindowBound::Offset(node, word) => {
                self.node(node, false);
                self.out.push_str(&format!(" {word}"));
            }
        }
    }

    fn sublink(&mut self, link: &Sublink) {
        self.out.push_str(if matches!(link.kind, SublinkKind::Array) { "ARRAY(" } else { "(" });
        let mut operator = "";
        if let Some((left, name)) = &link.test {
            operator = name;
            match &left[..] {
                [one] => self.node(one, true),
                many => {
                    self.out.push('(');
                    self.list(many, true);
                    self.out.push(')');
                }
            }
        }
        let has_own = match link.kind {
            SublinkKind::Exists => {
                self.out.push_str("EXISTS ");
                true
            }
            SublinkKind::Any if operator == "=" => {
                self.out.push_str(" IN ");
                true
            }
            SublinkKind::Any => {
                self.out.push_str(&format!(" {operator} ANY "));
                true
            }
            SublinkKind::All => {
                self.out.push_str(&format!(" {operator} ALL "));
                true
            }
            SublinkKind::Scalar | SublinkKind::Array => false,
        };
        if has_own {
            self.out.push('(');
        }
        self.query(&link.query, false);
        self.out.push_str(if has_own { "))" } else { ")" });
    }
}

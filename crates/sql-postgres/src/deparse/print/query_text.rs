//! Queries: `get_query_def`.

use crate::deparse::node::{CycleText, FromSource, Group, Query, QueryBody, Select, SqlItem, SqlNode, WHOLE};
use crate::deparse::print::{JOIN, Printer, STEP, VAR};
use crate::deparse::text;
use crate::types::registry;

impl Printer {
    /// Writes a query. Its columns' names are written wherever they are not those of the expressions, if they are seen.
    pub fn query(&mut self, query: &Query, are_names_seen: bool) {
        self.named_query(query, &[], are_names_seen);
    }

    /// Writes a query whose columns a view names: each operand of its set operations has the names.
    pub fn named_query(&mut self, query: &Query, view: &[String], are_names_seen: bool) {
        let indent = self.indent;
        let has_outer = !self.open.is_empty();
        self.push(query, has_outer);
        self.with(query);
        let is_set = matches!(query.body, QueryBody::Set { .. });
        match is_set {
            true => self.body(&query.body, view, are_names_seen),
            false => self.body(&query.body, &names(query), are_names_seen),
        }
        if !query.order_by.is_empty() {
            self.keyword(" ORDER BY ", -STEP, STEP, 1);
            self.sorts(&query.order_by, is_set);
        }
        if let Some(offset) = &query.offset {
            self.keyword(" OFFSET ", -STEP, STEP, 0);
            self.node(offset, false);
        }
        if let Some(limit) = &query.limit {
            match query.with_ties {
                true => {
                    self.keyword(" FETCH FIRST ", -STEP, STEP, 0);
                    self.node(limit, false);
                    self.out.push_str(" ROWS WITH TIES");
                }
                false => {
                    self.keyword(" LIMIT ", -STEP, STEP, 0);
                    match limit {
                        SqlNode::Const { text: None, .. } => self.out.push_str("ALL"),
                        limit => self.node(limit, false),
                    }
                }
            }
        }
        self.locking(query);
        self.pop();
        self.indent = indent;
    }

    fn locking(&mut self, query: &Query) {
        for (strength, tables, wait) in &query.locking {
            for table in tables {
                self.keyword(&format!(" FOR {strength}"), -STEP, STEP, 0);
                let name = self.open.last().map_or(String::new(), |open| text::name(&open.names[*table]));
                self.out.push_str(&format!(" OF {name}{wait}"));
            }
        }
    }

    fn with(&mut self, query: &Query) {
        if query.with.is_empty() {
            return;
        }
        self.indent += STEP;
        self.out.push(' ');
        let mut word = if query.is_recursive { "WITH RECURSIVE " } else { "WITH " };
        for with in &query.with {
            self.out.push_str(word);
            self.out.push_str(&text::name(&with.name));
            if !with.columns.is_empty() {
                self.out.push_str(&format!("({})", text::names(&with.columns)));
            }
            self.out.push_str(match with.materialized {
                None => " AS (",
                Some(true) => " AS MATERIALIZED (",
                Some(false) => " AS NOT MATERIALIZED (",
            });
            self.keyword("", 0, 0, 0);
            self.query(&with.query, true);
            self.keyword("", 0, 0, 0);
            self.out.push(')');
            self.out.push_str(&with.search);
            if let Some(CycleText { head, marks, tail }) = &with.cycle {
                self.out.push_str(head);
                if let Some((value, otherwise)) = marks {
                    self.out.push_str(" TO ");
                    self.node(value, false);
                    self.out.push_str(" DEFAULT ");
                    self.node(otherwise, false);
                }
                self.out.push_str(tail);
            }
            word = ", ";
        }
        self.indent -= STEP;
        self.keyword("", 0, 0, 0);
    }

    fn body(&mut self, body: &QueryBody, names: &[String], are_names_seen: bool) {
        match body {
            QueryBody::Empty => {}
            QueryBody::Select(select) => self.select(select, names, are_names_seen),
            QueryBody::Values(rows) => {
                self.indent += STEP;
                self.out.push(' ');
                self.values(rows);
            }
            QueryBody::Leaf(query) => {
                let needs = !query.with.is_empty()
                    || !query.order_by.is_empty()
                    || query.limit.is_some()
                    || query.offset.is_some()
                    || !query.locking.is_empty()
                    || matches!(query.body, QueryBody::Set { .. });
                let mut query = (**query).clone();
                query.columns.iter_mut().zip(names).for_each(|((name, _), shown)| name.clone_from(shown));
                if needs {
                    self.out.push('(');
                }
                self.named_query(&query, names, are_names_seen);
                if needs {
                    self.out.push(')');
                }
            }
            QueryBody::Set { op, all, left, right } => self.set((op, *all), (left, right), names, are_names_seen),
        }
    }

    fn set(
        &mut self,
        (op, all): (&str, bool),
        (left, right): (&QueryBody, &QueryBody),
        names: &[String],
        are_names_seen: bool,
    ) {
        let needs = matches!(left, QueryBody::Set { op: of, all: is_all, .. } if (*of, *is_all) != (op, all));
        let mut step = 0;
        if needs {
            self.out.push('(');
            step = STEP;
            self.keyword("", step, 0, 0);
        }
        self.body(left, names, are_names_seen);
        match needs {
            true => self.keyword(") ", -step, 0, 0),
            false => self.keyword("", -step, 0, 0),
        }
        self.out.push_str(op);
        self.out.push(' ');
        if all {
            self.out.push_str("ALL ");
        }
        let needs = matches!(right, QueryBody::Set { .. });
        let step = if needs { STEP } else { 0 };
        if needs {
            self.out.push('(');
        }
        self.keyword("", step, 0, 0);
        self.body(right, names, false);
        self.indent -= step;
        if needs {
            self.keyword(")", 0, 0, 0);
        }
    }

    pub fn values(&mut self, rows: &[Vec<SqlNode>]) {
        self.out.push_str("VALUES ");
        for (nth, row) in rows.iter().enumerate() {
            self.out.push_str(if nth > 0 { ", (" } else { "(" });
            for (nth, node) in row.iter().enumerate() {
                if nth > 0 {
                    self.out.push(',');
                }
                self.node(node, false);
            }
            self.out.push(')');
        }
    }

    fn select(&mut self, select: &Select, names: &[String], are_names_seen: bool) {
        self.indent += STEP;
        self.out.push_str(" SELECT");
        match &select.distinct {
            None => {}
            Some(keys) if keys.is_empty() => self.out.push_str(" DISTINCT"),
            Some(keys) => {
                self.out.push_str(" DISTINCT ON (");
                self.keys(keys);
                self.out.push(')');
            }
        }
        self.targets(&select.targets, names, are_names_seen);
        self.from(&select.from);
        if let Some(selection) = &select.selection {
            self.keyword(" WHERE ", -STEP, STEP, 1);
            self.node(selection, false);
        }
        if !select.group_by.is_empty() {
            self.keyword(" GROUP BY ", -STEP, STEP, 1);
            if select.group_distinct {
                self.out.push_str("DISTINCT ");
            }
            for (nth, group) in select.group_by.iter().enumerate() {
                if nth > 0 {
                    self.out.push_str(", ");
                }
                self.group(group);
            }
        }
        if let Some(having) = &select.having {
            self.keyword(" HAVING ", -STEP, STEP, 0);
            self.node(having, false);
        }
        for (nth, (name, window)) in select.windows.iter().enumerate() {
            match nth {
                0 => self.keyword(" WINDOW ", -STEP, STEP, 1),
                _ => self.out.push_str(", "),
            }
            self.out.push_str(&format!("{} AS ", text::name(name)));
            self.window(window);
        }
    }

    fn keys(&mut self, keys: &[SqlNode]) {
        for (nth, key) in keys.iter().enumerate() {
            if nth > 0 {
                self.out.push_str(", ");
            }
            self.key(key);
        }
    }

    fn group(&mut self, group: &Group) {
        match group {
            Group::Key(key) => self.key(key),
            Group::Empty => self.out.push_str("()"),
            Group::List(word, items) => {
                self.out.push_str(&format!("{word}("));
                for (nth, item) in items.iter().enumerate() {
                    if nth > 0 {
                        self.out.push_str(", ");
                    }
                    match item {
                        Group::Key(key) if *word == "GROUPING SETS" => {
                            self.out.push('(');
                            self.key(key);
                            self.out.push(')');
                        }
                        item => self.group(item),
                    }
                }
                self.out.push(')');
            }
        }
    }

    /// Writes into a text of its own.
    fn apart(&mut self, write: impl FnOnce(&mut Printer)) -> String {
        let before = std::mem::take(&mut self.out);
        write(self);
        std::mem::replace(&mut self.out, before)
    }

    /// Adds an item of a list, on a new line where it would be too long for this one.
    fn wrapped(&mut self, item: &str, is_forced: bool, is_first: bool) {
        if let Some(wrap) = self.style.wrap {
            if item.starts_with('\n') {
                let kept = self.out.trim_end_matches(' ').len();
                self.out.truncate(kept);
            } else if !is_first {
                let line = self.out.rfind('\n').map_or(self.out.len(), |at| self.out.len() - at - 1);
                if line + item.len() > wrap || is_forced {
                    self.keyword("", -STEP, STEP, VAR);
                }
            }
        }
        self.out.push_str(item);
    }

    fn targets(&mut self, targets: &[SqlNode], names: &[String], are_names_seen: bool) {
        let mut was_long = false;
        for (nth, target) in targets.iter().enumerate() {
            self.out.push_str(if nth > 0 { ", " } else { " " });
            let mut own = None;
            let mut item = self.apart(|printer| match target {
                SqlNode::Column { level, table, column, ty } => {
                    let (text, name) = printer.column_text(*level, *table, *column);
                    printer.out.push_str(&text);
                    if *column == WHOLE {
                        // Without its type it would be all columns.
                        printer.out.push_str(&format!("::{}", registry::format_type(ty.0, None)));
                    }
                    own = Some(name);
                }
                target => {
                    printer.node(target, true);
                    own = (!are_names_seen).then(|| "?column?".to_owned());
                }
            });
            if let Some(name) = names.get(nth)
                && own.as_ref() != Some(name)
            {
                item.push_str(&format!(" AS {}", text::name(name)));
            }
            self.wrapped(&item, was_long, nth == 0);
            was_long = item.trim_start_matches('\n').contains('\n');
        }
    }

    fn from(&mut self, items: &[SqlItem]) {
        for (nth, item) in items.iter().enumerate() {
            if nth == 0 {
                self.keyword(" FROM ", -STEP, STEP, 2);
                self.item(item);
                continue;
            }
            self.out.push_str(", ");
            let text = self.apart(|printer| printer.item(item));
            self.wrapped(&text, false, false);
        }
    }

    fn item(&mut self, item: &SqlItem) {
        let (kind, left, right, on, using, alias) = match item {
            SqlItem::Table(at) => return self.table(*at),
            SqlItem::Join { kind, left, right, on, using, alias } => (*kind, left, right, on, using, alias),
        };
        let is_pretty = self.style.is_pretty;
        if !is_pretty || alias.is_some() {
            self.out.push('(');
        }
        self.item(left);
        let has_condition = on.is_some() || !using.is_empty();
        let word = if kind == "JOIN" && !has_condition { "CROSS JOIN" } else { kind };
        self.keyword(&format!(" {word} "), -STEP, STEP, JOIN);
        let needs = is_pretty && matches!(**right, SqlItem::Join { alias: None, .. });
        if needs {
            self.out.push('(');
        }
        self.item(right);
        if needs {
            self.out.push(')');
        }
        if !using.is_empty() {
            self.out.push_str(&format!(" USING ({})", text::names(using)));
        } else if let Some(on) = on {
            self.out.push_str(" ON ");
            self.open_parenthesis();
            self.node(on, false);
            self.close_parenthesis();
        } else if kind != "JOIN" {
            self.out.push_str(" ON TRUE");
        }
        if !is_pretty || alias.is_some() {
            self.out.push(')');
        }
        if let Some(alias) = alias {
            self.out.push_str(&format!(" {}", text::name(alias)));
        }
    }

    fn table(&mut self, at: usize) {
        let Some(open) = self.open.last() else { return };
        let (table, name) = (open.tables[at].clone(), open.names[at].clone());
        if table.is_lateral {
            self.out.push_str("LATERAL ");
        }
        let (has_alias, has_columns) = match &table.source {
            FromSource::Relation { schema, name: own, only } => {
                let shown = self.relation_name(schema, own);
                self.out.push_str(&format!("{}{shown}", if *only { "ONLY " } else { "" }));
                (table.has_alias || name != *own, table.has_column_aliases)
            }
            FromSource::Subquery(query) => {
                self.out.push('(');
                self.query(query, true);
                self.out.push(')');
                (true, table.has_column_aliases)
            }
            FromSource::Values(rows) => {
                self.out.push('(');
                self.values(rows);
                self.out.push(')');
                (true, table.has_column_aliases)
            }
            FromSource::Common(own) => {
                self.out.push_str(&text::name(own));
                (table.has_alias || name != *own, table.has_column_aliases)
            }
            FromSource::Join => (false, false),
        };
        if has_alias && !name.is_empty() {
            self.out.push_str(&format!(" {}", text::name(&name)));
        }
        if has_columns {
            self.out.push_str(&format!("({})", text::names(table.columns.iter().map(|(name, _)| name))));
        }
    }
}

fn names(query: &Query) -> Vec<String> {
    query.columns.iter().map(|(name, _)| name.clone()).collect()
}

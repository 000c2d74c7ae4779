//! FROM: tables, joins, queries and functions.

use super::error::Result;
use super::keyword::{Category, Kw};
use super::lexer::Kind;
use super::parser::Parser;
use super::tree::*;

/// The content of parentheses in FROM.
enum FromBrackets {
    Query(Box<SelectStmt>, u32),
    Item(FromItem),
}

impl Parser<'_> {
    pub(super) fn table_list(&mut self) -> Result<Vec<FromItem>> {
        self.list(Parser::joined_tables)
    }

    /// A table with those joined to it.
    pub(super) fn joined_tables(&mut self) -> Result<FromItem> {
        self.level(|parser| {
            let first = parser.table_ref()?;
            parser.joins(first)
        })
    }

    fn joins(&mut self, first: TableRef) -> Result<FromItem> {
        let mut joins = Vec::new();
        while let Some(join) = self.join()? {
            joins.push(join);
        }
        Ok(FromItem { first, joins })
    }

    fn join(&mut self) -> Result<Option<Join>> {
        let at = self.here();
        if self.word(Kw::CROSS) {
            self.expect_word(Kw::JOIN)?;
            let right = self.single()?;
            return Ok(Some(Join { kind: JoinKind::Inner, right, qual: JoinQual::Cross, at }));
        }
        let natural = self.word(Kw::NATURAL);
        let kind = match self.kw() {
            Kw::JOIN => JoinKind::Inner,
            Kw::INNER => JoinKind::Inner,
            Kw::LEFT => JoinKind::Left,
            Kw::RIGHT => JoinKind::Right,
            Kw::FULL => JoinKind::Full,
            _ if natural => return Err(self.error()),
            _ => return Ok(None),
        };
        if self.take().kw != Kw::JOIN {
            if !matches!(kind, JoinKind::Inner) {
                self.word(Kw::OUTER);
            }
            self.expect_word(Kw::JOIN)?;
        }
        if natural {
            let right = self.single()?;
            return Ok(Some(Join { kind, right, qual: JoinQual::Natural, at }));
        }
        // `a JOIN b JOIN c ON .. ON ..`: what is joined before the condition belongs to the right side.
        let right = self.joined_tables()?;
        let qual = match self.any(&[Kw::ON, Kw::USING]) {
            Some(Kw::ON) => JoinQual::On(self.expr()?),
            Some(_) => {
                let columns = self.bracketed(Parser::column_name)?;
                let alias = if self.word(Kw::AS) { Some(self.column_name()?) } else { None };
                JoinQual::Using { columns, alias }
            }
            None => return Err(self.error()),
        };
        Ok(Some(Join { kind, right, qual, at }))
    }

    /// The right side of a join without a condition: one table.
    fn single(&mut self) -> Result<FromItem> {
        let first = self.level(Parser::table_ref)?;
        Ok(FromItem { first, joins: Vec::new() })
    }

    fn table_ref(&mut self) -> Result<TableRef> {
        let at = self.here();
        if self.kw() == Kw::LATERAL {
            self.take();
            if self.kind() == Kind::Open {
                let query = self.level(Parser::bracketed_query)?;
                return self.subselect(query, true, Location(at.0));
            }
            return self.function_ref(true, at);
        }
        if self.kind() == Kind::Open {
            return match self.level(Parser::table_brackets)? {
                FromBrackets::Query(query, at) => self.subselect(*query, false, Location(at)),
                FromBrackets::Item(item) => {
                    let alias = self.alias()?;
                    Ok(TableRef::Joined(Box::new(JoinedTable { item, alias })))
                }
            };
        }
        if self.kw() == Kw::ONLY {
            return self.relation_ref();
        }
        if self.kw() == Kw::ROWS && self.peek_is(1, Kw::FROM) || self.begins_bare_function() {
            return self.function_ref(false, at);
        }
        self.named_ref(at)
    }

    /// Whether a function of SQL's own notation is next.
    fn begins_bare_function(&mut self) -> bool {
        let opens = self.peek(1).kind == Kind::Open;
        match self.kw().category() {
            _ if self.kind() != Kind::Word => false,
            Category::Unreserved => false,
            Category::Column => opens && self.begins_special_call(),
            Category::Function => opens || self.kw() == Kw::CURRENT_SCHEMA || self.peek_is(1, Kw::FOR),
            Category::Reserved => matches!(
                self.kw(),
                Kw::CAST
                    | Kw::CURRENT_CATALOG
                    | Kw::CURRENT_DATE
                    | Kw::CURRENT_ROLE
                    | Kw::CURRENT_TIME
                    | Kw::CURRENT_TIMESTAMP
                    | Kw::CURRENT_USER
                    | Kw::LOCALTIME
                    | Kw::LOCALTIMESTAMP
                    | Kw::SESSION_USER
                    | Kw::SYSTEM_USER
                    | Kw::USER
            ),
        }
    }

    fn relation_ref(&mut self) -> Result<TableRef> {
        let name = self.relation_expr()?;
        let alias = self.alias()?;
        let sample = self.table_sample()?;
        Ok(TableRef::Relation(Box::new(Relation { name, alias, sample })))
    }

    /// opt_tablesample_clause
    fn table_sample(&mut self) -> Result<Option<TableSample>> {
        if !self.word(Kw::TABLESAMPLE) {
            return Ok(None);
        }
        let at = self.here();
        let method = self.any_name()?;
        self.expect(Kind::Open)?;
        let arguments = self.exprs()?;
        self.expect(Kind::Close)?;
        let repeatable = if self.word(Kw::REPEATABLE) {
            self.expect(Kind::Open)?;
            let seed = self.expr()?;
            self.expect(Kind::Close)?;
            Some(seed)
        } else {
            None
        };
        self.grow()?;
        Ok(Some(TableSample { method, arguments, repeatable, at }))
    }

    /// A table, or a function's call, by its name.
    fn named_ref(&mut self, at: Location) -> Result<TableRef> {
        let token = self.token();
        let may_call = token.kind != Kind::Word || token.kw.is_function_name();
        if token.kind == Kind::Word && token.kw.category() == Category::Function {
            // The name of a function, whose parenthesis is missing.
            self.take();
            return Err(self.error());
        }
        let first = self.column_name()?;
        let name = self.rest_of_name(first)?;
        if self.kind() == Kind::Open && (may_call || name.parts.len() > 1) {
            let call = self.application(name)?;
            let call = self.make(ExprKind::Function(Box::new(call)), at.0);
            return self.function_tail(call, false, at);
        }
        self.refuse_subscripts()?;
        let name = self.relation_of(name)?;
        self.accept(Kind::Star);
        let alias = self.alias()?;
        let sample = self.table_sample()?;
        Ok(TableRef::Relation(Box::new(Relation { name, alias, sample })))
    }

    /// relation_expr: `[ONLY] name [*]`.
    pub(super) fn relation_expr(&mut self) -> Result<RangeVar> {
        if !self.word(Kw::ONLY) {
            let relation = self.relation_name()?;
            self.accept(Kind::Star);
            return Ok(relation);
        }
        let bracket = self.accept(Kind::Open);
        let relation = self.relation_name()?;
        if bracket {
            self.expect(Kind::Close)?;
        }
        Ok(RangeVar { only: true, ..relation })
    }

    /// opt_alias_clause
    pub(super) fn alias(&mut self) -> Result<Option<Alias>> {
        if !self.word(Kw::AS) && !self.at_column_name() {
            return Ok(None);
        }
        let name = self.column_name()?;
        Ok(Some(Alias { name, columns: self.optional_columns()? }))
    }

    fn subselect(&mut self, query: SelectStmt, lateral: bool, at: Location) -> Result<TableRef> {
        let alias = self.alias()?;
        Ok(TableRef::Subselect(Box::new(RangeSubselect { lateral, query, alias, at })))
    }

    /// A query or joined tables in parentheses.
    fn table_brackets(&mut self) -> Result<FromBrackets> {
        let start = self.expect(Kind::Open)?.start;
        if self.begins_query() {
            let query = self.query()?;
            self.expect(Kind::Close)?;
            return Ok(FromBrackets::Query(Box::new(query), start));
        }
        let first = if self.kind() == Kind::Open {
            match self.level(Parser::table_brackets)? {
                FromBrackets::Query(query, _) if self.kind() == Kind::Close => {
                    self.take();
                    return Ok(FromBrackets::Query(query, start));
                }
                FromBrackets::Query(query, at) if self.continues_query() => {
                    let query = self.query_after(*query, at)?;
                    self.expect(Kind::Close)?;
                    return Ok(FromBrackets::Query(Box::new(query), start));
                }
                FromBrackets::Query(query, at) => self.subselect(*query, false, Location(at))?,
                FromBrackets::Item(item) => {
                    let alias = self.alias()?;
                    // ((a JOIN b)) is (a JOIN b).
                    if alias.is_none() && self.kind() == Kind::Close {
                        self.take();
                        return Ok(FromBrackets::Item(item));
                    }
                    TableRef::Joined(Box::new(JoinedTable { item, alias }))
                }
            }
        } else {
            self.table_ref()?
        };
        let item = self.joins(first)?;
        if item.joins.is_empty() {
            return Err(self.error());
        }
        self.expect(Kind::Close)?;
        self.grow()?;
        Ok(FromBrackets::Item(item))
    }

    /// func_table
    fn function_ref(&mut self, lateral: bool, at: Location) -> Result<TableRef> {
        if self.kw() == Kw::ROWS && self.peek_is(1, Kw::FROM) {
            self.take();
            self.take();
            let functions = self.bracketed(|parser| {
                let call = parser.level(Parser::windowless_call)?;
                let columns = if parser.word(Kw::AS) { parser.column_definitions()? } else { Vec::new() };
                Ok(RowsFromItem { call, columns })
            })?;
            return self.function_alias(functions, true, lateral, at);
        }
        if self.kw() == Kw::XMLTABLE && self.peek(1).kind == Kind::Open {
            return Err(self.unsupported("XMLTABLE"));
        }
        let call = self.windowless_call()?;
        self.function_tail(call, lateral, at)
    }

    /// func_expr_windowless
    pub(super) fn windowless_call(&mut self) -> Result<Expr> {
        let start = self.token().start;
        if self.begins_bare_function() {
            let call = self.c_expr()?;
            let is_call = matches!(
                call.kind,
                ExprKind::Function(_)
                    | ExprKind::SqlValue(_)
                    | ExprKind::Cast { .. }
                    | ExprKind::Coalesce(_)
                    | ExprKind::NullIf { .. }
                    | ExprKind::Greatest(_)
                    | ExprKind::Least(_)
                    | ExprKind::JsonConstructor(_)
            );
            return if is_call { Ok(call) } else { Err(self.error()) };
        }
        let first = if self.at_column_name() { self.take_name()? } else { self.function_word()? };
        let name = self.rest_of_name(first)?;
        let call = self.application(name)?;
        Ok(self.make(ExprKind::Function(Box::new(call)), start))
    }

    fn function_tail(&mut self, call: Expr, lateral: bool, at: Location) -> Result<TableRef> {
        self.function_alias(vec![RowsFromItem { call, columns: Vec::new() }], false, lateral, at)
    }

    /// WITH ORDINALITY and func_alias_clause behind functions.
    fn function_alias(
        &mut self,
        functions: Vec<RowsFromItem>,
        rows_from: bool,
        lateral: bool,
        at: Location,
    ) -> Result<TableRef> {
        let ordinality = self.words(&[Kw::WITH, Kw::ORDINALITY]);
        let mut function =
            RangeFunction { lateral, rows_from, functions, ordinality, alias: None, columns: Vec::new(), at };
        let is_as = self.word(Kw::AS);
        if is_as && self.kind() == Kind::Open {
            function.columns = self.column_definitions()?;
        } else if is_as || self.at_column_name() {
            let name = self.column_name()?;
            let mut columns = Vec::new();
            if self.kind() == Kind::Open {
                if matches!(self.peek(2).kind, Kind::Comma | Kind::Close) {
                    columns = self.bracketed(Parser::column_name)?;
                } else {
                    function.columns = self.column_definitions()?;
                }
            }
            function.alias = Some(Alias { name, columns });
        }
        Ok(TableRef::Function(Box::new(function)))
    }

    fn column_definitions(&mut self) -> Result<Vec<TableFuncColumn>> {
        self.bracketed(|parser| {
            let name = parser.column_name()?;
            let ty = parser.type_name()?;
            let collation = if parser.word(Kw::COLLATE) { Some(parser.any_name()?) } else { None };
            Ok(TableFuncColumn { name, ty, collation })
        })
    }
}

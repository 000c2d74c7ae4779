//! COPY of the client's data: into a table, and out of a table or query.
//!
//! COPY FROM is one statement over many messages: between two of them the session holds the statement's transaction, the metadata locks and an incomplete record.

use std::sync::Arc;

use query::exec::Exec;
use query::exec::change::{self as changes, Inserting, Tally};
use query::exec::deferred::CheckTime;
use query::nodes::change::Insert;
use query::nodes::expr::Expr;
use query::types::Type;
use syntax::postgres::tree::{self, CopyEndpoint, CopySource, CopyStmt, Ident, RangeVar, RawStatement, Statement};

use crate::batch::{Batch, Row};
use crate::bind::{self, BoundStatement, Plan};
use crate::copy::input::{FieldValue, Next, RecordReader, shown};
use crate::copy::options::{CopyFormat, CopyOptions, Header, names};
use crate::copy::output::{csv_field, text_field};
use crate::define::names::Relation;
use crate::error::{PgError, Result, state};
use crate::functions::state::PgState;
use crate::session::constraints::check_due;
use crate::session::result_set::{Format, ResultColumns, write_binary, write_text};
use crate::session::set::quoted;
use crate::session::{More, Outcome, Session};
use crate::types::{io, registry};
use crate::value::Value;

const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";

/// A COPY FROM under way.
pub(super) struct Copying {
    statement: Arc<BoundStatement>,
    relation: String,
    reader: RecordReader,
    format: CopyFormat,
    /// WHERE: other rows are passed over.
    condition: Option<Expr>,
    /// The checks of the columns that are domains, each over a row of the value.
    domains: Vec<Option<Expr>>,
    tally: Tally,
}

/// A COPY TO under way.
#[derive(Debug)]
pub struct CopyOut {
    options: CopyOptions,
    columns: ResultColumns,
    formats: Vec<i16>,
    ready: Batch,
    at: usize,
    exec: Option<Box<Exec>>,
    rows: u64,
    number: u64,
    /// The header has been written.
    is_begun: bool,
    portal: Option<String>,
}

impl Session {
    pub(super) fn copy(&mut self, copy: &CopyStmt, raw: &RawStatement, text: &Arc<str>) -> Result<Outcome> {
        let CopyStmt { source, from, endpoint, options, selection } = copy;
        let options = CopyOptions::read(options, *from, text)?;
        match endpoint {
            CopyEndpoint::Client => {}
            CopyEndpoint::File(_) => return Err(PgError::unsupported("COPY to or from a file of the server")),
            CopyEndpoint::Program(_) => return Err(PgError::unsupported("COPY to or from a program")),
        }
        match source {
            CopySource::Table { relation, columns } if *from => {
                self.copy_from((relation, columns), selection.as_ref(), options, text)
            }
            CopySource::Table { relation, columns } => {
                let query = self.query_of_table(relation, columns)?;
                let mut statements = self.parse_text(&query)?;
                let raw = statements.pop().ok_or_else(|| PgError::unsupported("COPY of this table"))?;
                self.copy_to(&raw, &query, options)
            }
            CopySource::Query(statement) => {
                let own = RawStatement { statement: Statement::clone(statement), ..raw.clone() };
                self.copy_to(&own, text, options)
            }
        }
    }

    fn copy_from(
        &mut self,
        (relation, columns): (&RangeVar, &[Ident]),
        selection: Option<&tree::Expr>,
        options: CopyOptions,
        text: &Arc<str>,
    ) -> Result<Outcome> {
        match self.relation(relation)? {
            Some(Relation::View(view)) => {
                let error = PgError::new(state::WRONG_OBJECT_TYPE, format!("cannot copy to view \"{}\"", view.name));
                return Err(error.hint("To enable copying to a view, provide an INSTEAD OF INSERT trigger."));
            }
            Some(Relation::Table(table)) if table.query.is_some() => {
                let message = format!("cannot copy to materialized view \"{}\"", table.name);
                return Err(PgError::new(state::WRONG_OBJECT_TYPE, message));
            }
            Some(Relation::Sequence(sequence)) => {
                let message = format!("cannot copy to sequence \"{}\"", sequence.name);
                return Err(PgError::new(state::WRONG_OBJECT_TYPE, message));
            }
            _ => {}
        }
        self.check_writable("COPY FROM")?;
        let mut bind = |session: &mut Session| -> Result<Arc<BoundStatement>> {
            let bound = session.with_environment(&[], |environment, ctx| {
                bind::bind_copy_from(environment, ctx, text, relation, columns)
            });
            // PostgreSQL points to nothing in a COPY.
            let bound = bound.map_err(|error| PgError { position: None, ..error })?;
            bound.permitted()
        };
        let statement = bind(self)?;
        let statement = self.start(&statement, Vec::new(), &mut bind)?;
        let insert = insert_of(&statement)?;
        let table = &insert.rules.table;
        let condition = match selection {
            None => None,
            Some(selection) => Some(self.with_environment(&[], |environment, ctx| {
                bind::bind_copy_condition(environment, ctx, text, table, selection)
            })?),
        };
        let types = insert.targets.iter().map(|at| registry::oid_of(&table.columns[*at].ty));
        let domains =
            self.with_environment(&[], |environment, ctx| bind::bind_domain_checks(environment, ctx, types))?;
        let names: Vec<String> = insert.targets.iter().map(|at| table.columns[*at].name.clone()).collect();
        options.check_columns(&names)?;
        let (format, binary) = (options.format, options.format == CopyFormat::Binary);
        let formats = vec![i16::from(binary); names.len()];
        let reader = RecordReader::new(options, names);
        let relation = table.name.clone();
        self.copying = Some(Box::new(Copying {
            statement: statement.clone(),
            relation,
            reader,
            format,
            condition,
            domains,
            tally: Tally::default(),
        }));
        self.is_open = true;
        Ok(Outcome::CopyIn { formats, binary })
    }

    /// Takes bytes of the client for the COPY FROM under way. After an error the rest is to be thrown away.
    pub fn copy_data(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(mut copying) = self.copying.take() else { return Err(self.fail_with(no_copy())) };
        copying.reader.add(bytes);
        match self.copy_records(&mut copying) {
            Ok(()) => {
                self.copying = Some(copying);
                Ok(())
            }
            Err(error) => Err(self.fail_with(error)),
        }
    }

    /// Ends the COPY FROM: there are no more bytes.
    pub fn copy_done(&mut self) -> Result<Outcome> {
        let Some(mut copying) = self.copying.take() else { return Err(self.fail_with(no_copy())) };
        copying.reader.complete();
        let done = self.copy_records(&mut copying).and_then(|()| {
            let insert = insert_of(&copying.statement)?;
            let changed = changes::inserted(insert, std::mem::take(&mut copying.tally), &mut self.ctx);
            let affected = changed.map_err(|fault| self.error_of(fault, &copying.statement.written))?.affected;
            check_due(CheckTime::Statement, &mut self.ctx)?;
            self.is_open = false;
            self.end_statement()?;
            Ok(Outcome::done(format!("COPY {affected}")))
        });
        done.map_err(|error| self.fail_with(error))
    }

    /// Ends the COPY FROM as failed, as the client asks.
    pub fn copy_fail(&mut self, message: &str) -> PgError {
        let context =
            self.copying.take().map(|copying| format!("COPY {}, line {}", copying.relation, copying.reader.line + 1));
        let error = PgError::new(state::QUERY_CANCELED, format!("COPY from stdin failed: {message}"));
        let error = match context {
            Some(context) => error.within(|| context),
            None => error,
        };
        self.fail_with(error)
    }

    /// Inserts the records that are complete.
    fn copy_records(&mut self, copying: &mut Copying) -> Result<()> {
        let Copying { statement, relation, reader, format, condition, domains, tally } = copying;
        let statement = statement.clone();
        let insert = insert_of(&statement)?;
        self.ctx.changes_rows = true;
        let types: Vec<Type> = insert.targets.iter().map(|at| input_type(insert, *at)).collect();
        let mut inserting = Inserting::new(insert, std::mem::take(tally));
        let done = loop {
            match reader.next_record() {
                Ok(Next::More | Next::End) => break Ok(()),
                Ok(Next::Header) => {}
                Ok(Next::Record) => {
                    let put = self.copy_record(
                        reader,
                        (*format, condition.as_ref()),
                        (&types, domains),
                        insert,
                        &mut inserting,
                    );
                    if let Err(error) = put {
                        break Err(error.within(|| of_record(relation, reader, *format)));
                    }
                }
                Err(error) => break Err(error.within(|| of_record(relation, reader, *format))),
            }
        };
        *tally = inserting.tally;
        done
    }

    fn copy_record(
        &mut self,
        reader: &RecordReader,
        (format, condition): (CopyFormat, Option<&Expr>),
        (types, domains): (&[Type], &[Option<Expr>]),
        insert: &Insert,
        inserting: &mut Inserting<'_>,
    ) -> Result<()> {
        let ctx = &mut self.ctx;
        inserting.tally.records += 1;
        let table = &insert.rules.table;
        let mut row: Row = vec![Value::Null; table.columns.len()];
        let mut given = vec![false; row.len()];
        for (nth, (at, ty)) in insert.targets.iter().zip(types).enumerate() {
            let field = reader.field(nth)?;
            let name = &table.columns[*at].name;
            let context = |field: FieldValue<'_>| match field {
                FieldValue::Bytes(bytes) if format != CopyFormat::Binary => {
                    format!("COPY {}, line {}, column {name}: {}", table.name, reader.line, shown(bytes))
                }
                FieldValue::Null if format != CopyFormat::Binary => {
                    format!("COPY {}, line {}, column {name}: null input", table.name, reader.line)
                }
                _ => format!("COPY {}, line {}, column {name}", table.name, reader.line),
            };
            let value = match field {
                FieldValue::Null => Value::Null,
                FieldValue::Default => continue,
                FieldValue::Bytes(bytes) => {
                    let pg = ctx.slot_mut::<PgState>();
                    let read = match format {
                        CopyFormat::Binary => io::receive(ty, bytes, &pg.io),
                        _ => io::utf8(bytes).and_then(|text| io::input(ty, text, &pg.io)),
                    };
                    read.map_err(|error| error.within(|| context(field)))?
                }
            };
            let value = match &domains[nth] {
                Some(checks) => {
                    let checked = checks.eval(std::slice::from_ref(&value), ctx);
                    checked.map_err(|fault| PgError::from(fault).within(|| context(field)))?
                }
                None => value,
            };
            given[*at] = true;
            // NULL is checked with the other constraints of the row.
            row[*at] = match value {
                Value::Null => Value::Null,
                value => {
                    inserting.take(*at, value, ctx).map_err(|fault| PgError::from(fault).within(|| context(field)))?
                }
            };
        }
        let written = std::slice::from_ref(table);
        let render = |fault| crate::error::fault::render(fault, written);
        for at in (0..row.len()).filter(|at| !given[*at]) {
            row[at] = inserting.default(at, &row, ctx).map_err(render)?;
        }
        query::exec::host::host(ctx).look_up().map_err(render)?;
        if let Some(condition) = condition
            && !condition.holds(&row, ctx).map_err(render)?
        {
            return Ok(());
        }
        inserting.finish(row, ctx).map_err(|fault| crate::error::fault::render_in(fault, written, ctx))
    }

    /// Returns the query of the columns of a table.
    fn query_of_table(&mut self, relation: &RangeVar, columns: &[Ident]) -> Result<String> {
        let table = match self.relation(relation)? {
            Some(Relation::Table(table)) if table.query.is_some() => {
                let message = format!("cannot copy from materialized view \"{}\"", table.name);
                let error = PgError::new(state::WRONG_OBJECT_TYPE, message);
                return Err(error.hint("Try the COPY (SELECT ...) TO variant."));
            }
            Some(Relation::Table(table)) => table,
            Some(Relation::View(view)) => {
                let error = PgError::new(state::WRONG_OBJECT_TYPE, format!("cannot copy from view \"{}\"", view.name));
                return Err(error.hint("Try the COPY (SELECT ...) TO variant."));
            }
            Some(Relation::Sequence(sequence)) => {
                let message = format!("cannot copy from sequence \"{}\"", sequence.name);
                return Err(PgError::new(state::WRONG_OBJECT_TYPE, message));
            }
            Some(Relation::Index(..)) | None => return Err(self.missing_relation(relation, None)),
        };
        let listed = match columns {
            [] => {
                let kept = table.columns.iter().filter(|column| !column.is_hidden() && column.generated.is_none());
                kept.map(|column| column.name.clone()).collect()
            }
            columns => names(columns),
        };
        for (nth, name) in listed.iter().enumerate() {
            if !table.columns.iter().any(|column| !column.is_hidden() && column.name == *name) {
                let message = format!("column \"{name}\" of relation \"{}\" does not exist", table.name);
                return Err(PgError::new(state::UNDEFINED_COLUMN, message));
            }
            if listed[..nth].contains(name) {
                let message = format!("column \"{name}\" specified more than once");
                return Err(PgError::new(state::DUPLICATE_COLUMN, message));
            }
        }
        let list: Vec<String> = listed.iter().map(|name| quoted(name)).collect();
        let schema = relation.schema.as_ref().map_or_else(String::new, |schema| quoted(schema) + ".");
        Ok(format!("select {} from {schema}{}", list.join(", "), quoted(&relation.name)))
    }

    fn copy_to(&mut self, raw: &RawStatement, text: &str, options: CopyOptions) -> Result<Outcome> {
        let mut fields = Vec::new();
        let mut bind = |session: &mut Session| -> Result<Arc<BoundStatement>> {
            let bound = session.bind_raw(raw, text, &[], &[])?;
            fields = bound.fields;
            Ok(bound.statement)
        };
        let statement = bind(self)?;
        if statement.plan.changes_rows() && statement.written.iter().any(|table| !table.temporary) {
            self.check_writable("COPY")?;
        }
        self.suspension.is_allowed = false;
        let statement = self.start(&statement, Vec::new(), &mut bind)?;
        if statement.plan.columns().is_none() {
            let message = "COPY query must have a RETURNING clause";
            return Err(PgError::new(state::FEATURE_NOT_SUPPORTED, message));
        }
        let format = i16::from(options.format == CopyFormat::Binary);
        let columns = ResultColumns::new(fields.iter().map(|field| Format::new(field, format)));
        options.check_columns(&fields.iter().map(|field| field.name.clone()).collect::<Vec<_>>())?;
        let opened = self.open_plan(&statement).map_err(|fault| self.error_of(fault, &statement.written))?;
        self.is_open = true;
        Ok(Outcome::CopyOut(Box::new(CopyOut {
            options,
            formats: vec![format; fields.len()],
            columns,
            ready: Batch::new(),
            at: 0,
            exec: opened.0.map(Box::new),
            rows: 0,
            number: self.number,
            is_begun: false,
            portal: None,
        })))
    }
}

impl CopyOut {
    /// Returns whether the format is binary.
    pub fn is_binary(&self) -> bool {
        self.options.format == CopyFormat::Binary
    }

    /// Returns the format of each column.
    pub fn formats(&self) -> &[i16] {
        &self.formats
    }

    /// Ends the copy early: the client has gone.
    pub fn close(self, session: &mut Session) {
        if self.number == session.number {
            // A failure has no one to be reported to.
            let _ = session.end_statement();
        }
    }

    /// Appends complete CopyData messages, about `bytes_max` bytes of them. The last is followed by `More::End`. An error ends the copy.
    pub fn write(&mut self, session: &mut Session, out: &mut Vec<u8>, bytes_max: usize) -> Result<More> {
        match self.write_messages(session, out, bytes_max) {
            Ok(more) => Ok(more),
            Err(error) => {
                self.exec = None;
                Err(session.fail_with(error))
            }
        }
    }

    fn write_messages(&mut self, session: &mut Session, out: &mut Vec<u8>, bytes_max: usize) -> Result<More> {
        let end = out.len() + bytes_max;
        if !self.is_binary() && !std::mem::replace(&mut self.is_begun, true) {
            self.write_header(out);
        }
        loop {
            while self.at < self.ready.len() {
                if out.len() >= end {
                    return Ok(More::Rows);
                }
                let io = session.ctx.slot_mut::<PgState>().io.clone();
                let start = begin_message(out);
                self.write_signature(out);
                self.write_record(&io, out)?;
                end_message(start, out)?;
                self.at += 1;
                self.rows += 1;
            }
            self.ready.clear();
            self.at = 0;
            let Some(exec) = &mut self.exec else { break };
            if self.number != session.number {
                return Err(PgError::new(state::QUERY_CANCELED, "canceling statement due to user request"));
            }
            let filled = exec.fill(&mut session.ctx, &mut self.ready);
            match filled.map_err(|fault| session.error_of(fault, &[]))? {
                true => session.core.note_reads(query::exec::host::host(&mut session.ctx)),
                false => self.exec = None,
            }
        }
        if self.is_binary() {
            let start = begin_message(out);
            self.write_signature(out);
            out.extend_from_slice(&(-1_i16).to_be_bytes());
            end_message(start, out)?;
        }
        session.end_statement()?;
        if let Some(portal) = &self.portal {
            session.end_portal(portal, 0);
        }
        Ok(More::End { tag: format!("COPY {}", self.rows) })
    }

    /// Begins the first message of the binary format. Clients rely on PostgreSQL's leaving the signature no message of its own.
    fn write_signature(&mut self, out: &mut Vec<u8>) {
        if self.is_binary() && !std::mem::replace(&mut self.is_begun, true) {
            out.extend_from_slice(SIGNATURE);
            out.extend_from_slice(&[0; 8]);
        }
    }

    fn write_header(&self, out: &mut Vec<u8>) {
        if self.options.header != Header::No {
            let start = begin_message(out);
            for (nth, column) in self.columns.formats().iter().enumerate() {
                if nth > 0 {
                    out.push(self.options.delimiter);
                }
                self.write_field(column.field.name.as_bytes(), false, out);
            }
            out.push(b'\n');
            let _ = end_message(start, out);
        }
    }

    fn write_record(&self, io: &io::IoContext, out: &mut Vec<u8>) -> Result<()> {
        let cells = self.ready.row(self.at);
        if self.is_binary() {
            out.extend_from_slice(&(self.columns.formats().len() as u16).to_be_bytes());
            for (cell, column) in cells.iter().zip(self.columns.formats()) {
                if cell.is_null() {
                    out.extend_from_slice(&(-1_i32).to_be_bytes());
                    continue;
                }
                let start = out.len();
                out.extend_from_slice(&[0; 4]);
                write_binary(cell, &column.ty, io, out)?;
                let length = (out.len() - start - 4) as u32;
                out[start..start + 4].copy_from_slice(&length.to_be_bytes());
            }
            return Ok(());
        }
        let mut value = Vec::new();
        for (nth, (cell, column)) in cells.iter().zip(self.columns.formats()).enumerate() {
            if nth > 0 {
                out.push(self.options.delimiter);
            }
            if cell.is_null() {
                out.extend_from_slice(self.options.null.as_bytes());
                continue;
            }
            value.clear();
            write_text(cell, &column.ty, io, &mut value)?;
            self.write_field(&value, self.options.force_quote.has(&column.field.name), out);
        }
        out.push(b'\n');
        Ok(())
    }

    fn write_field(&self, value: &[u8], force_quote: bool, out: &mut Vec<u8>) {
        match self.options.format {
            CopyFormat::Csv => csv_field(value, &self.options, force_quote, self.columns.formats().len() == 1, out),
            _ => text_field(value, self.options.delimiter, out),
        }
    }
}

fn begin_message(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&[b'd', 0, 0, 0, 0]);
    start
}

fn end_message(start: usize, out: &mut [u8]) -> Result<()> {
    let length = super::result_set::message_length(out.len() - start - 1)?;
    out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

fn of_record(relation: &str, reader: &RecordReader, format: CopyFormat) -> String {
    match format {
        CopyFormat::Binary => format!("COPY {relation}, line {}", reader.line.max(1)),
        _ => format!("COPY {relation}, line {}: {}", reader.line, reader.shown()),
    }
}

fn insert_of(statement: &BoundStatement) -> Result<&Insert> {
    match &statement.plan {
        Plan::Insert(insert) => Ok(insert),
        _ => Err(PgError::new(state::INTERNAL_ERROR, "COPY without an INSERT")),
    }
}

/// The type in whose form the client sends a column. The modifier is applied when the value is stored.
fn input_type(insert: &Insert, at: usize) -> Type {
    let ty = &insert.rules.table.columns[at].ty;
    match crate::types::foreign::is_foreign(ty) {
        true => crate::types::foreign::type_of(ty)
            .map_or_else(|| ty.clone(), |foreign| registry::column_type(foreign.oid, -1, true)),
        false => registry::column_type(registry::oid_of(ty), -1, true),
    }
}

fn no_copy() -> PgError {
    PgError::new(state::PROTOCOL_VIOLATION, "no COPY is in progress")
}

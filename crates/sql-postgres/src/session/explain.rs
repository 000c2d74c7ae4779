//! EXPLAIN: options, the run of ANALYZE, and the result.

use std::sync::Arc;
use std::time::Instant;

use engine::ThreadCounts;
use query::exec::host::host;
use query::exec::instrumentation::Measure;
use syntax::postgres::tree::{DefArg, DefElem, ExplainStmt, RawStatement, Statement};

use crate::batch::Batch;
use crate::bind::{self, BoundStatement, Plan};
use crate::error::{PgError, Result, state};
use crate::explain::{Form, RanPlan, Report, tree, written};
use crate::session::facts::FactsOf as _;
use crate::session::statement::has_plan;
use crate::session::{Session, is_on};
use crate::types::oid::{self, Oid};
use crate::value::Value;

/// The options of EXPLAIN.
#[derive(Debug, Default)]
struct ExplainOptions {
    form: Form,
    analyze: bool,
    verbose: bool,
    settings: bool,
    generic_plan: bool,
    buffers: bool,
    wal: bool,
    costs: Option<bool>,
    timing: Option<bool>,
    summary: Option<bool>,
}

/// Settings that change plans: those of PostgreSQL's planner that are obeyed here.
const PLANNER_SETTINGS: [&str; 2] = ["search_path", "work_mem"];

impl ExplainOptions {
    fn read(options: &[DefElem], text: &str) -> Result<ExplainOptions> {
        let mut read = ExplainOptions::default();
        for option in options {
            let is_on = is_on(option);
            match &*option.name {
                "analyze" => read.analyze = is_on,
                "verbose" => read.verbose = is_on,
                "costs" => read.costs = Some(is_on),
                "timing" => read.timing = Some(is_on),
                "summary" => read.summary = Some(is_on),
                "settings" => read.settings = is_on,
                "generic_plan" => read.generic_plan = is_on,
                "format" => read.form = form(option, text)?,
                "buffers" => read.buffers = is_on,
                "wal" => read.wal = is_on,
                name => {
                    let message = format!("unrecognized EXPLAIN option \"{name}\"");
                    return Err(PgError::new(state::SYNTAX_ERROR, message).at(text, option.at.0 as usize));
                }
            }
        }
        let invalid = |message: &str| Err(PgError::new(state::INVALID_PARAMETER_VALUE, message));
        if read.wal && !read.analyze {
            return invalid("EXPLAIN option WAL requires ANALYZE");
        }
        if read.timing == Some(true) && !read.analyze {
            return invalid("EXPLAIN option TIMING requires ANALYZE");
        }
        if read.generic_plan && read.analyze {
            return invalid("EXPLAIN options ANALYZE and GENERIC_PLAN cannot be used together");
        }
        Ok(read)
    }
}

fn form(option: &DefElem, text: &str) -> Result<Form> {
    let word = match &option.value {
        Some(DefArg::String(word) | DefArg::Keyword(word)) => word.as_str(),
        Some(DefArg::Type(ty)) => ty.name.last(),
        Some(DefArg::Name(name)) => name.last(),
        _ => "",
    };
    match word {
        "text" => Ok(Form::Text),
        "json" => Ok(Form::Json),
        "yaml" => Ok(Form::Yaml),
        "xml" => Ok(Form::Xml),
        other => {
            let message = format!("unrecognized value for EXPLAIN option \"format\": \"{other}\"");
            Err(PgError::new(state::INVALID_PARAMETER_VALUE, message).at(text, option.at.0 as usize))
        }
    }
}

/// The statement that is explained: bound, with values for its parameters.
struct Explained {
    raw: RawStatement,
    text: Arc<str>,
    statement: Arc<BoundStatement>,
    types: Vec<Oid>,
    values: Vec<Value>,
}

impl Session {
    /// Returns the type of EXPLAIN's column, which follows the format.
    pub(super) fn explain_type(explain: &ExplainStmt) -> Oid {
        let format = explain.options.iter().rev().find(|option| option.name == "format");
        match format.map(|option| form(option, "")) {
            Some(Ok(Form::Json)) => oid::JSON,
            _ => oid::TEXT,
        }
    }

    pub(super) fn explain(
        &mut self,
        explain: &ExplainStmt,
        raw: &RawStatement,
        text: &Arc<str>,
        (types, values): (&[Oid], Vec<Value>),
    ) -> Result<Vec<String>> {
        let ExplainStmt { options, statement } = explain;
        let options = ExplainOptions::read(options, text)?;
        let (begun, before) = (Instant::now(), ThreadCounts::now());
        let explained = self.explained(statement, raw, text, (types, values), options.generic_plan)?;
        let (planning, planned) = (begun.elapsed(), ThreadCounts::now().since(before));
        let mut execution = None;
        let mut ran = None;
        if options.analyze {
            let begun = Instant::now();
            ran = Some(self.run_explained(&explained)?);
            execution = Some(begun.elapsed());
        }
        let summary = options.summary.unwrap_or(options.analyze);
        let settings = if options.settings { Some(self.planner_settings()) } else { None };
        let report = Report {
            form: options.form,
            costs: options.costs.unwrap_or(true),
            timing: options.timing.unwrap_or(true),
            buffers: options.buffers,
            wal: options.wal,
            planned: options.buffers.then_some(planned),
            plan: tree(&explained.statement.plan, ran.as_ref(), options.verbose),
            settings,
            planning: summary.then_some(planning),
            execution: execution.filter(|_| summary),
        };
        Ok(written(&report))
    }

    /// Binds the statement that is explained: itself, the query of a cursor, or that of EXECUTE.
    fn explained(
        &mut self,
        statement: &Statement,
        raw: &RawStatement,
        text: &Arc<str>,
        (types, values): (&[Oid], Vec<Value>),
        is_generic: bool,
    ) -> Result<Explained> {
        if let Statement::Execute(execute) = statement {
            let (prepared, values) = self.prepared_with_values(execute, text)?;
            let Some(raw) = prepared.raw.clone().filter(|raw| has_plan(&raw.statement)) else {
                return Err(PgError::unsupported("EXPLAIN of this statement"));
            };
            let bound = self.bind_raw(&raw, &prepared.text, &prepared.parameter_types, &values)?;
            let (text, types) = (prepared.text.clone(), prepared.parameter_types.clone());
            return Ok(Explained { raw, text, statement: bound.statement, types, values });
        }
        let statement = match statement {
            Statement::DeclareCursor(declare) => Statement::Select(Box::new(declare.query.clone())),
            statement if has_plan(statement) => Statement::clone(statement),
            _ => return Err(PgError::unsupported("EXPLAIN of this statement")),
        };
        let raw = RawStatement { statement, ..raw.clone() };
        let bound = self.bind_raw(&raw, text, types, &values)?;
        if bound.parameter_types.len() > values.len() && !is_generic {
            return Err(super::run::no_parameter(text, &raw));
        }
        let types = bound.parameter_types;
        Ok(Explained { raw, text: text.clone(), statement: bound.statement, types, values })
    }

    /// Runs the statement for its figures. Its rows are dropped.
    fn run_explained(&mut self, explained: &Explained) -> Result<RanPlan> {
        let Explained { raw, text, statement, types, values } = explained;
        if statement.plan.changes_rows() && statement.written.iter().any(|table| !table.temporary) {
            self.check_writable(super::run::command_word(super::run::tag_of(&raw.statement)))?;
        }
        self.suspension.is_allowed = false;
        let mut again = |session: &mut Session| {
            session.bind_raw(raw, text, types, values).map(|bound: bind::Bound| bound.statement)
        };
        let started = self.start(statement, values.clone(), &mut again)?;
        if !Arc::ptr_eq(&started, statement) {
            let message = "a definition has changed while the statement was explained";
            return Err(PgError::new(state::SERIALIZATION_FAILURE, message));
        }
        host(&mut self.ctx).measures = Some(query::exec::instrumentation::Measures::default());
        let (begun, before) = (Instant::now(), ThreadCounts::now());
        let ran = self.drain_plan(statement);
        let (time, counts) = (begun.elapsed(), ThreadCounts::now().since(before));
        let measures = host(&mut self.ctx).measures.take().unwrap_or_default();
        let affected = ran.map_err(|fault| self.error_of(fault, &statement.written))?;
        let is_change = match &statement.plan {
            Plan::Several(several) => several.main.changes_rows(),
            plan => plan.changes_rows(),
        };
        // A change returns its rows when all are there.
        let rows = if statement.plan.returning().is_some() { affected } else { 0 };
        let changed = is_change.then_some(Measure { loops: 1, rows, first: time, time, counts });
        Ok(RanPlan { measures, changed })
    }

    /// Runs a plan and reads all its rows. Returns the number of rows that it has changed.
    fn drain_plan(&mut self, statement: &BoundStatement) -> datum::Result<u64> {
        let (exec, affected) = self.open_plan(statement)?;
        if let Some(mut exec) = exec {
            let mut batch = Batch::new();
            while exec.fill(&mut self.ctx, &mut batch)? {
                batch.clear();
            }
        }
        Ok(affected.unwrap_or(0))
    }

    fn planner_settings(&mut self) -> Vec<(String, String)> {
        let settings = &self.ctx.facts().settings;
        let is_changed = |name: &&&str| {
            crate::settings::find(name).is_some_and(|at| settings.at(at) != crate::settings::SETTINGS[at].default)
        };
        let changed = PLANNER_SETTINGS.iter().filter(is_changed);
        changed.map(|name| ((*name).to_owned(), settings.show(name).unwrap_or_default())).collect()
    }
}

//! EXPLAIN in its output formats, and EXPLAIN ANALYZE, which runs the plan first.

use std::sync::Arc;

use crate::batch::Batch;
use crate::error::{self, Result, SqlError};
use crate::explain::{Explained, Verb, json, table_columns, table_rows, tree};
use crate::instance::prepared::type_of;
use crate::instance::statement::Plan;
use crate::parse::statement::Statement;
use crate::session::{Outcome, Session, text_column};
use crate::types::{Column, Type};
use crate::value::Value;
use query::nodes::change::{OnConflict, Values};

/// Output format of EXPLAIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Table,
    Tree,
    Json,
}

/// MySQL's text for changes that EXPLAIN ANALYZE does not measure.
const NOT_MEASURED: &str = "<not executable by iterator executor>\n";

/// Returns the output format for FORMAT=. ANALYZE implies a tree.
pub fn form(format: Option<&str>, analyze: bool) -> Result<Form> {
    match (format, analyze) {
        (None | Some("tree"), true) => Ok(Form::Tree),
        (Some(format @ ("json" | "traditional" | "default")), true) => {
            Err(SqlError::unsupported(format!("EXPLAIN ANALYZE with {} format", format.to_uppercase())))
        }
        (None | Some("traditional" | "default"), false) => Ok(Form::Table),
        (Some("tree"), false) => Ok(Form::Tree),
        (Some("json"), false) => Ok(Form::Json),
        (Some(other), _) => Err(error::UNKNOWN_EXPLAIN_FORMAT.with(&[&other])),
    }
}

pub fn columns(form: Form) -> Vec<Column> {
    if form == Form::Table { table_columns() } else { vec![text_column("EXPLAIN")] }
}

impl Session {
    pub(super) fn explain(
        &mut self,
        statement: &Statement,
        analyze: bool,
        format: Option<&str>,
        parameters: Vec<Value>,
    ) -> Result<Outcome> {
        let form = form(format, analyze)?;
        let types: Vec<Type> = parameters.iter().map(|value| type_of(value, self.settings.collation)).collect();
        let compiled = Arc::new(self.compile(statement, (&types, &parameters))?);
        self.track_deed(compiled.effects);
        let mut measures = None;
        if analyze {
            // As in MySQL nothing is changed. For a multi-table change or INSERT ... SELECT the rows are read and
            // measured; a single-table change is not measured.
            let finding = match compiled.plan {
                Plan::Query { .. } => Some(compiled.clone()),
                _ => compiled.finding().map(Arc::new),
            };
            let Some(finding) = finding else {
                return Ok(self.rows(vec![text_column("EXPLAIN")], vec![vec![Value::text(NOT_MEASURED)]]));
            };
            self.host().measures = Some(Default::default());
            let ran = self.run_through(&finding, parameters);
            measures = self.host().measures.take();
            ran?;
        }
        let explained = explained(&compiled.plan);
        let (columns, rows) = match form {
            Form::Table => (table_columns(), table_rows(&explained)),
            Form::Tree => (vec![text_column("EXPLAIN")], vec![vec![Value::text(tree(&explained, measures.as_ref()))]]),
            Form::Json => (vec![text_column("EXPLAIN")], vec![vec![Value::text(json(&explained))]]),
        };
        Ok(self.rows(columns, rows))
    }

    /// Runs the plan to its end and discards the rows.
    fn run_through(
        &mut self,
        compiled: &Arc<crate::instance::statement::BoundStatement>,
        parameters: Vec<Value>,
    ) -> Result<()> {
        let outcome = self.run(compiled, parameters, &mut |_| None)?;
        if let Outcome::Rows(mut rows) = outcome {
            let mut batch = Batch::new();
            while rows.next(self, &mut batch)? {}
        }
        Ok(())
    }
}

fn explained(plan: &Plan) -> Explained<'_> {
    match plan {
        Plan::Query { node, .. } => Explained { verb: Verb::Select, table: None, node: Some(node) },
        Plan::Update(update) => {
            let table = update.targets.first().map(|target| &*target.rules.table.name);
            Explained { verb: Verb::Update, table, node: Some(&update.node) }
        }
        Plan::Delete(delete) => {
            let table = delete.targets.first().map(|target| &*target.rules.table.name);
            Explained { verb: Verb::Delete, table, node: Some(&delete.node) }
        }
        Plan::Insert(insert) => {
            let verb = if insert.on_conflict == OnConflict::Replace { Verb::Replace } else { Verb::Insert };
            let node = match &insert.values {
                Values::Query(node) => Some(node),
                Values::Rows(_) => None,
            };
            Explained { verb, table: Some(&insert.rules.table.name), node }
        }
        // LOAD DATA cannot be explained, and MySQL has no MERGE and no WITH that changes rows.
        Plan::Load(_) | Plan::Evaluate(_) | Plan::Merge(_) | Plan::Several(_) => {
            Explained { verb: Verb::Select, table: None, node: None }
        }
    }
}

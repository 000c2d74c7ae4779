//! Statements bound and run over an engine on a simulated disk, without a session.

use std::ops::Bound as Range;
use std::sync::{Arc, OnceLock};

use datum::key::KeyOrder;
use datum::row::Layout;
use engine::rows::{Isolation, MapId};
use engine::{Engine, Options};
use os::{Folder, SimClock, SimFolder};
use query::catalog::object_id::UNNUMBERED;
use query::catalog::table::{Check, Default, Generated, Index, Part, Table, TableColumn};
use query::catalog::table_state::TableState;
use query::exec::host::{Host, host};
use query::exec::instance::Instance;
use query::exec::monitor::{Monitor, RowAccess};
use query::exec::{Exec, change};
use query::key_form::KeyForm;
use query::nodes::context::EvalContext;
use query::nodes::system_table::SystemTable;
use query::plan::statistics::Statistics;
use query::types::{Collation, Type};
use syntax::postgres::parse_script;
use syntax::postgres::tree::{ConstraintKind, CreateStmt, Statement, TableElement};

use crate::bind::rules::MAKER;
use crate::bind::{BindSession, Bound, Environment, Plan, bind};
use crate::error::{PgError, Result};
use crate::functions::state::StateOf as _;
use crate::types::assignment::ASSIGNMENT;
use crate::types::io;
use crate::types::oid::Oid;
use crate::types::registry::column_type;
use crate::value::Value;

pub struct World {
    instance: Arc<Instance>,
    ctx: EvalContext,
    folder: Arc<SimFolder>,
}

struct Nothing;

impl Monitor for Nothing {
    fn count(&self, _: RowAccess, _: u64) {}

    fn is_cancelled(&self) -> bool {
        false
    }

    fn show_state(&self, _: Option<String>) {}
}

impl Statistics for Nothing {
    fn know(&self, _: &Arc<Table>) {}

    fn extent(&self, _: MapId, _: Range<&[u8]>, _: Range<&[u8]>) -> Option<f64> {
        None
    }
}

impl BindSession for Nothing {
    fn check_interrupts(&self) -> Result<()> {
        Ok(())
    }

    fn system_table(&self, _: &str, _: &str) -> Option<&'static SystemTable> {
        None
    }
}

impl World {
    pub fn new() -> World {
        let pager = pager::Options {
            frame_bytes: 2048 * 4096,
            ring_bytes: 4 << 20,
            segment_bytes: 8 << 20,
            checkpoint_distance: 32 << 20,
            ..pager::Options::default()
        };
        let folder = SimFolder::new(7);
        let clock = Arc::new(SimClock::new(1_700_000_000_000));
        let options = Options { pager, random: 7, ..Options::default() };
        let engine = Engine::open(options, folder.clone() as Arc<dyn Folder>, clock).expect("the engine opens");
        let instance = Arc::new(Instance::open(engine, &[]).expect("the catalog loads"));
        let mut writing = instance.catalog().write();
        writing.put_schema("test", Collation::Binary, MAKER).expect("a schema");
        writing.commit().expect("the schema is kept");
        let mut ctx = EvalContext::new();
        let monitor: Arc<dyn Monitor> = Arc::new(Nothing);
        ctx.host = Some(Box::new(Host::new(instance.clone(), monitor, &ASSIGNMENT)));
        ctx.counts_found = true;
        host(&mut ctx).recursion_max = u64::MAX;
        World { instance, ctx, folder }
    }

    /// Runs a script and returns the lines of its results, as psql shows them without alignment.
    pub fn run(&mut self, script: &str) -> Vec<String> {
        let statements = match parse_script(script, &|| false) {
            Ok(statements) => statements,
            Err(error) => return vec![format!("ERROR syntax {error:?}")],
        };
        let mut lines = Vec::new();
        for statement in statements {
            let text = &script[statement.start..statement.end];
            // Positions are those of the script.
            match self.statement(&statement.statement, script) {
                Ok(more) => lines.extend(more),
                Err(error) => lines.extend(shown(&error, text, statement.start)),
            }
        }
        lines
    }

    pub fn bind(&mut self, text: &str, parameters: Vec<Oid>) -> Result<Bound> {
        let statements = parse_script(text, &|| false).expect("the text is of the grammar");
        self.bound(&statements[0].statement, text, parameters)
    }

    fn bound(&mut self, statement: &Statement, text: &str, parameters: Vec<Oid>) -> Result<Bound> {
        let search_path = ["public".to_owned()];
        let environment = Environment {
            snapshot: self.instance.catalog().snapshot(),
            database: "test",
            role: "postgres",
            search_path: &search_path,
            session: &Nothing,
            values: &[],
            reads_lock: None,
        };
        bind(&environment, &mut self.ctx, text, statement, parameters)
    }

    fn statement(&mut self, statement: &Statement, text: &str) -> Result<Vec<String>> {
        if let Statement::CreateTable(create) = statement {
            self.create(create, text)?;
            return Ok(vec!["CREATE TABLE".to_owned()]);
        }
        let bound = self.bound(statement, text, Vec::new())?;
        query::exec::begin_statement(&mut self.ctx);
        let txn = self.instance.engine().rows().begin(Isolation::RepeatableRead);
        host(&mut self.ctx).txn = Some(txn);
        self.ctx.changes_rows = bound.statement.plan.changes_rows();
        let ran = self.execute(&bound);
        let txn = host(&mut self.ctx).txn.take().expect("the transaction is still there");
        match ran {
            Ok(lines) => {
                txn.commit().expect("the commit is kept");
                Ok(lines)
            }
            Err(error) => {
                txn.rollback();
                Err(error)
            }
        }
    }

    fn execute(&mut self, bound: &Bound) -> Result<Vec<String>> {
        let types: Vec<Type> =
            bound.fields.iter().map(|field| column_type(field.type_oid, field.type_modifier, true)).collect();
        let written = bound.statement.written.clone();
        let failed = |fault| crate::error::fault::render(fault, &written);
        let (changed, verb) = match &bound.statement.plan {
            Plan::Query { node, columns: _ } => {
                let mut lines = vec![names(bound)];
                let mut exec = Exec::open(node, None, &mut self.ctx).map_err(failed)?;
                let mut rows = Vec::new();
                while exec.next(&mut self.ctx, &mut rows).map_err(failed)? {
                    for row in rows.drain(..) {
                        lines.push(self.line(&row, &types)?);
                    }
                }
                return Ok(lines);
            }
            Plan::Insert(plan) => {
                let tally = change::insert(plan, change::Tally::default(), &mut self.ctx).map_err(failed)?;
                (change::inserted(plan, tally, &mut self.ctx).map_err(failed)?, "INSERT 0")
            }
            Plan::Update(plan) => (change::update(plan, &mut self.ctx).map_err(failed)?, "UPDATE"),
            Plan::Delete(plan) => (change::delete(plan, &mut self.ctx).map_err(failed)?, "DELETE"),
            Plan::Merge(_) | Plan::Several(_) | Plan::Evaluate(_) | Plan::Load(_) => {
                return Err(PgError::new("XX000", "no such plan"));
            }
        };
        let mut lines = Vec::new();
        if !bound.fields.is_empty() {
            lines.push(names(bound));
            let mut returned = changed.returned;
            for at in 0..returned.block_count() {
                for row in returned.take_block(at).map_err(failed)? {
                    lines.push(self.line(&row, &types)?);
                }
            }
        }
        lines.push(format!("{verb} {}", changed.affected));
        Ok(lines)
    }

    fn line(&self, row: &[Value], types: &[Type]) -> Result<String> {
        let mut cells = Vec::new();
        for (value, ty) in row.iter().zip(types) {
            let mut out = Vec::new();
            if !value.is_null() {
                io::output(value, ty, &self.ctx.state().io, &mut out)?;
            } else {
                out.extend_from_slice(b"~");
            }
            cells.push(String::from_utf8_lossy(&out).into_owned());
        }
        Ok(cells.join("|"))
    }

    fn create(&mut self, create: &CreateStmt, text: &str) -> Result<()> {
        let (mut columns, mut primary, mut unique, mut checks) = (Vec::new(), None, Vec::new(), Vec::new());
        let cut =
            |expr: &syntax::postgres::tree::Expr| text[expr.span.start as usize..expr.span.end as usize].to_owned();
        for element in &create.elements {
            match element {
                TableElement::Column(column) => {
                    let name = column.ty.as_ref().expect("a column with a type");
                    let (oid, typmod) = self.type_named(name)?;
                    let at = columns.len();
                    let mut made = TableColumn::new(column.name.value.clone(), column_type(oid, typmod, true), at);
                    for constraint in &column.constraints {
                        match &constraint.kind {
                            ConstraintKind::NotNull => made.ty.nullable = false,
                            ConstraintKind::PrimaryKey(_) => primary = Some(vec![at]),
                            ConstraintKind::Unique(_) => unique.push(vec![at]),
                            ConstraintKind::Default(expr) => made.default = Default::Expression(cut(expr)),
                            ConstraintKind::Check(expr) => {
                                checks.push((format!("{}_{}_check", create.relation.name, made.name), cut(expr)));
                            }
                            ConstraintKind::Generated(expr) => {
                                let text = cut(expr);
                                made.generated = Some(Generated { text, stored: true, hidden: false, kept: true });
                            }
                            other => panic!("{other:?}"),
                        }
                    }
                    columns.push(made);
                }
                TableElement::Constraint(constraint) => {
                    let places = |names: &[syntax::postgres::tree::Ident]| {
                        let place = |name: &syntax::postgres::tree::Ident| {
                            columns.iter().position(|column| column.name == name.value).expect("a column")
                        };
                        names.iter().map(place).collect::<Vec<_>>()
                    };
                    match &constraint.kind {
                        ConstraintKind::PrimaryKey(key) => primary = Some(places(&key.columns)),
                        ConstraintKind::Unique(key) => unique.push(places(&key.columns)),
                        ConstraintKind::Check(expr) => {
                            checks.push((format!("{}_check", create.relation.name), cut(expr)));
                        }
                        other => panic!("{other:?}"),
                    }
                }
                TableElement::Like(_) => panic!("LIKE"),
            }
        }
        for at in primary.iter().flatten() {
            columns[*at].ty.nullable = false;
        }
        self.put_table(&create.relation.name, columns, primary, unique, checks);
        Ok(())
    }

    fn type_named(&mut self, name: &syntax::postgres::tree::TypeName) -> Result<(Oid, i32)> {
        let environment = Environment {
            snapshot: self.instance.catalog().snapshot(),
            database: "test",
            role: "postgres",
            search_path: &[],
            session: &Nothing,
            values: &[],
            reads_lock: None,
        };
        crate::bind::Binder::new(&environment, &mut self.ctx, "").type_named(name)
    }

    fn put_table(
        &mut self,
        name: &str,
        columns: Vec<TableColumn>,
        primary: Option<Vec<usize>>,
        unique: Vec<Vec<usize>>,
        checks: Vec<(String, String)>,
    ) {
        let order = KeyOrder::with_null_greatest(false);
        let parts = |columns: Vec<usize>| -> Vec<Part> {
            columns.into_iter().map(|column| Part { column, prefix: None, order }).collect()
        };
        let mut writing = self.instance.catalog().write();
        let id = writing.new_id();
        let map = writing.txn.create_map().expect("a map");
        let mut indexes = Vec::new();
        let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
        for columns in unique {
            indexes.push(Index {
                id: UNNUMBERED,
                name: format!("{name}_{}_key", joined_names(&names, &columns)),
                map: writing.txn.create_map().expect("a map"),
                unique: true,
                parts: parts(columns),
                form: KeyForm::Hashed,
                comment: String::new(),
                invisible: false,
                using: false,
                generated: false,
                is_constraint: true,
                included: Vec::new(),
                predicate: None,
                terms: None,
                nulls_equal: false,
                deferral: query::catalog::foreign_key::Deferral::Never,
                is_primary: false,
                is_unseen: false,
            });
        }
        let check = |(name, text)| Check { id: UNNUMBERED, name, text, enforced: true, is_validated: true };
        let table = Table {
            id,
            maker: MAKER,
            schema: "test".to_owned(),
            name: name.to_owned(),
            version: 1,
            map,
            slots: columns.iter().map(|column| column.ty.storage).collect(),
            columns,
            layout: Layout::default(),
            slot_columns: Vec::new(),
            primary: primary.map(parts),
            primary_id: UNNUMBERED,
            primary_name: format!("{name}_pkey"),
            primary_form: KeyForm::Hashed,
            primary_using: false,
            options: Vec::new(),
            indexes,
            checks: checks.into_iter().map(check).collect(),
            foreign_keys: Vec::new(),
            collation: Collation::Binary,
            comment: String::new(),
            created: 0,
            temporary: false,
            keyspace: None,
            query: None,
            is_unseen: false,
            computes: false,
            live: Arc::new(TableState::new(1)),
            formulas: OnceLock::new(),
        };
        writing.put_table(table).expect("the table is kept");
        writing.commit().expect("the table is kept");
        let _ = &self.folder;
    }
}

fn joined_names(names: &[String], columns: &[usize]) -> String {
    columns.iter().map(|at| names[*at].as_str()).collect::<Vec<_>>().join("_")
}

fn names(bound: &Bound) -> String {
    bound.fields.iter().map(|field| field.name.as_str()).collect::<Vec<_>>().join("|")
}

fn shown(error: &PgError, text: &str, start: usize) -> Vec<String> {
    let place = error.position.map_or_else(String::new, |position| {
        let _ = text;
        format!(" at {}", position as usize - start)
    });
    let mut lines = vec![format!("ERROR {}{place}: {}", error.state, error.message)];
    lines.extend(error.detail.iter().map(|detail| format!("DETAIL: {detail}")));
    lines.extend(error.hint.iter().map(|hint| format!("HINT: {hint}")));
    lines
}

//! A sequence as a relation: the one row that `SELECT * FROM sequence` reads.

use std::sync::Arc;

use datum::Result as CoreResult;
use query::catalog::objects::Object;
use query::catalog::sequence::{Position, Sequence};
use query::exec::host::host;
use query::nodes::context::EvalContext;
use query::nodes::expr::{Call, Expr};
use query::nodes::function::{Function, Run};
use query::nodes::node::Node;
use query::types::Column;
use syntax::postgres::tree::Ident;

use crate::bind::Binder;
use crate::bind::coerce::call_of;
use crate::bind::from::{Operands, schema_shown};
use crate::bind::scope::OutputColumn;
use crate::bind::typing::literal;
use crate::error::{PgError, Result, state};
use crate::functions::args::oid as oid_in;
use crate::session::facts::FactsOf as _;
use crate::system::oids;
use crate::types::oid;
use crate::types::registry::column_type;
use crate::value::Value;

static LAST_VALUE: Function = Function { volatile: true, ..Function::new(&["last_value"], Run::Values(last_value)) };
static IS_CALLED: Function = Function { volatile: true, ..Function::new(&["is_called"], Run::Values(is_called)) };

/// Returns the position of a sequence. The reply waits until it is on disk (QU-38).
fn position(values: &[Value], ctx: &mut EvalContext) -> CoreResult<Position> {
    let oid = oid_in(values, 0)?;
    let definitions = ctx.facts().definitions.clone();
    let object = oids::object_of(oid).and_then(|id| definitions.object(id));
    let Some(Object::Sequence(sequence)) = object else {
        return Err(PgError::new(state::UNDEFINED_TABLE, format!("could not open relation with OID {oid}")).into());
    };
    let position = sequence.position();
    host(ctx).seen = host(ctx).seen.max(position.durability_lsn);
    Ok(position)
}

fn last_value(_: &Call, values: &[Value], ctx: &mut EvalContext) -> CoreResult<Value> {
    position(values, ctx).map(|position| Value::Int(position.last_value))
}

fn is_called(_: &Call, values: &[Value], ctx: &mut EvalContext) -> CoreResult<Value> {
    position(values, ctx).map(|position| Value::from(position.is_called))
}

impl Binder<'_> {
    /// Adds a sequence as a table of one row. No value is logged ahead of those that are reserved, so `log_cnt` is 0.
    pub fn sequence_row(&mut self, sequence: &Arc<Sequence>, shown: &str, names: &[Ident]) -> Result<Operands> {
        // Its row is of this moment.
        self.volatile = true;
        let of = || vec![literal(Value::UInt(oids::of_object(sequence.id).into()), oid::OID)];
        let row: Vec<Expr> = vec![
            call_of(&LAST_VALUE, of(), oid::INT8, -1),
            literal(Value::Int(0), oid::INT8),
            call_of(&IS_CALLED, of(), oid::BOOL, -1),
        ];
        let columns = [("last_value", oid::INT8), ("log_cnt", oid::INT8), ("is_called", oid::BOOL)];
        let columns = columns.map(|(name, ty)| OutputColumn {
            column: Column::computed(name, column_type(ty, -1, false)),
            origin: None,
            at: 0,
        });
        let node = Arc::new(Node::Rows { rows: vec![row] });
        let mut operands = self.derived(shown, columns.into(), names, node)?;
        operands.names[0].table_name = Some(sequence.name.clone());
        operands.names[0].schema = schema_shown(&sequence.schema);
        Ok(operands)
    }
}

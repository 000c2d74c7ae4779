//! `pg_sequence`, `pg_sequences`, and the rows of sequences.

use std::sync::Arc;

use datum::Result;
use query::catalog::objects::Object;
use query::catalog::sequence::Sequence;
use query::nodes::context::EvalContext;
use query::nodes::table_function::Give;

use crate::rights::object::Object as Rights;
use crate::rights::privilege::{SELECT, USAGE};
use crate::system::cells::{null, number, oid, text, truth};
use crate::system::oids;
use crate::system::view::Shown;
use crate::system::wanted::Wanted;
use crate::types::oid::{INT2, INT4, INT8, Oid};

fn type_of(bytes: u8) -> Oid {
    match bytes {
        2 => INT2,
        4 => INT4,
        _ => INT8,
    }
}

pub fn pg_sequence(wanted: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    let sequences: Vec<Arc<Sequence>> = match wanted.oid("seqrelid") {
        None => shown.schemas().flat_map(|(_, schema)| schema.sequences.values().cloned()).collect(),
        Some(oid) => match shown.object(oid) {
            Some(Object::Sequence(sequence)) => vec![sequence],
            _ => Vec::new(),
        },
    };
    for sequence in sequences {
        let parameters = sequence.parameters;
        let row = vec![
            oid(oids::of_object(sequence.id)),
            oid(type_of(parameters.bytes)),
            number(parameters.start),
            number(parameters.increment),
            number(parameters.max),
            number(parameters.min),
            number(parameters.cache as i64),
            truth(parameters.cycle),
        ];
        give(row, ctx)?;
    }
    Ok(())
}

pub fn pg_sequences(_: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    for (name, schema) in shown.schemas() {
        for sequence in schema.sequences.values() {
            let object = Rights::sequence(sequence);
            let (position, parameters) = (sequence.position(), sequence.parameters);
            // The reply waits until the position is on disk (QU-38).
            let host = query::exec::host::host(ctx);
            host.seen = host.seen.max(position.durability_lsn);
            let row = vec![
                text(name),
                text(&sequence.name),
                text(shown.owner_name(&object)),
                oid(type_of(parameters.bytes)),
                number(parameters.start),
                number(parameters.min),
                number(parameters.max),
                number(parameters.increment),
                truth(parameters.cycle),
                number(parameters.cache as i64),
                if position.is_called && shown.sees(&object, SELECT | USAGE) {
                    number(position.last_value)
                } else {
                    null()
                },
            ];
            give(row, ctx)?;
        }
    }
    Ok(())
}

//! A schema: the names of its tables, views, sequences and types.

use std::collections::BTreeMap;
use std::sync::Arc;

use datum::{Fault, Result};

use crate::catalog::codec::{In, Out};
use crate::catalog::object_id::{Maker, ObjectId, UNNUMBERED};
use crate::catalog::sequence::Sequence;
use crate::catalog::table::Table;
use crate::catalog::temporary_maps;
use crate::catalog::user_type::UserType;
use crate::catalog::view::View;
use crate::types::Collation;

#[derive(Clone, Debug)]
pub struct Schema {
    pub id: ObjectId,
    pub maker: Maker,
    /// `schema_name` splits it into database and schema.
    pub name: String,
    pub collation: Collation,
    pub tables: BTreeMap<String, Arc<Table>>,
    pub views: BTreeMap<String, Arc<View>>,
    pub sequences: BTreeMap<String, Arc<Sequence>>,
    pub types: BTreeMap<String, Arc<UserType>>,
}

impl Schema {
    /// Returns whether it holds the temporary objects of a session.
    pub fn is_temporary(&self) -> bool {
        self.id >= temporary_maps::FIRST
    }

    /// Makes the schema of a session's temporary objects.
    pub fn temporary(name: &str, maker: Maker, id: ObjectId) -> Schema {
        Schema { id, maker, ..Schema::new(name) }
    }

    pub(super) fn new(name: &str) -> Schema {
        Schema {
            id: UNNUMBERED,
            maker: Maker::default(),
            name: name.to_owned(),
            collation: Collation::Binary,
            tables: BTreeMap::new(),
            views: BTreeMap::new(),
            sequences: BTreeMap::new(),
            types: BTreeMap::new(),
        }
    }
}

pub fn encode_schema(schema: &Schema) -> Vec<u8> {
    let mut out = Out::default();
    out.collation(schema.collation);
    out.number(schema.id);
    out.byte(schema.maker.0);
    out.0
}

/// Reads a schema without its objects. Earlier records end behind the collation; their schema is `UNNUMBERED`.
pub fn decode_schema(name: &[u8], value: &[u8]) -> Result<Schema> {
    let name = std::str::from_utf8(name).map_err(|_| Fault::corrupt("a schema's name"))?;
    let mut from = In(value);
    let mut schema = Schema { collation: from.collation()?, ..Schema::new(name) };
    if !from.0.is_empty() {
        (schema.id, schema.maker) = (from.object_id()?, from.maker()?);
    }
    Ok(schema)
}

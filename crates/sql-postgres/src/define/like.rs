//! CREATE TABLE ... (LIKE table INCLUDING ...): what a new table takes over from another one.

use std::sync::Arc;

use query::catalog::Snapshot;
use query::catalog::foreign_key::Deferral;
use query::catalog::object_id::UNNUMBERED;
use query::catalog::table::{Check, Identity, Index, Part, Table, TableColumn};
use query::key_form::KeyForm;
use syntax::postgres::tree::{LikeOption, LikeOptionKind, TableLikeClause};

use crate::define::column::WantedSequence;
use crate::define::create_table::{
    Extras, check_column_name, check_constraint_name, refuse_second_key, set_primary_key,
};
use crate::define::index::{UNMADE, is_shown, name_of_column};
use crate::define::object_name::index_name;
use crate::error::{PgError, Result, state};
use crate::rights::object::Object;
use crate::rights::privilege::SELECT;
use crate::session::Session;

/// The table whose indexes a new one takes over, once all its columns are known.
pub(super) struct LikedIndexes {
    source: Arc<Table>,
    /// The place in the new table of each column of the source that has a name.
    places: Vec<Option<usize>>,
    comments: bool,
}

/// The parts that INCLUDING and EXCLUDING name, of which the last word counts. How values are stored and compressed, and statistics of several columns, a table has not here.
#[derive(Default)]
struct Included {
    comments: bool,
    constraints: bool,
    defaults: bool,
    generated: bool,
    identity: bool,
    indexes: bool,
}

impl Included {
    fn of(options: &[LikeOption]) -> Included {
        let mut included = Included::default();
        for LikeOption { including, kind } in options {
            let fields: Vec<&mut bool> = match kind {
                LikeOptionKind::Comments => vec![&mut included.comments],
                LikeOptionKind::Constraints => vec![&mut included.constraints],
                LikeOptionKind::Defaults => vec![&mut included.defaults],
                LikeOptionKind::Generated => vec![&mut included.generated],
                LikeOptionKind::Identity => vec![&mut included.identity],
                LikeOptionKind::Indexes => vec![&mut included.indexes],
                LikeOptionKind::Compression | LikeOptionKind::Statistics | LikeOptionKind::Storage => vec![],
                LikeOptionKind::All => {
                    let Included { comments, constraints, defaults, generated, identity, indexes } = &mut included;
                    vec![comments, constraints, defaults, generated, identity, indexes]
                }
            };
            fields.into_iter().for_each(|field| *field = *including);
        }
        included
    }
}

impl Session {
    /// Adds the columns of LIKE, their identities, and the checks.
    pub(super) fn copy_columns(
        &mut self,
        table: &mut Table,
        like: &TableLikeClause,
        extras: &mut Extras<'_>,
    ) -> Result<()> {
        let TableLikeClause { relation, options } = like;
        let source = self.stored_named(relation)?;
        self.check_privileges(&Object::table(&source), SELECT)?;
        let included = Included::of(options);
        let mut places = vec![None; source.columns.len()];
        for (from, column) in source.columns.iter().enumerate().filter(|(_, column)| !column.is_hidden()) {
            check_column_name(table, &column.name)?;
            let at = table.columns.len();
            let mut copy = TableColumn::new(column.name.clone(), column.ty.clone(), at);
            if included.defaults {
                copy.default = column.default.clone();
            }
            if included.generated {
                copy.generated = column.generated.clone();
            }
            if included.comments {
                copy.comment.clone_from(&column.comment);
            }
            if included.identity && column.identity != Identity::None {
                let schema = self.catalog.schema(&source.schema)?;
                let sequence = schema.sequences.values().find(|known| Some(&known.id) == column.sequences.first());
                let parameters = sequence.ok_or_else(|| missing_sequence(&column.name))?.parameters;
                copy.identity = column.identity;
                extras.sequences.push(WantedSequence { column: at, parameters, identity: true, name: None });
            }
            table.columns.push(copy);
            places[from] = Some(at);
        }
        if included.constraints {
            for check in &source.checks {
                check_constraint_name(table, &check.name)?;
                table.checks.push(Check { id: UNNUMBERED, is_validated: true, ..check.clone() });
            }
        }
        if included.indexes {
            extras.indexes.push(LikedIndexes { source, places, comments: included.comments });
        }
        Ok(())
    }

    /// Adds the indexes of a source of LIKE, and the constraints that they are, under names that the new table gives.
    pub(super) fn copy_indexes(&self, table: &mut Table, liked: &LikedIndexes, snapshot: &Snapshot) -> Result<()> {
        let LikedIndexes { source, places, comments } = liked;
        let schema = snapshot.schema(&table.schema)?;
        let moved = |table: &mut Table, parts: &[Part]| -> Vec<Part> {
            let place = |part: &Part| Part { column: place_of(table, source, places, part.column), ..part.clone() };
            parts.iter().map(place).collect()
        };
        if let Some(parts) = &source.primary {
            refuse_second_key(table)?;
            let (parts, name) = (moved(table, parts), index_name(schema, table, &[], "pkey"));
            set_primary_key(table, name, parts, Deferral::Never);
        }
        for index in source.indexes.iter().filter(|index| is_shown(index)) {
            if index.is_primary {
                refuse_second_key(table)?;
            }
            let parts = moved(table, &index.parts);
            let included: Vec<usize> = index.included.iter().map(|at| place_of(table, source, places, *at)).collect();
            let predicate = index.predicate.map(|at| place_of(table, source, places, at));
            let columns = index.parts.iter().map(|part| part.column).chain(index.included.iter().copied());
            let named: Vec<String> = columns.map(|at| name_of_column(source, at)).collect();
            let named: Vec<&str> = named.iter().map(String::as_str).collect();
            let label = match (index.is_primary, index.is_constraint) {
                (true, _) => "pkey",
                (false, true) => "key",
                (false, false) => "idx",
            };
            let copy = Index {
                id: UNNUMBERED,
                name: index_name(schema, table, &named, label),
                map: UNMADE,
                form: KeyForm::Hashed,
                comment: if *comments { index.comment.clone() } else { String::new() },
                parts,
                included,
                predicate,
                ..index.clone()
            };
            table.indexes.push(copy);
        }
        Ok(())
    }
}

/// Returns where a column of the source is in the new table. The hidden one of an expression is made unless it is there.
fn place_of(table: &mut Table, source: &Table, places: &[Option<usize>], column: usize) -> usize {
    if let Some(at) = places[column] {
        return at;
    }
    let TableColumn { ty, generated, .. } = &source.columns[column];
    let is_it = |known: &TableColumn| known.is_hidden() && known.ty == *ty && known.generated == *generated;
    table.columns.iter().position(is_it).unwrap_or_else(|| {
        let mut copy = TableColumn::new(String::new(), ty.clone(), table.slots.len());
        copy.generated = generated.clone();
        table.slots.push(ty.storage);
        table.columns.push(copy);
        table.columns.len() - 1
    })
}

fn missing_sequence(column: &str) -> PgError {
    PgError::new(state::INTERNAL_ERROR, format!("the identity column \"{column}\" has no sequence"))
}

//! CREATE and ALTER SEQUENCE, and the options of identities.

use query::catalog::Snapshot;
use query::catalog::sequence::{Parameters, Sequence};
use query::catalog::table::TableColumn;
use query::catalog::table_lock::TableMode;
use query::session::definitions::RelatedTables;
use syntax::postgres::tree::{AlterSeqStmt, CreateSeqStmt, DefArg, DefElem};

use crate::define::names::{Relation, not_a};
use crate::define::owner::NewObject;
use crate::error::{PgError, Result, state};
use crate::rights::object::Object;
use crate::session::Session;

/// The owner that OWNED BY names.
enum Owner {
    Unsaid,
    None,
    /// The names of table and column, perhaps with a schema.
    Column(Vec<String>),
}

fn invalid(message: impl Into<String>) -> PgError {
    PgError::new(state::INVALID_PARAMETER_VALUE, message)
}

/// Returns the bounds of an integer of so many bytes.
fn bounds(bytes: u8) -> (i64, i64) {
    match bytes {
        2 => (i16::MIN.into(), i16::MAX.into()),
        4 => (i32::MIN.into(), i32::MAX.into()),
        _ => (i64::MIN, i64::MAX),
    }
}

fn type_name(bytes: u8) -> &'static str {
    match bytes {
        2 => "smallint",
        4 => "integer",
        _ => "bigint",
    }
}

/// Returns the parameters of a sequence without options.
pub(super) fn defaults(bytes: u8) -> Parameters {
    Parameters { bytes, start: 1, increment: 1, min: 1, max: bounds(bytes).1, cache: 1, cycle: false }
}

fn number_of(option: &DefElem) -> Result<Option<i64>> {
    match &option.value {
        None => Ok(None),
        Some(DefArg::Integer(number)) => Ok(Some((*number).into())),
        Some(DefArg::Float(text)) => match text.parse::<i64>() {
            Ok(number) => Ok(Some(number)),
            Err(_) => {
                let message = format!("value \"{text}\" is out of range for type bigint");
                Err(PgError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, message))
            }
        },
        Some(_) => Err(PgError::new(state::SYNTAX_ERROR, format!("{} requires a numeric value", option.name))),
    }
}

/// The options of CREATE and ALTER SEQUENCE.
struct Options {
    parameters: Parameters,
    restart: Option<i64>,
    owner: Owner,
    name: Option<String>,
}

/// Reads options over parameters; `old` are those of an existing sequence.
fn read(options: &[DefElem], bytes: u8, old: Option<Parameters>) -> Result<Options> {
    let mut bytes = old.map_or(bytes, |old| old.bytes);
    let (mut increment, mut min, mut max) = (None, None, None);
    let (mut start, mut restart, mut cache, mut cycle) = (None, None, None, None);
    let (mut owner, mut name) = (Owner::Unsaid, None);
    let is_created = old.is_none();
    let mut is_typed = false;
    for (nth, option) in options.iter().enumerate() {
        if options[..nth].iter().any(|other| other.name == option.name) {
            return Err(PgError::new(state::SYNTAX_ERROR, "conflicting or redundant options"));
        }
        match &*option.name {
            "as" => {
                let Some(DefArg::Type(ty)) = &option.value else { continue };
                bytes = match ty.name.last() {
                    "int2" | "smallint" => 2,
                    "int4" | "integer" | "int" => 4,
                    "int8" | "bigint" => 8,
                    _ => return Err(invalid("sequence type must be smallint, integer, or bigint")),
                };
                is_typed = true;
            }
            "increment" => increment = number_of(option)?,
            "minvalue" => min = Some(number_of(option)?),
            "maxvalue" => max = Some(number_of(option)?),
            "start" => start = number_of(option)?,
            "restart" => restart = Some(number_of(option)?),
            "cache" => cache = number_of(option)?,
            "cycle" => cycle = Some(crate::session::is_on(option)),
            "owned_by" => {
                owner = match &option.value {
                    Some(DefArg::Name(name)) if name.parts == ["none"] => Owner::None,
                    Some(DefArg::Name(name)) => Owner::Column(name.parts.clone()),
                    _ => Owner::None,
                };
            }
            "sequence_name" => {
                name = match &option.value {
                    Some(DefArg::Name(known)) => Some(known.last().to_owned()),
                    _ => None,
                };
            }
            other => return Err(PgError::new(state::SYNTAX_ERROR, format!("option \"{other}\" not recognized"))),
        }
    }
    let increment = increment.or(old.map(|old| old.increment)).unwrap_or(1);
    if increment == 0 {
        return Err(invalid("INCREMENT must not be zero"));
    }
    let (least, most) = bounds(bytes);
    // A bound that was the old type's follows the new one.
    let (old_least, old_most) = old.map_or((0, 0), |old| bounds(old.bytes));
    let kept_max = old.map(|old| old.max).filter(|old_max| !(is_typed && *old_max == old_most));
    let kept_min = old.map(|old| old.min).filter(|old_min| !(is_typed && *old_min == old_least));
    let max = match max {
        Some(Some(max)) => max,
        Some(None) => {
            if increment > 0 {
                most
            } else {
                -1
            }
        }
        None => kept_max.unwrap_or(if increment > 0 { most } else { -1 }),
    };
    let min = match min {
        Some(Some(min)) => min,
        Some(None) => {
            if increment > 0 {
                1
            } else {
                least
            }
        }
        None => kept_min.unwrap_or(if increment > 0 { 1 } else { least }),
    };
    for (word, value) in [("MAXVALUE", max), ("MINVALUE", min)] {
        if !(least..=most).contains(&value) {
            let ty = type_name(bytes);
            return Err(invalid(format!("{word} ({value}) is out of range for sequence data type {ty}")));
        }
    }
    if min >= max {
        return Err(invalid(format!("MINVALUE ({min}) must be less than MAXVALUE ({max})")));
    }
    let start = start.or(old.map(|old| old.start)).unwrap_or(if increment > 0 { min } else { max });
    let check = |word: &str, value: i64| {
        if value < min {
            return Err(invalid(format!("{word} value ({value}) cannot be less than MINVALUE ({min})")));
        }
        if value > max {
            return Err(invalid(format!("{word} value ({value}) cannot be greater than MAXVALUE ({max})")));
        }
        Ok(())
    };
    check("START", start)?;
    let restart = if is_created { None } else { restart.map(|restart| restart.unwrap_or(start)) };
    restart.map_or(Ok(()), |restart| check("RESTART", restart))?;
    let cache = cache.or(old.map(|old| old.cache as i64)).unwrap_or(1);
    if cache <= 0 {
        return Err(invalid(format!("CACHE ({cache}) must be greater than zero")));
    }
    let cycle = cycle.or(old.map(|old| old.cycle)).unwrap_or(false);
    let parameters = Parameters { bytes, start, increment, min, max, cache: cache as u64, cycle };
    Ok(Options { parameters, restart, owner, name })
}

/// Returns parameters and name of an identity's sequence.
pub(super) fn of_identity(options: &[DefElem], bytes: u8) -> Result<(Parameters, Option<String>)> {
    let Options { parameters, name, .. } = read(options, bytes, None)?;
    Ok((parameters, name))
}

impl Session {
    pub(super) fn create_sequence(&mut self, create: &CreateSeqStmt) -> Result<()> {
        let CreateSeqStmt { sequence: name, persistence, if_not_exists, options } = create;
        let Options { parameters, owner, .. } = read(options, 8, None)?;
        let (schema, temporary) = self.creation_place(name, *persistence)?;
        self.check_creation(&schema, temporary)?;
        if self.refuse_taken(&schema, &name.name, *if_not_exists)? {
            return Ok(());
        }
        let owner = self.owner(&owner)?;
        let db = self.database().clone();
        let needs = |snapshot: &Snapshot| {
            let named = owner.as_ref().map(|(table, _)| snapshot.table(&table.schema, &table.name).cloned());
            Ok(RelatedTables { changed: named.transpose()?.into_iter().collect(), tied: Vec::new() })
        };
        if let Some((table, _)) = &owner {
            check_owner_schema(table, &schema)?;
        }
        let mut writing = match temporary {
            true => self.write_temporary(&db)?,
            false => self.lock_and_write(&db, TableMode::AccessExclusive, needs)?,
        };
        let id = writing.new_id();
        let mut sequence = Sequence::new(id, schema.clone(), name.name.clone(), parameters, crate::MAKER);
        sequence.temporary = temporary;
        if let Some((table, column)) = owner {
            sequence.owned_by = Some(table.id);
            let mut copy = table.copy();
            copy.columns[column].sequences.push(id);
            writing.put_table(copy)?;
        }
        writing.create_sequence(sequence)?;
        if !temporary {
            self.own(&mut writing, NewObject::sequence(id, &schema))?;
        }
        self.finish(writing)
    }

    /// Returns the table and the column that OWNED BY names.
    fn owner(&mut self, owner: &Owner) -> Result<Option<(std::sync::Arc<query::catalog::table::Table>, usize)>> {
        let Owner::Column(parts) = owner else { return Ok(None) };
        let [qualifier @ .., table, column] = &parts[..] else {
            let error = PgError::new(state::SYNTAX_ERROR, "invalid OWNED BY option");
            return Err(error.hint("Specify OWNED BY table.column or OWNED BY NONE."));
        };
        let name = syntax::postgres::tree::RangeVar {
            schema: qualifier.last().cloned(),
            name: table.clone(),
            ..Default::default()
        };
        let table = self.table_named(&name)?;
        self.check_owns(&Object::table(&table))?;
        let is_named = |known: &TableColumn| known.name == *column;
        let at = table.columns.iter().position(is_named).ok_or_else(|| {
            let message = format!("column \"{column}\" of relation \"{}\" does not exist", table.name);
            PgError::new(state::UNDEFINED_COLUMN, message)
        })?;
        Ok(Some((table, at)))
    }

    pub(super) fn alter_sequence(&mut self, alter: &AlterSeqStmt) -> Result<()> {
        let AlterSeqStmt { sequence: name, missing_ok, options } = alter;
        let sequence = match self.relation(name)? {
            Some(Relation::Sequence(sequence)) => sequence,
            Some(_) => return Err(not_a(&name.name, "sequence")),
            None if *missing_ok => {
                let message = format!("relation \"{}\" does not exist, skipping", name.name);
                self.skip_notice(super::SUCCESSFUL, message);
                return Ok(());
            }
            None => return Err(self.missing_relation(name, None)),
        };
        self.check_owns(&Object::sequence(&sequence))?;
        let Options { parameters, restart, owner, .. } = read(options, 8, Some(sequence.parameters))?;
        let is_moved = !matches!(owner, Owner::Unsaid);
        let wanted = self.owner(&owner)?;
        if is_moved {
            self.check_move(&sequence, wanted.as_ref().map(|(table, _)| &**table))?;
        }
        let db = self.database().clone();
        let mut writing = self.write_of(&db, sequence.temporary)?;
        let mut altered = Sequence::clone(&sequence);
        altered.parameters = parameters;
        if !is_moved {
            writing.alter_sequence(altered, restart)?;
            return self.finish(writing);
        }
        // The sequence first: a table that gives one away would drop it.
        altered.owned_by = wanted.as_ref().map(|(table, _)| table.id);
        writing.alter_sequence(altered, restart)?;
        let before = self.catalog_of_session().owner(&sequence).map(|(table, at)| (table.clone(), at));
        if let Some((table, at)) = before {
            let mut copy = table.copy();
            copy.columns[at].sequences.retain(|id| *id != sequence.id);
            writing.put_table(copy)?;
        }
        if let Some((table, at)) = wanted {
            let current = writing.snapshot.table(&table.schema, &table.name)?.clone();
            let mut copy = current.copy();
            copy.columns[at].sequences.push(sequence.id);
            writing.put_table(copy)?;
        }
        self.finish(writing)
    }

    /// Refuses an owner that a sequence cannot have, and another one of an identity's sequence.
    fn check_move(&mut self, sequence: &Sequence, table: Option<&query::catalog::table::Table>) -> Result<()> {
        if let Some((owner, at)) = self.catalog_of_session().owner(sequence)
            && owner.columns[at].identity != query::catalog::table::Identity::None
        {
            let error = PgError::new(state::FEATURE_NOT_SUPPORTED, "cannot change ownership of identity sequence");
            return Err(error.detail(format!("Sequence \"{}\" is linked to table \"{}\".", sequence.name, owner.name)));
        }
        let facts = self.rights();
        let is_of_other = |table: &query::catalog::table::Table| {
            facts.owner(&Object::table(table)) != facts.owner(&Object::sequence(sequence))
        };
        match table {
            Some(table) if is_of_other(table) => Err(PgError::new(
                state::OBJECT_NOT_IN_PREREQUISITE_STATE,
                "sequence must have same owner as table it is linked to",
            )),
            Some(table) => check_owner_schema(table, &sequence.schema),
            None => Ok(()),
        }
    }
}

/// Fails for a sequence whose schema is not that of the table which is to own it.
fn check_owner_schema(table: &query::catalog::table::Table, schema: &str) -> Result<()> {
    match table.schema == schema {
        true => Ok(()),
        false => Err(PgError::new(
            state::OBJECT_NOT_IN_PREREQUISITE_STATE,
            "sequence must be in same schema as table it is linked to",
        )),
    }
}

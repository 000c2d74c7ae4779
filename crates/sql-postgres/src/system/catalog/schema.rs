//! `pg_namespace`, `pg_database`.

use datum::Result;
use query::catalog::schema_name::SchemaName;
use query::nodes::context::EvalContext;
use query::nodes::table_function::Give;

use crate::rights::object::Object;
use crate::system::cells::{letter, null, number, oid, text, truth};
use crate::system::rights;
use crate::system::view::{Shown, schema_oid};
use crate::system::wanted::Wanted;
use crate::system::{SCHEMAS, oids};

/// The rights that the system's schemas have from the beginning, which pg_dump leaves out.
pub fn pg_init_privs(_: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    const PG_NAMESPACE: u32 = 2615;
    SCHEMAS.into_iter().try_for_each(|(_, schema)| {
        give(vec![oid(schema), oid(PG_NAMESPACE), number(0), letter('i'), rights::of_system_schema()], ctx)
    })
}

pub fn pg_namespace(_: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    for (name, number) in SCHEMAS {
        let rights = rights::of_system_schema();
        give(vec![oid(number), text(name), oid(oids::POSTGRES), rights], ctx)?;
    }
    for (name, schema) in shown.schemas() {
        let number = schema_oid(schema);
        let object = Object::schema(schema);
        give(vec![oid(number), text(name), oid(shown.owner(&object)), shown.rights(&object, 0)], ctx)?;
    }
    Ok(())
}

/// Returns the databases with their OIDs: a database is there if its schema `public` is.
pub fn databases(shown: &Shown) -> Vec<(u32, String)> {
    let schemas = shown.snapshot.schemas.values();
    let databases = schemas.filter_map(|schema| {
        let name = SchemaName::of_stored(&schema.name)?;
        (name.schema == "public").then(|| (oids::of_object(schema.id), name.database.to_owned()))
    });
    databases.collect()
}

pub fn pg_database(_: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    for (number_of, name) in databases(&shown) {
        let Some(object) = shown.snapshot.schemas.get(&name).map(|schema| Object::database(schema)) else { continue };
        let row = vec![
            oid(number_of),
            text(name),
            oid(shown.owner(&object)),
            number(6),
            letter('c'),
            truth(false),
            truth(true),
            number(-1),
            oid(0),
            oid(0),
            oid(oids::PG_DEFAULT),
            text("C"),
            text("C"),
            null(),
            null(),
            null(),
            shown.rights(&object, 0),
        ];
        give(row, ctx)?;
    }
    Ok(())
}

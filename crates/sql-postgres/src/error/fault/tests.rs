use super::*;

fn boxed(names: &[&str]) -> Box<[Box<str>]> {
    names.iter().map(|name| Box::from(*name)).collect()
}

fn foreign_key(values: &[&str]) -> Box<ForeignKeyParts> {
    Box::new(ForeignKeyParts {
        constraint: "c_a_fkey".into(),
        schema: "postgres".into(),
        table: "c".into(),
        columns: boxed(&["a", "b"]),
        parent_schema: "postgres".into(),
        parent_table: "p".into(),
        parent_columns: boxed(&["x", "y"]),
        on_delete: None,
        on_update: None,
        values: boxed(values),
    })
}

#[test]
fn broken_foreign_keys_have_the_texts_of_the_real_server() {
    let missing = PgError::from(Fault::ParentMissing(foreign_key(&["1", "null"])));
    assert_eq!(missing.state, "23503");
    assert_eq!(missing.message, "insert or update on table \"c\" violates foreign key constraint \"c_a_fkey\"");
    assert_eq!(missing.detail.as_deref(), Some("Key (a, b)=(1, null) is not present in table \"p\"."));
    let referenced = PgError::from(Fault::ParentReferenced(foreign_key(&["1", "2"])));
    assert_eq!(
        referenced.message,
        "update or delete on table \"p\" violates foreign key constraint \"c_a_fkey\" on table \"c\""
    );
    assert_eq!(referenced.detail.as_deref(), Some("Key (x, y)=(1, 2) is still referenced from table \"c\"."));
    assert_eq!(PgError::from(Fault::ParentMissing(foreign_key(&[]))).detail, None);
    let object = referenced.object.unwrap();
    assert_eq!((object.schema.as_deref(), object.table.as_deref()), (Some("public"), Some("c")));
}

#[test]
fn an_error_of_the_dialect_passes_unchanged() {
    let error = PgError::new(state::DIVISION_BY_ZERO, "division by zero").detail("a").hint("b");
    assert_eq!(PgError::from(Fault::from(error.clone())), error);
}

#[test]
fn sequences_tell_their_bounds() {
    let limit = SequenceLimit { sequence: "s".into(), is_max: true, limit: 10 };
    let error = PgError::from(Fault::SequenceLimit(Box::new(limit)));
    assert_eq!((error.state, &*error.message), ("2200H", "nextval: reached maximum value of sequence \"s\" (10)"));
    let position = SequencePosition { sequence: "s".into(), value: 0, min: 1, max: 10 };
    let error = PgError::from(Fault::SequencePosition(Box::new(position)));
    assert_eq!(
        (error.state, &*error.message),
        ("22003", "setval: value 0 is out of bounds for sequence \"s\" (1..10)")
    );
}

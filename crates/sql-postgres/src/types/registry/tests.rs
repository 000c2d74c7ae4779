use super::*;

#[test]
fn each_type_is_found_by_oid_and_by_name() {
    for row in TYPES {
        assert_eq!(by_oid(row.oid).unwrap().name, row.name);
        assert_eq!(by_name(row.name).unwrap().oid, row.oid);
    }
    assert_eq!((BY_OID.len(), BY_NAME.len()), (types().count(), types().count()));
}

#[test]
fn format_type_names_types_as_the_real_server() {
    let cases = [
        (oid::INT4, None, "integer"),
        (oid::VARCHAR, Some(7), "character varying(3)"),
        (oid::VARCHAR, Some(-1), "character varying"),
        (oid::BPCHAR, None, "character"),
        (oid::BPCHAR, Some(-1), "bpchar"),
        (oid::BPCHAR, Some(5), "character(1)"),
        (oid::CHAR, None, "\"char\""),
        (oid::ANY, None, "\"any\""),
        (oid::NUMERIC, Some(655_366), "numeric(10,2)"),
        (oid::NUMERIC, Some(numeric_typmod(3, -2)), "numeric(3,-2)"),
        (oid::TIME, Some(3), "time(3) without time zone"),
        (oid::TIMESTAMPTZ, Some(0), "timestamp(0) with time zone"),
        (oid::TIMETZ, None, "time with time zone"),
        (1007, None, "integer[]"),
        (1015, Some(7), "character varying(3)[]"),
        (0, None, "-"),
        (99_999, None, "???"),
    ];
    for (oid, typmod, name) in cases {
        assert_eq!(format_type(oid, typmod), name);
    }
}

#[test]
fn modifiers_of_an_interval_name_its_fields() {
    use interval_field::{ALL, DAY, HOUR, MINUTE, MONTH, SECOND, YEAR};
    let text = |modifiers: &[i32]| interval_out(interval(modifiers).unwrap().typmod);
    assert_eq!(interval(&[ALL]).unwrap().typmod, -1);
    assert_eq!(text(&[ALL, 3]), "(3)");
    assert_eq!(text(&[YEAR]), " year");
    assert_eq!(text(&[YEAR | MONTH]), " year to month");
    assert_eq!(text(&[DAY | HOUR | MINUTE | SECOND, 2]), " day to second(2)");
    assert_eq!(text(&[SECOND, 6]), " second(6)");
}

#[test]
fn a_modifier_beyond_its_range_is_refused_or_reduced() {
    let of = |name: &str, modifiers: &[i32]| typmod_in(&by_name(name).unwrap(), modifiers);
    let message = |name: &str, modifiers: &[i32]| of(name, modifiers).unwrap_err().message;
    assert_eq!(message("int4", &[3]), "type modifier is not allowed for type \"int4\"");
    assert_eq!(message("varchar", &[0]), "length for type varchar must be at least 1");
    assert_eq!(message("bpchar", &[0]), "length for type char must be at least 1");
    assert_eq!(message("varchar", &[20_000_000]), "length for type varchar cannot exceed 10485760");
    assert_eq!(message("numeric", &[1001]), "NUMERIC precision 1001 must be between 1 and 1000");
    assert_eq!(message("numeric", &[3, 2000]), "NUMERIC scale 2000 must be between -1000 and 1000");
    assert_eq!(message("numeric", &[3, 2, 1]), "invalid NUMERIC type modifier");
    let reduced = of("timestamptz", &[7]).unwrap();
    assert_eq!(reduced.typmod, 6);
    assert_eq!(reduced.warning.as_deref(), Some("TIMESTAMP(7) WITH TIME ZONE precision reduced to maximum allowed, 6"));
    assert_eq!(of("varchar", &[3]).unwrap().typmod, 7);
    assert_eq!(of("numeric", &[10, 2]).unwrap().typmod, 655_366);
}

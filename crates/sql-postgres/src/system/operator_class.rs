//! The default btree operator classes of types, from `pg_opclass` and `pg_amop`, and those of GIN that are served.

use std::collections::HashMap;
use std::sync::LazyLock;

use query::nodes::term_test::TermForm;

use crate::types::oid::{self, Oid};
use crate::types::registry::{element_of, is_array};
use crate::types::{range, user};

struct Class {
    oid: Oid,
    family: Oid,
}

/// The default classes by the type of their keys.
static CLASSES: LazyLock<HashMap<Oid, Class>> = LazyLock::new(|| {
    let lines = include_str!("extract/pg_opclass.tsv").lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let number = |field: &str| field.parse().unwrap_or(0);
    let btree = lines.filter(|fields| number(fields[1]) == crate::system::oids::BTREE && fields[7] == "t");
    btree.map(|fields| (number(fields[6]), Class { oid: number(fields[0]), family: number(fields[5]) })).collect()
});

/// The equality operators of btree families, by family and operand type.
static EQUALITIES: LazyLock<HashMap<(Oid, Oid), Oid>> = LazyLock::new(|| {
    let lines = include_str!("extract/pg_amop.tsv").lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let number = |field: &str| field.parse::<Oid>().unwrap_or(0);
    let equal = lines
        .filter(|fields| fields[4] == "3" && fields[2] == fields[3] && number(fields[7]) == crate::system::oids::BTREE);
    equal.map(|fields| ((number(fields[1]), number(fields[2])), number(fields[6]))).collect()
});

/// Returns the type by whose operators values are compared: varchar has those of text, cidr those of inet, and all arrays have the same.
fn compared_as(ty: Oid) -> Oid {
    match user::form(ty) {
        oid::VARCHAR => oid::TEXT,
        oid::CIDR => oid::INET,
        oid::INT2VECTOR | oid::OIDVECTOR => ty,
        ty if is_array(ty) => oid::ANYARRAY,
        ty if user::is_enum(ty) => oid::ANYENUM,
        ty if user::is_composite(ty) => oid::RECORD,
        ty if range::of_range(ty).is_some() => oid::ANYRANGE,
        ty if range::of_multirange(ty).is_some() => oid::ANYMULTIRANGE,
        ty => ty,
    }
}

/// Returns the default class of a type; 0 if there is none.
pub fn default_class(ty: Oid) -> Oid {
    CLASSES.get(&compared_as(ty)).map_or(0, |class| class.oid)
}

/// Returns the equality operator of a type's default class; 0 if there is none.
pub fn equality(ty: Oid) -> Oid {
    let ty = compared_as(ty);
    let Some(class) = CLASSES.get(&ty) else { return 0 };
    EQUALITIES.get(&(class.family, ty)).copied().unwrap_or(0)
}

/// A GIN operator class.
pub struct GinClass {
    oid: Oid,
    pub name: &'static str,
    pub form: TermForm,
    /// It is that of its type where a definition names none.
    pub is_default: bool,
}

/// Those that are served.
pub static GIN_CLASSES: [GinClass; 3] = [
    GinClass { oid: 10064, name: "array_ops", form: TermForm::Elements, is_default: true },
    GinClass { oid: 10090, name: "jsonb_ops", form: TermForm::Members, is_default: true },
    GinClass { oid: 10091, name: "jsonb_path_ops", form: TermForm::Paths, is_default: false },
];

impl GinClass {
    pub fn of(form: TermForm) -> &'static GinClass {
        &GIN_CLASSES[form as usize]
    }
}

/// Returns the OID of the GIN operator class of such terms, if it accepts the type.
pub fn gin_class(form: TermForm, ty: Oid) -> Option<Oid> {
    let accepts = match form {
        TermForm::Elements => is_array(user::form(ty)),
        TermForm::Members | TermForm::Paths => user::form(ty) == oid::JSONB,
    };
    accepts.then(|| GinClass::of(form).oid)
}

/// Returns the type of an index's keys by the GIN operator class of such terms, for a column of that type.
pub fn gin_key_type(form: TermForm, ty: Oid) -> Oid {
    match form {
        TermForm::Elements => element_of(user::form(ty)).map_or(ty, |element| element.oid),
        TermForm::Members => oid::TEXT,
        TermForm::Paths => oid::INT4,
    }
}

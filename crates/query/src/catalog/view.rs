//! A view: a named query. Its text names every table with its schema and has no `*`, so its meaning depends neither on
//! the current database nor on columns that are added later.

use std::sync::atomic::AtomicBool;

use datum::{Fault, Result};

use crate::catalog::codec::{In, Out};
use crate::catalog::object_id::{Maker, ObjectId};
use crate::types::Type;

/// The version of a definition. The types of version 1 have the kinds of `codec::FORMER`; version 2 ends before the maker.
const VERSION: u8 = 3;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    #[default]
    Undefined,
    Merge,
    Temptable,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CheckOption {
    #[default]
    None,
    Local,
    Cascaded,
}

#[derive(Debug, Default)]
pub struct View {
    pub id: ObjectId,
    pub maker: Maker,
    pub schema: String,
    pub name: String,
    pub columns: Vec<String>,
    /// The types of its columns at creation.
    pub types: Vec<Type>,
    pub text: String,
    /// The name of the definer's account.
    pub definer: String,
    /// SQL SECURITY INVOKER.
    pub invoker: bool,
    pub algorithm: Algorithm,
    pub check: CheckOption,
    /// The SQL modes in which the dialect reads the text.
    pub modes: String,
    pub charset: String,
    pub collation: String,
    /// The base table or view of an updatable view, as (schema, name).
    pub over: Option<(String, String)>,
    /// A temporary view, which its session drops when it ends.
    pub temporary: bool,
    /// The temporary relations that a temporary view reads.
    pub reads: Vec<ObjectId>,
    /// The role that made a temporary view, by the dialect's number. Others have access records.
    pub owner: u32,
    /// The view was dropped or replaced, which invalidates plans that contain it.
    pub gone: AtomicBool,
}

impl View {
    /// Returns a copy for a change of its definition.
    pub fn copy(&self) -> View {
        View {
            id: self.id,
            maker: self.maker,
            schema: self.schema.clone(),
            name: self.name.clone(),
            columns: self.columns.clone(),
            types: self.types.clone(),
            text: self.text.clone(),
            definer: self.definer.clone(),
            invoker: self.invoker,
            algorithm: self.algorithm,
            check: self.check,
            modes: self.modes.clone(),
            charset: self.charset.clone(),
            collation: self.collation.clone(),
            over: self.over.clone(),
            temporary: self.temporary,
            reads: self.reads.clone(),
            owner: self.owner,
            gone: AtomicBool::new(false),
        }
    }
}

pub fn view_key(id: u64, piece: u16) -> Vec<u8> {
    [&b"v"[..], &id.to_be_bytes(), &piece.to_be_bytes()].concat()
}

pub fn encode_view(view: &View) -> Vec<u8> {
    let mut out = Out::default();
    out.byte(VERSION);
    out.number(view.id);
    for text in [&view.schema, &view.name, &view.text, &view.definer, &view.modes, &view.charset, &view.collation] {
        out.text(text);
    }
    out.count(view.columns.len());
    view.columns.iter().for_each(|column| out.text(column));
    out.count(view.types.len());
    view.types.iter().for_each(|ty| out.ty(ty));
    out.byte(view.algorithm as u8);
    out.byte(view.check as u8);
    out.byte(u8::from(view.invoker) | u8::from(view.over.is_some()) << 1);
    if let Some((schema, name)) = &view.over {
        out.text(schema);
        out.text(name);
    }
    out.byte(view.maker.0);
    out.0
}

pub fn decode_view(bytes: &[u8]) -> Result<View> {
    let damaged = || Fault::corrupt("a view's record");
    let mut from = In(bytes);
    let format = from.byte()?;
    if !(1..=VERSION).contains(&format) {
        return Err(Fault::corrupt("a view of a later version"));
    }
    let id = from.number()?;
    let (schema, name, text, definer) = (from.text()?, from.text()?, from.text()?, from.text()?);
    let (modes, charset, collation) = (from.text()?, from.text()?, from.text()?);
    let columns = from.list(In::text)?;
    let types = from.list(In::ty)?;
    let algorithm = match from.byte()? {
        0 => Algorithm::Undefined,
        1 => Algorithm::Merge,
        2 => Algorithm::Temptable,
        _ => return Err(damaged()),
    };
    let check = match from.byte()? {
        0 => CheckOption::None,
        1 => CheckOption::Local,
        2 => CheckOption::Cascaded,
        _ => return Err(damaged()),
    };
    let flags = from.byte()?;
    let over = if flags & 2 != 0 { Some((from.text()?, from.text()?)) } else { None };
    let maker = if format < 3 { Maker::default() } else { from.maker()? };
    Ok(View {
        id,
        maker,
        schema,
        name,
        columns,
        types,
        text,
        definer,
        invoker: flags & 1 != 0,
        algorithm,
        check,
        modes,
        charset,
        collation,
        over,
        temporary: false,
        reads: Vec::new(),
        owner: 0,
        gone: AtomicBool::new(false),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_comes_back_from_its_bytes() {
        let view = View {
            id: 7,
            maker: Maker(1),
            schema: "s".into(),
            name: "v".into(),
            columns: vec!["a".into(), "b".into()],
            types: vec![Type::truth(), Type::undeclared(datum::Storage::Float8, (0, 0), true)],
            text: "select 1, 2".into(),
            definer: "app@10.%".into(),
            invoker: true,
            algorithm: Algorithm::Merge,
            check: CheckOption::Cascaded,
            modes: "ANSI".into(),
            over: Some(("s".into(), "t".into())),
            ..View::default()
        };
        let bytes = encode_view(&view);
        assert_eq!(format!("{:?}", decode_view(&bytes).unwrap()), format!("{view:?}"));
        assert!((0..bytes.len()).all(|end| decode_view(&bytes[..end]).is_err()));
        let mut earlier = bytes[..bytes.len() - 1].to_vec();
        earlier[0] = 2;
        assert_eq!(decode_view(&earlier).unwrap().maker, Maker(0));
    }
}

//! Casts of analysed expressions: where the binder puts one, and how it was written.

use crate::bind::coerce::{Pathway, can_coerce, is_polymorphic, pathway};
use crate::bind::typing::{Operand, literal, unsupported};
use crate::deparse::analyse::Analyser;
use crate::deparse::node::{SqlForm, SqlNode, Ty};
use crate::error::Result;
use crate::functions::CastContext;
use crate::functions::state::StateOf as _;
use crate::types::assignment::has_length_coercion;
use crate::types::io;
use crate::types::oid::{self, Oid};
use crate::types::registry::column_type;
use crate::types::user;
use crate::value::Value;

impl Analyser<'_, '_> {
    /// Coerces to a type without a modifier.
    pub fn coerce(&mut self, node: SqlNode, target: Oid, form: SqlForm) -> Result<SqlNode> {
        let context = if form == SqlForm::Explicit { CastContext::Explicit } else { CastContext::Implicit };
        self.coerce_in(node, target, form, context)
    }

    pub fn coerce_in(&mut self, node: SqlNode, target: Oid, form: SqlForm, context: CastContext) -> Result<SqlNode> {
        let source = node.ty().0;
        if source == target || is_polymorphic(target) {
            return Ok(node);
        }
        let ty = (target, -1);
        if target == oid::RECORD && user::is_composite(source) {
            return Ok(node);
        }
        if user::is_composite(target) && source == oid::RECORD {
            return self.row_as(node, target, form, context);
        }
        if user::is_domain(target) {
            // The base type's part of the cast is not shown.
            let (base, typmod) = self.binder.base_type(target)?;
            let operand = match context {
                CastContext::Implicit => self.coerce_in(node, base, SqlForm::Implicit, context)?,
                _ => self.cast(node, (base, typmod), SqlForm::Implicit, context)?,
            };
            return Ok(SqlNode::Cast { operand: Box::new(operand), ty, form });
        }
        if source == oid::UNKNOWN {
            return self.typed(node, target, -1);
        }
        match pathway(self.binder.flat(source)?, self.binder.flat(target)?, context) {
            Some(Pathway::Function(function)) => {
                let name = crate::system::function_name(function).map_or("", |(name, _)| name).to_owned();
                Ok(SqlNode::Call { name, arguments: vec![node], ty, form })
            }
            Some(Pathway::Relabel | Pathway::InOut | Pathway::Elements) => {
                Ok(SqlNode::Cast { operand: Box::new(node), ty, form })
            }
            None => Err(unsupported("the cast of a definition")),
        }
    }

    /// Brings the items of a row to the types of the fields of a composite type.
    fn row_as(&mut self, node: SqlNode, target: Oid, form: SqlForm, context: CastContext) -> Result<SqlNode> {
        let (SqlNode::Row(items), Some(row)) = (node, self.binder.composite_row(target)) else {
            return Err(unsupported("the cast of a definition"));
        };
        let mut cast = Vec::with_capacity(items.len());
        for (item, field) in items.into_iter().zip(&row.fields) {
            cast.push(self.cast(item, (field.number, field.length as i32), SqlForm::Implicit, context)?);
        }
        Ok(SqlNode::Cast { operand: Box::new(SqlNode::Row(cast)), ty: (target, -1), form })
    }

    /// Gives a constant of unknown type its type.
    fn typed(&mut self, node: SqlNode, target: Oid, typmod: i32) -> Result<SqlNode> {
        let SqlNode::Const { text, ty: _ } = node else {
            return Ok(SqlNode::Cast { operand: Box::new(node), ty: (target, -1), form: SqlForm::Implicit });
        };
        let Some(text) = text else { return Ok(SqlNode::Const { text: None, ty: (target, -1) }) };
        let ty = column_type(target, typmod, false);
        let io = self.binder.context().state().io.clone();
        let value = io::input(&ty, &text, &io)?;
        let mut out = Vec::new();
        io::output(&value, &ty, &io, &mut out)?;
        Ok(SqlNode::Const { text: Some(String::from_utf8_lossy(&out).into_owned()), ty: (target, typmod) })
    }

    /// Coerces to a type with its modifier.
    pub fn cast(
        &mut self,
        node: SqlNode,
        (target, typmod): Ty,
        form: SqlForm,
        context: CastContext,
    ) -> Result<SqlNode> {
        if node.is_unknown_const() && target == oid::INTERVAL {
            return self.typed(node, target, typmod);
        }
        let source = node.ty();
        let is_const = node.is_unknown_const();
        let cast = self.coerce_in(node, target, form, context)?;
        if typmod < 0 && form == SqlForm::Explicit && source.0 == target && source.1 >= 0 {
            // The modifier is taken away.
            return Ok(SqlNode::Cast { operand: Box::new(cast), ty: (target, typmod), form });
        }
        if typmod < 0 || cast.ty().1 == typmod {
            return Ok(cast);
        }
        let ty = (target, typmod);
        let inner = if source.0 != target && !is_const { implicit(cast) } else { cast };
        if !has_length_coercion(target) {
            return Ok(SqlNode::Cast { operand: Box::new(inner), ty, form });
        }
        let name = crate::types::registry::by_oid(target).map_or("", |row| row.name).to_owned();
        Ok(SqlNode::Call { name, arguments: vec![inner], ty, form })
    }

    /// Coerces to the type of a column, as an assignment does.
    pub fn assigned(&mut self, node: SqlNode, ty: Ty) -> Result<SqlNode> {
        self.cast(node, ty, SqlForm::Implicit, CastContext::Assignment)
    }

    /// Returns the type that expressions have in common.
    pub fn common(&self, nodes: &[SqlNode]) -> Result<Oid> {
        let operands: Vec<Operand> =
            nodes.iter().map(|node| Operand { expr: literal(Value::Null, node.ty().0), at: 0 }).collect();
        self.binder.common_of(&operands.iter().collect::<Vec<_>>())?.map_err(|_| unsupported("types that differ"))
    }

    pub fn coerce_all(&mut self, nodes: Vec<SqlNode>, target: Oid) -> Result<Vec<SqlNode>> {
        nodes.into_iter().map(|node| self.coerce(node, target, SqlForm::Implicit)).collect()
    }

    /// Gives an expression of unknown type the type text.
    pub fn settled(&mut self, node: SqlNode) -> Result<SqlNode> {
        if node.ty().0 == oid::UNKNOWN { self.coerce(node, oid::TEXT, SqlForm::Implicit) } else { Ok(node) }
    }

    pub fn can_coerce(&self, source: Oid, target: Oid) -> bool {
        let flat = |ty: Oid| self.binder.flat(ty).unwrap_or(ty);
        can_coerce(&[flat(source)], &[flat(target)], CastContext::Implicit)
    }
}

/// Hides a cast within another.
fn implicit(node: SqlNode) -> SqlNode {
    match node {
        SqlNode::Call { name, arguments, ty, form: SqlForm::Explicit } => {
            SqlNode::Call { name, arguments, ty, form: SqlForm::Implicit }
        }
        SqlNode::Cast { operand, ty, form: _ } => SqlNode::Cast { operand, ty, form: SqlForm::Implicit },
        other => other,
    }
}

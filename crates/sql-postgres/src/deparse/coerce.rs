//! Casts of analysed expressions: where the binder puts one, and how it was written.

use crate::bind::coerce::{Pathway, can_coerce, common_type, is_polymorphic, pathway};
use crate::bind::typing::{Operand, literal, unsupported};
use crate::deparse::analyse::Analyser;
use crate::deparse::node::{Form, Node, Ty};
use crate::error::Result;
use crate::functions::CastContext;
use crate::functions::state::StateOf as _;
use crate::types::assignment::has_length_coercion;
use crate::types::io;
use crate::types::oid::{self, Oid};
use crate::types::registry::column_type;
use crate::value::Value;

impl Analyser<'_, '_> {
    /// Coerces to a type without a modifier.
    pub fn coerce(&mut self, node: Node, target: Oid, form: Form) -> Result<Node> {
        let context = if form == Form::Explicit { CastContext::Explicit } else { CastContext::Implicit };
        self.coerce_in(node, target, form, context)
    }

    pub fn coerce_in(&mut self, node: Node, target: Oid, form: Form, context: CastContext) -> Result<Node> {
        let source = node.ty().0;
        if source == target || is_polymorphic(target) {
            return Ok(node);
        }
        if source == oid::UNKNOWN {
            return self.typed(node, target, -1);
        }
        let ty = (target, -1);
        match pathway(source, target, context) {
            Some(Pathway::Function(function)) => {
                let name = crate::system::function_name(function).map_or("", |(name, _)| name).to_owned();
                Ok(Node::Call { name, arguments: vec![node], ty, form })
            }
            Some(Pathway::Relabel | Pathway::InOut) => Ok(Node::Cast { operand: Box::new(node), ty, form }),
            None => Err(unsupported("the cast of a definition")),
        }
    }

    /// Gives a constant of unknown type its type.
    fn typed(&mut self, node: Node, target: Oid, typmod: i32) -> Result<Node> {
        let Node::Const { text, ty: _ } = node else {
            return Ok(Node::Cast { operand: Box::new(node), ty: (target, -1), form: Form::Implicit });
        };
        let Some(text) = text else { return Ok(Node::Const { text: None, ty: (target, -1) }) };
        let ty = column_type(target, typmod, false);
        let io = self.binder.context().state().io.clone();
        let value = io::input(&ty, &text, &io)?;
        let mut out = Vec::new();
        io::output(&value, &ty, &io, &mut out)?;
        Ok(Node::Const { text: Some(String::from_utf8_lossy(&out).into_owned()), ty: (target, typmod) })
    }

    /// Coerces to a type with its modifier.
    pub fn cast(&mut self, node: Node, (target, typmod): Ty, form: Form, context: CastContext) -> Result<Node> {
        if node.is_unknown_const() && target == oid::INTERVAL {
            return self.typed(node, target, typmod);
        }
        let source = node.ty();
        let is_const = node.is_unknown_const();
        let cast = self.coerce_in(node, target, form, context)?;
        if typmod < 0 || cast.ty().1 == typmod {
            return Ok(cast);
        }
        let ty = (target, typmod);
        let inner = if source.0 != target && !is_const { implicit(cast) } else { cast };
        if !has_length_coercion(target) {
            return Ok(Node::Cast { operand: Box::new(inner), ty, form });
        }
        let name = crate::types::registry::by_oid(target).map_or("", |row| row.name).to_owned();
        Ok(Node::Call { name, arguments: vec![inner], ty, form })
    }

    /// Coerces to the type of a column, as an assignment does.
    pub fn assigned(&mut self, node: Node, ty: Ty) -> Result<Node> {
        self.cast(node, ty, Form::Implicit, CastContext::Assignment)
    }

    /// Returns the type that expressions have in common.
    pub fn common(&self, nodes: &[Node]) -> Result<Oid> {
        let operands: Vec<Operand> =
            nodes.iter().map(|node| Operand { expr: literal(Value::Null, node.ty().0), at: 0 }).collect();
        common_type(&operands.iter().collect::<Vec<_>>()).map_err(|_| unsupported("types that differ"))
    }

    pub fn coerce_all(&mut self, nodes: Vec<Node>, target: Oid) -> Result<Vec<Node>> {
        nodes.into_iter().map(|node| self.coerce(node, target, Form::Implicit)).collect()
    }

    /// Gives an expression of unknown type the type text.
    pub fn settled(&mut self, node: Node) -> Result<Node> {
        if node.ty().0 == oid::UNKNOWN { self.coerce(node, oid::TEXT, Form::Implicit) } else { Ok(node) }
    }

    pub fn can_coerce(&self, source: Oid, target: Oid) -> bool {
        can_coerce(&[source], &[target], CastContext::Implicit)
    }
}

/// Hides a cast within another.
fn implicit(node: Node) -> Node {
    match node {
        Node::Call { name, arguments, ty, form: Form::Explicit } => {
            Node::Call { name, arguments, ty, form: Form::Implicit }
        }
        Node::Cast { operand, ty, form: _ } => Node::Cast { operand, ty, form: Form::Implicit },
        other => other,
    }
}

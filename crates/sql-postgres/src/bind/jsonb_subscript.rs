//! Subscripts of a jsonb: each is an integer or a text, whichever its type can be coerced to.

use query::nodes::expr::Expr;
use syntax::postgres::tree::Indirection;

use crate::bind::Binder;
use crate::bind::coerce::{call_of, can_coerce};
use crate::bind::typing::{Operand, shown, unsupported};
use crate::error::{PgError, Result, state};
use crate::functions::CastContext;
use crate::functions::json::subscripts::ELEMENT;
use crate::types::oid;

impl Binder<'_> {
    #[inline(never)]
    pub fn jsonb_element(&mut self, operand: Operand, links: &[Indirection], at: u32) -> Result<Operand> {
        let mut arguments = vec![operand.expr];
        arguments.extend(self.jsonb_subscripts(links)?);
        Ok(Operand { expr: call_of(&ELEMENT, arguments, oid::JSONB, -1), at })
    }

    pub fn jsonb_subscripts(&mut self, links: &[Indirection]) -> Result<Vec<Expr>> {
        let has_slice = links.iter().any(|link| matches!(link, Indirection::Slice { low: _, high: _ }));
        let mut subscripts = Vec::with_capacity(links.len());
        for link in links {
            let index = match link {
                Indirection::Subscript(index) => Some(index),
                Indirection::Slice { low, high } => high.as_deref().or(low.as_deref()),
                Indirection::Field(_) | Indirection::Star => return Err(unsupported("a field of a value")),
            };
            let Some(index) = index.filter(|_| !has_slice) else {
                let error = PgError::new(state::DATATYPE_MISMATCH, "jsonb subscript does not support slices");
                return Err(match index {
                    Some(index) => self.error(error, index.span.start),
                    None => error,
                });
            };
            let operand = self.expr(index)?;
            subscripts.push(self.jsonb_subscript(operand)?);
        }
        Ok(subscripts)
    }

    fn jsonb_subscript(&mut self, operand: Operand) -> Result<Expr> {
        let ty = operand.oid();
        let flat = self.flat(ty)?;
        let fits = |target| can_coerce(&[flat], &[target], CastContext::Implicit);
        let target = match (fits(oid::INT4), fits(oid::TEXT)) {
            _ if operand.is_unknown() => oid::TEXT,
            (true, false) => oid::INT4,
            (false, true) => oid::TEXT,
            (is_both, _) => {
                let targets = if is_both { "only one type, integer or text" } else { "either integer or text" };
                let hint = format!("jsonb subscript must be coercible to {targets}.");
                let text = format!("subscript type {} is not supported", shown(ty));
                return Err(self.error(PgError::new(state::DATATYPE_MISMATCH, text).hint(hint), operand.at));
            }
        };
        self.coerce(operand, target, CastContext::Implicit)
    }
}

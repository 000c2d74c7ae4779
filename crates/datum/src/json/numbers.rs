//! The two forms of a document's numbers: all decimals, or integers and doubles.
//!
//! One dialect keeps each number as it was written, another as the nearest number of a machine. A document that changes
//! its table's dialect changes the form of its numbers, and scalars that JSON has no literals for become strings.

use super::{Json, Members, Node};
use num_bigint::BigInt;

use crate::decimal::Decimal;

impl Node {
    /// Returns the document with decimals alone for numbers, and strings for dates, times and bytes.
    pub fn with_decimals(&self) -> Node {
        let decimal = |number: Decimal| Node::Decimal(number);
        match self {
            Node::Null | Node::Bool(_) | Node::String(_) | Node::Decimal(_) => self.clone(),
            Node::Int(number) => decimal(Decimal::from(*number)),
            Node::UInt(number) => decimal(Decimal::from(*number)),
            Node::Double(number) => decimal(of_double(*number)),
            Node::Date(_) | Node::Time(_) | Node::DateTime(_) | Node::Bytes(_) => {
                Node::String(Json::from(self.clone()).node().unquoted().into())
            }
            Node::Array(items) => Node::Array(items.iter().map(Node::with_decimals).collect()),
            Node::Object(members) => Node::Object(members.map(Node::with_decimals)),
        }
    }

    /// Returns the document with the numbers that parsing its text gives: integers where 64 bits hold them, else
    /// doubles. Returns None if a number is beyond the doubles.
    pub fn with_machine_numbers(&self) -> Option<Node> {
        Some(match self {
            Node::Decimal(number) => {
                let whole = if number.scale() == 0 { number.small() } else { None };
                let int = whole.and_then(|whole| i64::try_from(whole).ok().map(Node::Int));
                match int.or_else(|| whole.and_then(|whole| u64::try_from(whole).ok().map(Node::UInt))) {
                    Some(whole) => whole,
                    None => Node::Double(Some(number.to_f64()).filter(|double| double.is_finite())?),
                }
            }
            Node::Array(items) => Node::Array(items.iter().map(Node::with_machine_numbers).collect::<Option<_>>()?),
            Node::Object(members) => {
                let each = members.iter().map(|(name, node)| Some((name.into(), node.with_machine_numbers()?)));
                Node::Object(Members::new(each.collect::<Option<_>>()?))
            }
            other => other.clone(),
        })
    }
}

impl Members {
    fn map(&self, change: impl Fn(&Node) -> Node) -> Members {
        Members(self.0.iter().map(|(name, node)| (name.clone(), change(node))).collect())
    }
}

/// Returns the shortest decimal that reads as the number. A whole one has a zero behind the point, by which it becomes a
/// double again.
fn of_double(number: f64) -> Decimal {
    let text = format!("{number:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    // A finite double has at most 17 digits and an exponent of three.
    let coefficient: i128 = format!("{whole}{fraction}").parse().unwrap_or(0);
    let exponent = exponent.parse::<i32>().unwrap_or(0) - fraction.len() as i32;
    match u32::try_from(exponent) {
        Ok(zeros) => Decimal::from_big(BigInt::from(coefficient) * BigInt::from(10).pow(zeros + 1), 1),
        Err(_) => Decimal::new(coefficient, exponent.unsigned_abs() as u16),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Node {
        Node::Decimal(Decimal::parse(text).unwrap())
    }

    #[test]
    fn numbers_change_their_form_and_keep_their_value() {
        for (machine, text) in [
            (Node::Int(-3), "-3"),
            (Node::UInt(u64::MAX), "18446744073709551615"),
            (Node::Double(0.1), "0.1"),
            (Node::Double(-1.5e-7), "-0.00000015"),
        ] {
            assert_eq!(machine.with_decimals(), decimal(text));
            assert_eq!(decimal(text).with_machine_numbers(), Some(machine));
        }
        assert_eq!(decimal("1.0").with_machine_numbers(), Some(Node::Double(1.0)));
        assert_eq!(decimal("18446744073709551616").with_machine_numbers(), Some(Node::Double(18446744073709551616.0)));
        let huge = Node::Decimal(Decimal::from_big(BigInt::from(10).pow(400), 0));
        assert_eq!(huge.with_machine_numbers(), None);
        for double in [0.0, 1.0, -17.0, 1e22, f64::MAX, f64::MIN_POSITIVE, 5e-324, 1e-40, 123456789.125] {
            assert_eq!(Node::Double(double).with_decimals().with_machine_numbers(), Some(Node::Double(double)));
        }
    }

    #[test]
    fn nested_values_change_with_their_document() {
        let members = vec![("a".into(), Node::Array(vec![Node::Int(1), Node::Null]))];
        let document = Node::Object(Members::new(members));
        let changed = document.with_decimals();
        assert_eq!(changed.with_machine_numbers(), Some(document));
        let Node::Object(members) = changed else { panic!("an object stays one") };
        assert_eq!(members.get("a"), Some(&Node::Array(vec![decimal("1"), Node::Null])));
    }
}

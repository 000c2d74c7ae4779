//! Printed trees: that they parse to themselves, and the style of expressions.

use std::collections::HashSet;
use std::mem::{Discriminant, discriminant};

use syntax::tree::walk::{self, Visitor};
use syntax::tree::*;
use syntax::{Mode, parse, print};

use crate::generate::{Random, made};

const SEEDS: u64 = 20_000;

#[test]
fn printed_trees_parse_to_themselves() {
    let mut failures = Vec::new();
    for seed in 0..SEEDS {
        let height = (seed % 5) as usize;
        let tree = Random::new(seed).statement(height);
        let text = tree.to_string();
        let problem = match parse(&text, Mode::default()) {
            Ok(parsed) if parsed.statement == tree => continue,
            Ok(parsed) => format!("is read as {}", parsed.statement),
            Err(error) => format!("{:?} at {:?}", error.problem, error.near(&text).0),
        };
        failures.push((text.len(), seed, text, problem));
    }
    failures.sort();
    let shown: String = failures
        .iter()
        .take(12)
        .map(|(_, seed, text, problem)| format!("\nseed {seed}: {text}\n  {problem}"))
        .collect();
    assert!(failures.is_empty(), "{} of {SEEDS} trees:{shown}", failures.len());
}

/// The kinds of [`ExprKind`] without `Concat`, which the default mode does not have.
const EXPR_KINDS: usize = 45;

#[test]
fn the_trees_have_all_kinds_of_expressions() {
    struct Kinds(HashSet<Discriminant<ExprKind>>);
    impl Visitor for Kinds {
        fn expr(&mut self, expr: &Expr) -> bool {
            self.0.insert(discriminant(&expr.kind));
            true
        }
    }
    let mut kinds = Kinds(HashSet::new());
    (0..2_000).for_each(|seed| walk::statement(&Random::new(seed).statement(3), &mut kinds));
    assert_eq!(kinds.0.len(), EXPR_KINDS);
}

#[test]
fn texts_have_the_style_of_views() {
    for (text, printed) in [
        (
            "SELECT a+1-b, Count(*) n FROM t1 JOIN t2 ON t1.a=t2.a LEFT JOIN (t3, t4) USING (b) WHERE a=1 AND b BETWEEN 1 AND 2 OR NOT c",
            "select ((`a` + 1) - `b`),count(*) AS `n` from `t1` join `t2` on((`t1`.`a` = `t2`.`a`)) left join (`t3`,`t4`) using (`b`) \
             where (((`a` = 1) and (`b` between 1 and 2)) or (not(`c`)))",
        ),
        (
            "SELECT DISTINCT t.* FROM s.t GROUP BY a WITH ROLLUP HAVING a ORDER BY a DESC LIMIT 5 OFFSET 2 FOR UPDATE OF t NOWAIT",
            "select distinct `t`.* from `s`.`t` group by `a` with rollup having `a` order by `a` desc limit 2,5 for update of `t` nowait",
        ),
        ("SELECT 1 UNION ALL (SELECT 2 LIMIT 1) ORDER BY 1", "select 1 union all (select 2 limit 1) order by 1"),
        (
            "SELECT SUM(a) OVER (PARTITION BY b ORDER BY c ROWS 1 PRECEDING), x->'$.a' FROM t",
            "select sum(`a`) over (partition by `b` order by `c` rows 1 preceding),`x`->'$.a' from `t`",
        ),
        (
            "SELECT CAST(a AS CHAR(10) CHARACTER SET latin1), DATE_ADD(a, INTERVAL 1 DAY), TIMESTAMPDIFF(day,a,b), TRIM(LEADING 'x' FROM a)",
            "select cast(`a` as char(10) charset latin1),(`a` + interval 1 day),timestampdiff(DAY,`a`,`b`),trim(leading 'x' from `a`)",
        ),
        (
            "SELECT a IN (1,2), a LIKE 'y', a = ALL (SELECT 1), EXISTS (SELECT 1), CASE WHEN a THEN b END, -1 COLLATE utf8mb4_bin",
            "select (`a` in (1,2)),(`a` like 'y'),(`a` = all (select 1)),exists(select 1),(case when `a` then `b` end),-((1 collate utf8mb4_bin))",
        ),
        (
            "CREATE TABLE t (a INT(5) UNSIGNED NOT NULL DEFAULT -1 CHECK (a>1), KEY k (a DESC) USING BTREE) ENGINE=InnoDB",
            "create table `t` (`a` int(5) unsigned not null default -1 check ((`a` > 1)),key `k` (`a` desc) using btree) engine=InnoDB",
        ),
    ] {
        assert_eq!(parse(text, Mode::default()).unwrap().statement.to_string(), printed);
    }
}

fn column(name: &str) -> Expr {
    made(ExprKind::Column(Box::new(ColumnName { schema: None, table: None, name: name.to_owned() })))
}

fn number(number: u64) -> Expr {
    made(ExprKind::Literal(Literal::Integer(number)))
}

fn text(text: &str) -> Expr {
    made(ExprKind::Literal(Literal::String(text.to_owned())))
}

fn link(op: BinaryOp, operand: Expr) -> Link {
    Link { op, operand }
}

fn unary(op: UnaryOp, operand: Expr) -> Expr {
    made(ExprKind::Unary { op, operand: Box::new(operand) })
}

fn compare(op: CompareOp, left: Expr, right: Expr) -> Expr {
    made(ExprKind::Compare { op, left: Box::new(left), right: Box::new(right) })
}

#[test]
fn names_and_strings_are_quoted() {
    assert_eq!(print::identifier("a`b").to_string(), "`a``b`");
    assert_eq!(print::string("it's \\ \n\r\0\u{1a}%").to_string(), r"'it\'s \\ \n\r\0\Z%'");
}

#[test]
fn operators_stand_in_parentheses() {
    let links = vec![link(BinaryOp::Add, number(1)), link(BinaryOp::Subtract, column("b"))];
    let chain = made(ExprKind::Chain { first: Box::new(column("a")), links });
    assert_eq!(chain.to_string(), "((`a` + 1) - `b`)");
    let equal = |name| compare(CompareOp::Equal, column(name), number(1));
    let and = made(ExprKind::And(vec![equal("a"), equal("b"), equal("c")]));
    assert_eq!(and.to_string(), "((`a` = 1) and (`b` = 1) and (`c` = 1))");
    let xor = made(ExprKind::Xor(vec![column("a"), column("b"), column("c")]));
    assert_eq!(xor.to_string(), "((`a` xor `b`) xor `c`)");
    assert_eq!(unary(UnaryOp::Not, equal("a")).to_string(), "(not((`a` = 1)))");
    assert_eq!(unary(UnaryOp::Minus, number(1)).to_string(), "-(1)");
    let concat = made(ExprKind::Concat(vec![column("a"), text("x")]));
    assert_eq!(concat.to_string(), "concat(`a`,'x')");
}

#[test]
fn literals_keep_their_bytes() {
    let literal = |literal: Literal| literal.to_string();
    assert_eq!(literal(Literal::Hex(vec![0x41, 0x0a])), "0x410a");
    assert_eq!(literal(Literal::Hex(Vec::new())), "x''");
    assert_eq!(literal(Literal::Bits(vec![0, 5])), "b'000000101'");
    assert_eq!(literal(Literal::Bits(vec![5])), "b'101'");
    assert_eq!(literal(Literal::Bits(Vec::new())), "b''");
    let introduced = ExprKind::Introduced { charset: "binary".to_owned(), literal: Literal::Hex(vec![1]) };
    assert_eq!(made(introduced).to_string(), "_binary 0x01");
}

#[test]
fn long_chains_are_flat() {
    let operands = 100_000;
    let links = (0..operands).map(|_| link(BinaryOp::Add, number(1))).collect();
    let chain = made(ExprKind::Chain { first: Box::new(number(1)), links });
    assert_eq!(chain.to_string().len(), "(1)".len() + operands * " + 1".len());
}

#[test]
fn tall_trees_print_on_a_small_stack() {
    let print = || {
        let mut tree = column("a");
        for _ in 0..HEIGHT_MAX / 4 {
            let equal = compare(CompareOp::Equal, tree, number(1));
            let function = Function::plain("coalesce", vec![equal]);
            let call = made(ExprKind::Function(Box::new(function)));
            let arms = vec![Arm { condition: unary(UnaryOp::Not, call), result: number(1) }];
            tree = made(ExprKind::Case { operand: None, arms, otherwise: None });
        }
        tree.to_string().len()
    };
    let length = std::thread::Builder::new().stack_size(1 << 20).spawn(print).unwrap().join().unwrap();
    assert!(length > HEIGHT_MAX);
}

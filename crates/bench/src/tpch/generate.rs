//! The tables of TPC-H and their rows, from one seed: the same for every server and every run.
//!
//! Not dbgen's rows: sizes, keys, ranges of values, the links between the tables and whatever the 22 queries look for are as the specification has them; texts are words drawn one by one and
//! not its grammar's sentences, and every draw is uniform. Orders' keys leave gaps as there (eight of 32), a third of the customers has no order, a part has four suppliers by the same formula.

use std::io::{self, Write};

use stdx::prng::Prng;

use super::words::{
    COLORS, CONTAINERS, INSTRUCTIONS, MODES, NATIONS, NOUNS, PRIORITIES, REGIONS, SEGMENTS, TYPES, WORDS,
};

const SEED: u64 = 19_920_101;
/// Rows of an INSERT.
const ROWS: usize = 500;
/// Days from 1992-01-01 to the last order, and to the day that is "now".
const LAST_ORDER: u64 = 2405;
const NOW: u64 = 1263;

const TABLES: &str = include_str!("tables.sql");

/// Returns the statements that make the tables, with their indexes in the words of MySQL or of PostgreSQL.
pub fn tables(is_mysql: bool) -> String {
    if is_mysql {
        return TABLES.into();
    }
    let mut out = String::new();
    for line in TABLES.lines() {
        let mut parts = line.trim_end_matches(");").split(", key (");
        let table = parts.next().unwrap_or_default();
        let name = table.split_whitespace().nth(2).unwrap_or_default();
        out += &format!("{table});\n");
        for columns in parts {
            out += &format!("create index on {name} ({});\n", columns.trim_end_matches(')'));
        }
    }
    out
}

/// How many rows each table has.
#[derive(Clone, Copy)]
pub struct Sizes {
    pub suppliers: u64,
    pub parts: u64,
    pub customers: u64,
    pub orders: u64,
}

impl Sizes {
    pub fn of(scale: f64) -> Sizes {
        let of = |rows: f64| (rows * scale).round().max(10.0) as u64;
        Sizes { suppliers: of(10_000.0), parts: of(200_000.0), customers: of(150_000.0), orders: of(1_500_000.0) }
    }
}

/// Writes INSERTs.
struct Inserts<'w> {
    out: &'w mut dyn Write,
    table: &'static str,
    pending: usize,
}

impl<'w> Inserts<'w> {
    fn new(out: &'w mut dyn Write, table: &'static str) -> Inserts<'w> {
        Inserts { out, table, pending: 0 }
    }

    /// A row as SQL has it, without its brackets.
    fn row(&mut self, values: std::fmt::Arguments<'_>) -> io::Result<()> {
        match self.pending {
            0 => write!(self.out, "insert into {} values ({values})", self.table)?,
            _ => write!(self.out, ",({values})")?,
        }
        self.pending = (self.pending + 1) % ROWS;
        if self.pending == 0 { writeln!(self.out, ";") } else { Ok(()) }
    }

    fn end(self) -> io::Result<()> {
        if self.pending > 0 { writeln!(self.out, ";") } else { Ok(()) }
    }
}

/// Draws values.
struct Draw(Prng);

impl Draw {
    /// Both ends included.
    fn number(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.below(high - low + 1)
    }

    fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.0.below(list.len() as u64) as usize]
    }

    /// Draws words that fit into this many letters.
    fn text(&mut self, least: u64, most: u64, width: usize) -> String {
        let count = self.number(least, most);
        let mut text = (0..count).map(|_| self.of(WORDS)).collect::<Vec<_>>().join(" ");
        text.truncate(width);
        text.trim_end().to_string()
    }

    fn phone(&mut self, nation: u64) -> String {
        let part = |draw: &mut Draw| draw.number(100, 999);
        format!("{}-{}-{}-{}", nation + 10, part(self), part(self), self.number(1000, 9999))
    }

    /// From -999.99 to 9999.99.
    fn balance(&mut self) -> String {
        let cents = self.number(0, 1_099_998) as i64 - 99_999;
        let sign = if cents < 0 { "-" } else { "" };
        format!("{sign}{}", money(cents.unsigned_abs()))
    }
}

fn money(cents: u64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

/// A day, counted from 1992-01-01.
pub fn date(day: u64) -> String {
    let (mut year, mut rest) = (1992, day);
    let leap = |year: u64| year.is_multiple_of(4);
    while rest >= 365 + u64::from(leap(year)) {
        rest -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in lengths {
        if rest < length {
            break;
        }
        rest -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", rest + 1)
}

/// In cents.
fn price(part: u64) -> u64 {
    90_000 + (part / 10) % 20_001 + 100 * (part % 1000)
}

/// The supplier of a part, the first to the fourth.
fn supplier(part: u64, nth: u64, suppliers: u64) -> u64 {
    (part + nth * (suppliers / 4 + (part - 1) / suppliers)) % suppliers + 1
}

/// Writes statements that fill the tables.
pub fn write(scale: f64, out: &mut dyn Write) -> io::Result<()> {
    let sizes = Sizes::of(scale);
    let mut draw = Draw(Prng::new(SEED));
    let mut inserts = Inserts::new(out, "region");
    for (key, name) in REGIONS.iter().enumerate() {
        inserts.row(format_args!("{key},'{name}','{}'", draw.text(4, 10, 152)))?;
    }
    inserts.end()?;
    let mut inserts = Inserts::new(out, "nation");
    for (key, (name, region)) in NATIONS.iter().enumerate() {
        inserts.row(format_args!("{key},'{name}',{region},'{}'", draw.text(4, 10, 152)))?;
    }
    inserts.end()?;
    suppliers(sizes, &mut draw, out)?;
    parts(sizes, &mut draw, out)?;
    customers(sizes, &mut draw, out)?;
    orders(sizes, scale, &mut draw, out)
}

fn suppliers(sizes: Sizes, draw: &mut Draw, out: &mut dyn Write) -> io::Result<()> {
    let mut inserts = Inserts::new(out, "supplier");
    for key in 1..=sizes.suppliers {
        let nation = draw.number(0, 24);
        let (address, phone, balance) = (draw.text(2, 3, 40), draw.phone(nation), draw.balance());
        // Five of ten thousand customers complain, as many recommend; where there are few suppliers, more do.
        let often = (2000.0 / (10_000.0 / sizes.suppliers as f64).sqrt()) as u64;
        let comment = match draw.number(0, often.max(20)) {
            0 => format!("{} Customer {} Complaints", draw.text(1, 3, 40), draw.of(NOUNS)),
            1 => format!("{} Customer {} Recommends", draw.text(1, 3, 40), draw.of(NOUNS)),
            _ => draw.text(3, 8, 101),
        };
        inserts.row(format_args!("{key},'Supplier#{key:09}','{address}',{nation},'{phone}',{balance},'{comment}'"))?;
    }
    inserts.end()
}

fn parts(sizes: Sizes, draw: &mut Draw, out: &mut dyn Write) -> io::Result<()> {
    let mut inserts = Inserts::new(out, "part");
    for key in 1..=sizes.parts {
        let mut names: Vec<&str> = Vec::new();
        while names.len() < 5 {
            let color = draw.of(COLORS);
            if !names.contains(&color) {
                names.push(color);
            }
        }
        let (name, maker, brand) = (names.join(" "), draw.number(1, 5), draw.number(1, 5));
        let [first, second, third] = TYPES.map(|words| draw.of(words));
        let size = draw.number(1, 50);
        let [container, shape] = CONTAINERS.map(|words| draw.of(words));
        let (price, comment) = (money(price(key)), draw.text(1, 2, 23));
        inserts.row(format_args!(
            "{key},'{name}','Manufacturer#{maker}','Brand#{maker}{brand}','{first} {second} {third}',{size},'{container} {shape}',{price},'{comment}'"
        ))?;
    }
    inserts.end()?;
    let mut inserts = Inserts::new(out, "partsupp");
    for key in 1..=sizes.parts {
        let mut seen = Vec::new();
        for nth in 0..4 {
            let supplier = supplier(key, nth, sizes.suppliers);
            // With very few suppliers two of the four are the same.
            if seen.contains(&supplier) {
                continue;
            }
            seen.push(supplier);
            let (quantity, cost) = (draw.number(1, 9999), money(draw.number(100, 100_000)));
            inserts.row(format_args!("{key},{supplier},{quantity},{cost},'{}'", draw.text(5, 15, 199)))?;
        }
    }
    inserts.end()
}

fn customers(sizes: Sizes, draw: &mut Draw, out: &mut dyn Write) -> io::Result<()> {
    let mut inserts = Inserts::new(out, "customer");
    for key in 1..=sizes.customers {
        let nation = draw.number(0, 24);
        let (address, phone, balance) = (draw.text(2, 3, 40), draw.phone(nation), draw.balance());
        let (segment, comment) = (draw.of(SEGMENTS), draw.text(4, 10, 117));
        inserts.row(format_args!(
            "{key},'Customer#{key:09}','{address}',{nation},'{phone}',{balance},'{segment}','{comment}'"
        ))?;
    }
    inserts.end()
}

/// Orders and their lines, some of each in turn: so both tables grow as they would in a business.
fn orders(sizes: Sizes, scale: f64, draw: &mut Draw, out: &mut dyn Write) -> io::Result<()> {
    let clerks = (1000.0 * scale).max(1.0) as u64;
    let (mut orders, mut lines) = (Vec::new(), Vec::new());
    for number in 0..sizes.orders {
        let key = number / 8 * 32 + number % 8 + 1;
        let mut customer = draw.number(1, sizes.customers);
        while customer.is_multiple_of(3) {
            customer = draw.number(1, sizes.customers);
        }
        let day = draw.number(0, LAST_ORDER);
        let (mut total, mut open, mut count) = (0, 0, 0);
        for line in 1..=draw.number(1, 7) {
            let part = draw.number(1, sizes.parts);
            let supplier = supplier(part, draw.number(0, 3), sizes.suppliers);
            let quantity = draw.number(1, 50);
            let (discount, tax) = (draw.number(0, 10), draw.number(0, 8));
            let extended = quantity * price(part);
            let shipped = day + draw.number(1, 121);
            let (committed, received) = (day + draw.number(30, 90), shipped + draw.number(1, 30));
            let returned = if received > NOW { "N" } else { draw.of(&["R", "A"]) };
            let status = if shipped > NOW { "O" } else { "F" };
            open += u64::from(shipped > NOW);
            count += 1;
            total += extended * (100 - discount) * (100 + tax) / 10_000;
            let (extended, instruction, mode) = (money(extended), draw.of(INSTRUCTIONS), draw.of(MODES));
            lines.push(format!(
                "{key},{part},{supplier},{line},{quantity},{extended},0.{discount:02},0.{tax:02},'{returned}','{status}','{}','{}','{}','{instruction}','{mode}','{}'",
                date(shipped),
                date(committed),
                date(received),
                draw.text(2, 5, 44)
            ));
        }
        let status = match open {
            0 => "F",
            open if open == count => "O",
            _ => "P",
        };
        let (priority, clerk) = (draw.of(PRIORITIES), draw.number(1, clerks));
        let comment = match draw.number(0, 80) {
            0 => format!("{} special {} requests", draw.text(1, 2, 30), draw.text(1, 2, 30)),
            _ => draw.text(3, 8, 79),
        };
        let (total, day) = (money(total), date(day));
        orders
            .push(format!("{key},{customer},'{status}',{total},'{day}','{priority}','Clerk#{clerk:09}',0,'{comment}'"));
        if orders.len() == ROWS || number + 1 == sizes.orders {
            for (table, rows) in [("orders", &mut orders), ("lineitem", &mut lines)] {
                let mut inserts = Inserts::new(out, table);
                rows.drain(..).try_for_each(|row| inserts.row(format_args!("{row}")))?;
                inserts.end()?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_dates() {
        for (day, expected) in [
            (0, "1992-01-01"),
            (59, "1992-02-29"),
            (60, "1992-03-01"),
            (366, "1993-01-01"),
            (NOW, "1995-06-17"),
            (LAST_ORDER, "1998-08-02"),
        ] {
            assert_eq!(date(day), expected);
        }
    }

    #[test]
    fn rows_are_the_same_each_time_and_as_many_as_there_should_be() {
        let text = || {
            let mut out = Vec::new();
            write(0.001, &mut out).expect("memory takes it");
            String::from_utf8(out).expect("plain text")
        };
        let (first, second) = (text(), text());
        assert!(first == second);
        let rows = |table: &str| {
            let of = first.lines().filter(|line| line.starts_with(&format!("insert into {table} ")));
            of.map(|line| line.matches("),(").count() + 1).sum::<usize>()
        };
        assert_eq!([rows("region"), rows("nation"), rows("supplier"), rows("part")], [5, 25, 10, 200]);
        assert_eq!([rows("customer"), rows("orders")], [150, 1500]);
        assert!((5000..7000).contains(&rows("lineitem")));
    }
}

//! A table that is written twice: as Markdown for readers and as CSV for programs.

use std::fmt::Write;

pub enum Cell {
    Text(String),
    /// A number and how many decimals it deserves.
    Number(f64, usize),
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.into())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl From<f64> for Cell {
    /// Three significant digits at least.
    fn from(number: f64) -> Cell {
        let decimals = match number.abs() {
            n if n >= 100.0 || n == 0.0 => 0,
            n if n >= 10.0 => 1,
            n if n >= 1.0 => 2,
            _ => 3,
        };
        Cell::Number(number, decimals)
    }
}

#[derive(Default)]
pub struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub fn new(columns: &[&str]) -> Table {
        Table { columns: columns.iter().map(|column| column.to_string()).collect(), rows: Vec::new() }
    }

    pub fn row(&mut self, cells: Vec<Cell>) {
        assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn markdown(&self) -> String {
        let mut out = format!("| {} |\n|", self.columns.join(" | "));
        for column in 0..self.columns.len() {
            let number = self.rows.iter().any(|row| matches!(row[column], Cell::Number(..)));
            out += if number { "---:|" } else { "---|" };
        }
        out.push('\n');
        for row in &self.rows {
            let cells: Vec<String> = row.iter().map(Cell::for_reading).collect();
            writeln!(out, "| {} |", cells.join(" | ")).expect("a String takes all");
        }
        out
    }

    pub fn csv(&self) -> String {
        let line = |cells: Vec<String>| cells.join(",") + "\n";
        let mut out = line(self.columns.iter().map(|column| quoted(column)).collect());
        for row in &self.rows {
            out += &line(row.iter().map(Cell::for_programs).collect());
        }
        out
    }
}

impl Cell {
    fn for_reading(&self) -> String {
        match self {
            Cell::Text(text) => text.clone(),
            Cell::Number(number, decimals) => grouped(*number, *decimals),
        }
    }

    fn for_programs(&self) -> String {
        match self {
            Cell::Text(text) => quoted(text),
            Cell::Number(number, decimals) => format!("{number:.decimals$}"),
        }
    }
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.into() }
}

/// With a comma before every third digit of the whole part.
pub fn grouped(number: f64, decimals: usize) -> String {
    let text = format!("{number:.decimals$}");
    let whole_bytes = text.find('.').unwrap_or(text.len());
    let (whole, rest) = text.split_at(whole_bytes);
    let digits = whole.trim_start_matches('-');
    let mut out = whole[..whole.len() - digits.len()].to_string();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_table_reads_well_and_parses_well() {
        let mut table = Table::new(&["case", "ops/s"]);
        table.row(vec!["GET, \"plain\"".into(), 1_234_567.4.into()]);
        table.row(vec!["SET".into(), 0.25.into()]);
        let markdown = "| case | ops/s |\n|---|---:|\n| GET, \"plain\" | 1,234,567 |\n| SET | 0.250 |\n";
        assert_eq!(table.markdown(), markdown);
        assert_eq!(table.csv(), "case,ops/s\n\"GET, \"\"plain\"\"\",1234567\nSET,0.250\n");
    }

    #[test]
    fn digits_are_grouped_by_three() {
        assert_eq!(grouped(999.0, 0), "999");
        assert_eq!(grouped(-1000.0, 0), "-1,000");
        assert_eq!(grouped(123456.789, 2), "123,456.79");
    }
}

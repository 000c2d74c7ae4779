//! Draws values as a chart of characters, identical to that of Redis.
//!
//! Each value is a column of up to `rows` characters, each with three heights. Below the top of a column are bars. Labels are written downwards.

const COLUMNS: usize = 80;
const ROWS: usize = 4;
const HEIGHTS: &[u8] = b"_o#";

pub fn render(values: &[(u64, String)]) -> String {
    let lowest = values.iter().map(|(value, _)| *value).min().unwrap_or(0);
    let highest = values.iter().map(|(value, _)| *value).max().unwrap_or(0);
    let pieces = values.chunks(COLUMNS).map(|piece| render_piece(piece, lowest, highest));
    pieces.collect::<Vec<_>>().join("\n")
}

fn render_piece(values: &[(u64, String)], lowest: u64, highest: u64) -> String {
    let steps = HEIGHTS.len() * ROWS;
    let range = (highest - lowest).max(1) as f64;
    let step = |value: u64| (((value - lowest) as f64 * steps as f64 / range) as usize).min(steps - 1);
    let column = |row: usize, value: u64| match step(value).checked_sub((ROWS - row - 1) * HEIGHTS.len()) {
        None => b' ',
        Some(height) => HEIGHTS.get(height).copied().unwrap_or(b'|'),
    };
    let mut text = String::new();
    let mut line = |bytes: Vec<u8>| {
        text.push_str(&String::from_utf8_lossy(&bytes));
        text.push('\n');
    };
    (0..ROWS).for_each(|row| line(values.iter().map(|(value, _)| column(row, *value)).collect()));
    line(vec![b' '; values.len()]);
    let deepest = values.iter().map(|(_, label)| label.len()).max().unwrap_or(0);
    for at in 0..deepest {
        line(values.iter().map(|(_, label)| label.as_bytes().get(at).copied().unwrap_or(b' ')).collect());
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_highest_fills_its_column_and_the_lowest_is_a_line() {
        let values = [(50, "2s".to_owned()), (120, "1s".to_owned()), (30, "0s".to_owned())];
        assert_eq!(super::render(&values), " # \n | \n | \n#|_\n   \n210\nsss\n");
        assert_eq!(super::render(&[(7, "0s".to_owned())]), " \n \n \n_\n \n0\ns\n", "a single value has no range");
    }
}

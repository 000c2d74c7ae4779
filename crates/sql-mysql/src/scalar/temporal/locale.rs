//! Names of months and weekdays in the languages of `lc_time_names`: `locales.txt`, unpacked at first use.

use std::collections::HashMap;
use std::sync::LazyLock;

pub const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// From Monday on.
pub const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// The names of one language. Weekdays begin with Monday.
#[derive(Debug, PartialEq, Eq)]
pub struct Locale {
    pub name: &'static str,
    pub months: [&'static str; 12],
    pub short_months: [&'static str; 12],
    pub weekdays: [&'static str; 7],
    pub short_weekdays: [&'static str; 7],
}

pub static ENGLISH: Locale = Locale {
    name: "en_US",
    months: MONTHS,
    short_months: ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"],
    weekdays: WEEKDAYS,
    short_weekdays: ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"],
};

static ALL: LazyLock<HashMap<&'static str, Locale>> = LazyLock::new(|| {
    let text: &'static str = include_str!("locales.txt");
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let mut all = HashMap::new();
    while let Some(names) = lines.next() {
        let months = row(lines.next());
        let short_months = row(lines.next());
        let weekdays = row(lines.next());
        let short_weekdays = row(lines.next());
        for name in names.split(' ') {
            all.insert(name, Locale { name, months, short_months, weekdays, short_weekdays });
        }
    }
    all
});

fn row<const N: usize>(line: Option<&'static str>) -> [&'static str; N] {
    let mut names = line.unwrap_or_default().split('|');
    std::array::from_fn(|_| names.next().expect("the table is whole"))
}

/// Returns the locale of that name, in any case, or `None` if it is unknown.
pub fn locale(name: &str) -> Option<&'static Locale> {
    if name.eq_ignore_ascii_case("en_US") {
        return Some(&ENGLISH);
    }
    ALL.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, locale)| locale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_locale_has_all_names() {
        assert!(ALL.len() > 100);
        assert_eq!(ALL["en_US"], ENGLISH);
        assert_eq!(locale("DE_de").expect("known").months[2], "März");
        assert_eq!(locale("fr_FR").expect("known").short_weekdays, ["lun", "mar", "mer", "jeu", "ven", "sam", "dim"]);
        assert!(ALL.values().all(|locale| locale.months.iter().chain(&locale.weekdays).all(|name| !name.is_empty())));
        assert_eq!(locale("xx_YY"), None);
    }
}

//! The time zone abbreviations of input: the set `Default` of PostgreSQL 16, its only one here.

/// The meaning of an abbreviation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Seconds east of UTC outside summer time.
    Standard(i32),
    /// Seconds east of UTC in summer time.
    Summer(i32),
    /// The offset that the zone of this name had when it last used the abbreviation.
    Zone(&'static str),
}

use Meaning::{Standard, Summer, Zone};

/// Returns the meaning of an abbreviation in lower case.
pub fn meaning(word: &str) -> Option<Meaning> {
    let at = ABBREVIATIONS.binary_search_by(|(known, _)| (*known).cmp(word)).ok()?;
    Some(ABBREVIATIONS[at].1)
}

/// In order of their names.
#[rustfmt::skip]
pub const ABBREVIATIONS: &[(&str, Meaning)] = &[
    ("acdt", Summer(37_800)), ("acsst", Summer(37_800)), ("acst", Standard(34_200)), ("act", Standard(-18_000)),
    ("acwst", Standard(31_500)), ("adt", Summer(-10_800)), ("aedt", Summer(39_600)), ("aesst", Summer(39_600)),
    ("aest", Standard(36_000)), ("aft", Standard(16_200)), ("akdt", Summer(-28_800)), ("akst", Standard(-32_400)),
    ("almst", Summer(25_200)), ("almt", Standard(21_600)), ("amst", Zone("Asia/Yerevan")), ("amt", Standard(-14_400)),
    ("anast", Zone("Asia/Anadyr")), ("anat", Zone("Asia/Anadyr")), ("arst", Zone("America/Argentina/Buenos_Aires")),
    ("art", Zone("America/Argentina/Buenos_Aires")), ("ast", Standard(-14_400)), ("awsst", Summer(32_400)),
    ("awst", Standard(28_800)), ("azost", Summer(0)), ("azot", Standard(-3600)), ("azst", Zone("Asia/Baku")),
    ("azt", Zone("Asia/Baku")), ("bdst", Summer(7200)), ("bdt", Standard(21_600)), ("bnt", Standard(28_800)),
    ("bort", Standard(28_800)), ("bot", Standard(-14_400)), ("bra", Standard(-10_800)), ("brst", Summer(-7200)),
    ("brt", Standard(-10_800)), ("bst", Summer(3600)), ("btt", Standard(21_600)), ("cadt", Summer(37_800)),
    ("cast", Standard(34_200)), ("cct", Standard(28_800)), ("cdt", Summer(-18_000)), ("cest", Summer(7200)),
    ("cet", Standard(3600)), ("cetdst", Summer(7200)), ("chadt", Summer(49_500)), ("chast", Standard(45_900)),
    ("chut", Standard(36_000)), ("ckt", Zone("Pacific/Rarotonga")), ("clst", Summer(-10_800)),
    ("clt", Zone("America/Santiago")), ("cot", Standard(-18_000)), ("cst", Standard(-21_600)),
    ("cxt", Standard(25_200)), ("davt", Zone("Antarctica/Davis")), ("ddut", Standard(36_000)),
    ("easst", Zone("Pacific/Easter")), ("east", Zone("Pacific/Easter")), ("eat", Standard(10_800)),
    ("edt", Summer(-14_400)), ("eest", Summer(10_800)), ("eet", Standard(7200)), ("eetdst", Summer(10_800)),
    ("egst", Summer(0)), ("egt", Standard(-3600)), ("est", Standard(-18_000)), ("fet", Standard(10_800)),
    ("fjst", Summer(46_800)), ("fjt", Standard(43_200)), ("fkst", Zone("Atlantic/Stanley")),
    ("fkt", Zone("Atlantic/Stanley")), ("fnst", Summer(-3600)), ("fnt", Standard(-7200)), ("galt", Standard(-21_600)),
    ("gamt", Standard(-32_400)), ("gest", Zone("Asia/Tbilisi")), ("get", Zone("Asia/Tbilisi")),
    ("gft", Standard(-10_800)), ("gilt", Standard(43_200)), ("gmt", Standard(0)), ("gyt", Zone("America/Guyana")),
    ("hkt", Standard(28_800)), ("hst", Standard(-36_000)), ("ict", Standard(25_200)), ("idt", Summer(10_800)),
    ("iot", Zone("Indian/Chagos")), ("irkst", Zone("Asia/Irkutsk")), ("irkt", Zone("Asia/Irkutsk")),
    ("irt", Standard(12_600)), ("ist", Standard(7200)), ("jayt", Standard(32_400)), ("jst", Standard(32_400)),
    ("kdt", Summer(36_000)), ("kgst", Summer(21_600)), ("kgt", Zone("Asia/Bishkek")),
    ("kost", Zone("Pacific/Kosrae")), ("krast", Zone("Asia/Krasnoyarsk")), ("krat", Zone("Asia/Krasnoyarsk")),
    ("kst", Standard(32_400)), ("lhdt", Zone("Australia/Lord_Howe")), ("lhst", Standard(37_800)),
    ("ligt", Standard(36_000)), ("lint", Zone("Pacific/Kiritimati")), ("lkt", Zone("Asia/Colombo")),
    ("magst", Zone("Asia/Magadan")), ("magt", Zone("Asia/Magadan")), ("mart", Standard(-34_200)),
    ("mawt", Zone("Antarctica/Mawson")), ("mdt", Summer(-21_600)), ("mest", Summer(7200)), ("mesz", Summer(7200)),
    ("met", Standard(3600)), ("metdst", Summer(7200)), ("mez", Standard(3600)), ("mht", Standard(43_200)),
    ("mmt", Standard(23_400)), ("mpt", Standard(36_000)), ("msd", Summer(14_400)), ("msk", Zone("Europe/Moscow")),
    ("mst", Standard(-25_200)), ("must", Summer(18_000)), ("mut", Standard(14_400)), ("mvt", Standard(18_000)),
    ("myt", Standard(28_800)), ("ndt", Summer(-9000)), ("nft", Standard(-12_600)),
    ("novst", Zone("Asia/Novosibirsk")), ("novt", Zone("Asia/Novosibirsk")), ("npt", Standard(20_700)),
    ("nst", Standard(-12_600)), ("nut", Zone("Pacific/Niue")), ("nzdt", Summer(46_800)), ("nzst", Standard(43_200)),
    ("nzt", Standard(43_200)), ("omsst", Zone("Asia/Omsk")), ("omst", Zone("Asia/Omsk")), ("pdt", Summer(-25_200)),
    ("pet", Standard(-18_000)), ("petst", Zone("Asia/Kamchatka")), ("pett", Zone("Asia/Kamchatka")),
    ("pgt", Standard(36_000)), ("pht", Standard(28_800)), ("pkst", Summer(21_600)), ("pkt", Standard(18_000)),
    ("pmdt", Summer(-7200)), ("pmst", Standard(-10_800)), ("pont", Standard(39_600)), ("pst", Standard(-28_800)),
    ("pwt", Standard(32_400)), ("pyst", Summer(-10_800)), ("pyt", Zone("America/Asuncion")),
    ("ret", Standard(14_400)), ("sadt", Summer(37_800)), ("sast", Standard(7200)), ("sct", Standard(14_400)),
    ("sgt", Zone("Asia/Singapore")), ("taht", Standard(-36_000)), ("tft", Standard(18_000)),
    ("tjt", Standard(18_000)), ("tkt", Zone("Pacific/Fakaofo")), ("tmt", Zone("Asia/Ashgabat")),
    ("tot", Standard(46_800)), ("trut", Standard(36_000)), ("tvt", Standard(43_200)), ("uct", Standard(0)),
    ("ulast", Summer(32_400)), ("ulat", Zone("Asia/Ulaanbaatar")), ("ut", Standard(0)), ("utc", Standard(0)),
    ("uyst", Summer(-7200)), ("uyt", Standard(-10_800)), ("uzst", Summer(21_600)), ("uzt", Standard(18_000)),
    ("vet", Zone("America/Caracas")), ("vlast", Zone("Asia/Vladivostok")), ("vlat", Zone("Asia/Vladivostok")),
    ("volt", Zone("Europe/Volgograd")), ("vut", Standard(39_600)), ("wadt", Summer(28_800)),
    ("wakt", Standard(43_200)), ("wast", Standard(25_200)), ("wat", Standard(3600)), ("wdt", Summer(32_400)),
    ("wet", Standard(0)), ("wetdst", Summer(3600)), ("wft", Standard(43_200)), ("wgst", Summer(-7200)),
    ("wgt", Standard(-10_800)), ("xjt", Standard(21_600)), ("yakst", Zone("Asia/Yakutsk")),
    ("yakt", Zone("Asia/Yakutsk")), ("yapt", Standard(36_000)), ("yekst", Summer(21_600)),
    ("yekt", Zone("Asia/Yekaterinburg")), ("z", Standard(0)), ("zulu", Standard(0)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abbreviations_are_in_order() {
        assert!(ABBREVIATIONS.is_sorted_by(|a, b| a.0 < b.0));
        assert_eq!(meaning("pst"), Some(Standard(-28_800)));
        assert_eq!(meaning("xyz"), None);
    }
}

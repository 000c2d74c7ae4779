//! Values that are shown and read again. Answers of the real server are played by the tests of `functions::temporal`.

use proptest::prelude::*;

use super::io::*;
use super::*;

fn contexts() -> Vec<IoContext> {
    let zones = ["UTC", "America/New_York", "Asia/Kathmandu", "<+05>-5", "EST5EDT,M3.2.0,M11.1.0"];
    let formats = [DateFormat::Iso, DateFormat::Sql, DateFormat::German, DateFormat::Postgres];
    // Formats other than ISO are not shown in the order YMD, nor German dates in another than DMY, and so do not read as themselves in it.
    let orders = [DateOrder::Mdy, DateOrder::Dmy];
    let styles =
        [IntervalStyle::Postgres, IntervalStyle::PostgresVerbose, IntervalStyle::SqlStandard, IntervalStyle::Iso8601];
    let mut contexts = Vec::new();
    for (at, date_format) in formats.into_iter().enumerate() {
        for (next, date_order) in orders.into_iter().enumerate() {
            let date_order = if date_format == DateFormat::German { DateOrder::Dmy } else { date_order };
            let zone = PgZone::named(zones[(at * 2 + next) % zones.len()]).expect("zone");
            let interval_style = styles[(at + next) % styles.len()];
            contexts.push(IoContext { date_format, date_order, interval_style, zone, ..IoContext::default() });
        }
    }
    contexts
}

fn text(out: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut bytes = Vec::new();
    out(&mut bytes);
    String::from_utf8(bytes).expect("UTF-8")
}

proptest! {
    #[test]
    fn a_shown_date_reads_as_itself(days in -2_451_545i32..2_145_031_949) {
        for io in contexts() {
            let shown = text(|out| date_out(days, &io, out));
            prop_assert_eq!(date_in(&shown, &io), Ok(days), "{}", shown);
        }
    }

    #[test]
    fn a_shown_time_reads_as_itself(micros in 0..=MICROS_PER_DAY, west in -57_599i32..57_600) {
        let io = IoContext::default();
        let shown = text(|out| time_out(micros, out));
        prop_assert_eq!(time_in(&shown, -1, &io), Ok(micros), "{}", shown);
        let time = TimeTz { micros, west };
        let shown = text(|out| timetz_out(time, out));
        prop_assert_eq!(timetz_in(&shown, -1, &io), Ok(time), "{}", shown);
        let crate::value::Value::Bytes(bytes) = time.to_value() else { panic!() };
        prop_assert_eq!(TimeTz::of_bytes(&bytes), time);
    }

    #[test]
    fn a_shown_timestamp_reads_as_itself(micros in TIMESTAMP_MIN..TIMESTAMP_END) {
        for io in contexts() {
            let shown = text(|out| timestamp_out(micros, &io, out));
            prop_assert_eq!(timestamp_in(&shown, -1, &io), Ok(micros), "{}", shown);
        }
    }

    #[test]
    fn a_shown_instant_reads_as_itself(micros in -60_000_000_000_000_000i64..TIMESTAMP_END - MICROS_PER_DAY) {
        for io in contexts() {
            let io = IoContext { date_format: DateFormat::Iso, ..io };
            let shown = text(|out| timestamptz_out(micros, &io, out));
            prop_assert_eq!(timestamptz_in(&shown, -1, &io), Ok(micros), "{}", shown);
        }
    }

    #[test]
    fn a_shown_interval_reads_as_itself(months: i32, days: i32, micros: i64) {
        for io in contexts() {
            let span = Span { months, days, micros };
            let shown = text(|out| interval_out(span, &io, out));
            // The least numbers have no positive counterpart, which these forms need.
            let is_least = months == i32::MIN || days == i32::MIN || micros == i64::MIN;
            if !is_least {
                prop_assert_eq!(interval_in(&shown, -1, &io), Ok(span), "{}", shown);
            }
        }
    }

    #[test]
    fn binary_forms_read_as_themselves(days in -2_451_545i32..2_145_031_949, micros in TIMESTAMP_MIN..TIMESTAMP_END, months: i32) {
        let bytes = |out: &dyn Fn(&mut Vec<u8>)| { let mut bytes = Vec::new(); out(&mut bytes); bytes };
        prop_assert_eq!(date_recv(&bytes(&|out| date_send(days, out))), Ok(days));
        prop_assert_eq!(timestamp_recv(&bytes(&|out| timestamp_send(micros, out)), -1), Ok(micros));
        let span = Span { months, days, micros };
        prop_assert_eq!(interval_recv(&bytes(&|out| interval_send(span, out)), -1), Ok(span));
    }

    #[test]
    fn no_text_panics(text in "[-+0-9:./ a-zA-ZT@é,_]{0,40}") {
        for io in contexts() {
            let _ = date_in(&text, &io);
            let _ = time_in(&text, 3, &io);
            let _ = timetz_in(&text, -1, &io);
            let _ = timestamp_in(&text, 0, &io);
            let _ = timestamptz_in(&text, -1, &io);
            let _ = interval_in(&text, -1, &io);
        }
    }
}

#[test]
fn timetz_orders_by_instant_and_then_by_zone() {
    let value = |micros, west| match (TimeTz { micros, west }).to_value() {
        crate::value::Value::Bytes(bytes) => bytes.to_vec(),
        _ => panic!(),
    };
    assert!(value(0, -3600) < value(0, 0));
    assert!(value(MICROS_PER_HOUR, -3600) < value(0, 0));
    assert!(value(0, 0) < value(0, 1));
}

use super::parse;

fn shown(text: &str) -> String {
    parse(text).unwrap_or_else(|error| panic!("{text}: {}", error.message)).to_string()
}

fn message(text: &str) -> String {
    parse(text).unwrap_err().message.to_string()
}

#[test]
fn a_path_is_shown_as_the_real_server_shows_it() {
    for (text, expected) in [
        ("lax $.a.**{2 to 5}[last, 1 to 3].\"b c\"", "$.\"a\".**{2 to 5}[last,1 to 3].\"b c\""),
        (
            "strict $ ? (@.a == 1 || !(@.x >= 123) && @.b <> 7)",
            "strict $?(@.\"a\" == 1 || !(@.\"x\" >= 123) && @.\"b\" != 7)",
        ),
        ("1 + ($.a.b + 2).c", "(1 + ($.\"a\".\"b\" + 2).\"c\")"),
        ("$.a/+-1", "($.\"a\" / -1)"),
        ("$ ? ((@ > 1) is unknown).type()", "$?((@ > 1) is unknown).type()"),
        ("$ ? (@ like_regex \"a\" flag \"isi\")", "$?(@ like_regex \"a\" flag \"is\")"),
        ("(1).type()", "(1).type()"),
        ("0x42F", "1071"),
    ] {
        assert_eq!(shown(text), expected);
        assert_eq!(shown(&shown(text)), expected);
    }
}

#[test]
fn errors_name_the_token_that_the_real_server_names() {
    for (text, expected) in [
        ("last", "LAST is allowed only in array subscripts"),
        ("@ + 1", "@ is not allowed in root expressions"),
        ("$ && $", "syntax error at or near \"&&\" of jsonpath input"),
        ("$.a b", "syntax error at end of jsonpath input"),
        ("1a", "trailing junk after numeric literal at or near \"1a\" of jsonpath input"),
        ("0755", "syntax error at end of jsonpath input"),
        ("$.datetime()", "jsonpath item method .datetime() is not supported"),
    ] {
        assert_eq!(message(text), expected, "{text}");
    }
}

#[test]
fn the_height_of_a_path_is_bounded() {
    for text in ["(".repeat(1_000_000), "-".repeat(1_000_000), "!(".repeat(500_000), "$?(".repeat(500_000)] {
        assert_eq!(parse(&text).unwrap_err().state, "54001");
    }
    assert_eq!(parse(&("$".to_owned() + &"+1".repeat(500_000))).unwrap_err().state, "54001");
    assert!(parse(&("$".to_owned() + &".a".repeat(500_000))).is_ok());
}

/// The output has brackets that its input had not.
#[test]
fn the_highest_path_that_is_read_can_be_read_again() {
    let forms: [fn(usize) -> String; 5] = [
        |levels| "-".repeat(levels) + "$",
        |levels| "$".to_owned() + &"+1".repeat(levels),
        |levels| "1 * (".repeat(levels) + "$" + &")".repeat(levels),
        |levels| "!(".repeat(levels) + "$ == 1" + &")".repeat(levels),
        |levels| "$".to_owned() + &"?(-(1 + @".repeat(levels) + ") == 1)".repeat(levels).as_str(),
    ];
    for form in forms {
        let highest = (1..).take_while(|&levels| parse(&form(levels)).is_ok()).last().expect("one level is read");
        assert!(highest >= 20, "{}", form(highest));
        let printed = shown(&form(highest));
        assert_eq!(shown(&printed), printed);
    }
}

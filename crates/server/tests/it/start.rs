//! Errors that keep the server from starting, and the lists it prints.

use crate::support::{Folder, assert_fails, beluga, run};

#[test]
fn a_misspelt_flag_names_its_neighbour() {
    assert_fails(&run(&["--memroy", "1gb"]), 64, &["--memroy", "did you mean memory?"]);
}

#[test]
fn a_bad_value_names_its_place_and_what_is_expected() {
    assert_fails(&run(&["--memory", "much"]), 78, &["--memory", "expected a size like 512mb", "'much'"]);
    let output = beluga(&["settings"]).env("BELUGA_LOG_LEVEL", "loud").output().unwrap();
    assert_fails(&output, 78, &["BELUGA_LOG_LEVEL", "one of error, warn, info, debug"]);
}

#[test]
fn a_settings_file_is_checked_whole() {
    let folder = Folder::new("file");
    let file = folder.join("beluga.toml");
    std::fs::write(&file, "[log]\nlevle = \"info\"\n").unwrap();
    assert_fails(
        &run(&["settings", "--config", &file]),
        78,
        &[&file, "log_levle: unknown setting", "did you mean log_level?"],
    );
    assert_fails(&run(&["settings", "--config", "/no/such/file"]), 78, &["/no/such/file", "--config"]);
}

#[test]
fn an_unknown_command_is_refused() {
    assert_fails(&run(&["swim"]), 64, &["'swim'", "beluga --help"]);
}

#[test]
fn a_word_too_many_is_named_with_its_command() {
    assert_fails(&run(&["backup", "data", "copy"]), 64, &["backup: unexpected argument 'data'", "--from and --to"]);
    assert_fails(&run(&["restore", "copy", "--to", "new"]), 64, &["restore: unexpected argument 'copy'"]);
    assert_fails(&run(&["check", "here", "there"]), 64, &["check: unexpected argument 'there'"]);
}

#[test]
fn help_and_settings_show_every_setting() {
    let help = String::from_utf8(run(&["--help"]).stdout).unwrap();
    let settings = beluga(&["settings", "--memory=1gb"]).env("BELUGA_LOG_LEVEL", "info").output().unwrap();
    let settings = String::from_utf8(settings.stdout).unwrap();
    assert!(help.contains("--memory <size>") && help.contains("beluga backup"), "{help}");
    assert!(settings.contains("memory = \"1gb\"   (flag)"), "{settings}");
    assert!(settings.contains("log_level = \"info\"   (environment)"));
    assert!(settings.contains("data = \"./beluga-data\"   (default)"));
    let version = String::from_utf8(run(&["--version"]).stdout).unwrap();
    assert!(version.starts_with("beluga 0."), "{version}");
}

#[test]
fn nobody_has_to_read_to_the_end() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = beluga(&["settings"]).stdout(writer).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

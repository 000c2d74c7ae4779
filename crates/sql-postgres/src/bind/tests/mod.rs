//! Statements and their results, which are PostgreSQL's own.

mod world;

use world::World;

#[test]
fn the_script_of_the_environment_runs() {
    let Ok(path) = std::env::var("BIND_SCRIPT") else { return };
    let text = std::fs::read_to_string(path).expect("the script can be read");
    let mut world = World::new();
    for line in text.split("\n;;\n") {
        if line.trim().is_empty() {
            continue;
        }
        println!("\n> {}", line.trim().replace('\n', " "));
        for line in world.run(line) {
            println!("{line}");
        }
    }
}

//! The text of the parameter `client-output-buffer-limit`: hard limit, soft limit and seconds for each class of clients. Limits of 0 do not exist.

use crate::number::memory_size;

/// The classes in the order in which CONFIG GET shows them. `replica` is another name of `slave`.
const CLASSES: [&str; 3] = ["normal", "slave", "pubsub"];

pub const DEFAULT: &str = "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60";

/// Hard limit, soft limit, seconds.
pub type ClassLimits = [u64; 3];

/// Returns the text of the parameter after a change that names some of the classes. The error is Redis'.
pub fn changed(before: &str, change: &str) -> Result<String, String> {
    let error = |what: &str| Err(format!("{what} in buffer limit configuration."));
    let words: Vec<&str> = change.split_ascii_whitespace().collect();
    if !words.len().is_multiple_of(4) || words.is_empty() {
        return error("Wrong number of arguments");
    }
    let mut limits = read(before);
    for four in words.chunks_exact(4) {
        let class = four[0].to_ascii_lowercase();
        let class = if class == "replica" { "slave" } else { &class };
        let Some(at) = CLASSES.iter().position(|known| *known == class) else {
            return error("Invalid client class specified");
        };
        let number = |text: &str| u64::try_from(memory_size(text)?).ok();
        let seconds = four[3].parse().ok().filter(|seconds| *seconds <= i32::MAX as u64);
        let (Some(hard), Some(soft), Some(seconds)) = (number(four[1]), number(four[2]), seconds) else {
            return error("Error in hard, soft or soft_seconds setting");
        };
        limits[at] = [hard, soft, seconds];
    }
    let shown =
        CLASSES.iter().zip(limits).map(|(class, [hard, soft, seconds])| format!("{class} {hard} {soft} {seconds}"));
    Ok(shown.collect::<Vec<_>>().join(" "))
}

/// Reads the limits from the text of the parameter.
pub fn read(text: &str) -> [ClassLimits; 3] {
    let numbers: Vec<u64> = text.split(' ').filter_map(|word| word.parse().ok()).collect();
    let mut limits = [[0; 3]; 3];
    limits.iter_mut().zip(numbers.chunks_exact(3)).for_each(|(limits, three)| limits.copy_from_slice(three));
    limits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_some_classes_keeps_the_others() {
        assert_eq!(changed(DEFAULT, DEFAULT).as_deref(), Ok(DEFAULT));
        let changed_text = changed(DEFAULT, "normal 5 1 1 PUBSUB 1kb 2k 3 replica 1 2 3");
        assert_eq!(changed_text.as_deref(), Ok("normal 5 1 1 slave 1 2 3 pubsub 1024 2000 3"));
    }

    #[test]
    fn bad_limits_have_the_errors_of_redis() {
        let tail = " in buffer limit configuration.";
        for (change, error) in [
            ("pubsub", "Wrong number of arguments"),
            ("", "Wrong number of arguments"),
            ("nope 1 1 1", "Invalid client class specified"),
            ("master 1 1 1", "Invalid client class specified"),
            ("pubsub 1mb x 1", "Error in hard, soft or soft_seconds setting"),
            ("pubsub 1mb 1mb -1", "Error in hard, soft or soft_seconds setting"),
            ("pubsub -1 0 0", "Error in hard, soft or soft_seconds setting"),
        ] {
            assert_eq!(changed(DEFAULT, change), Err(format!("{error}{tail}")), "{change}");
        }
    }
}

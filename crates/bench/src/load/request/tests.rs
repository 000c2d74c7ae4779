use super::*;

#[test]
fn requests_are_what_the_general_encoder_writes() {
    let mut random = Prng::new(1);
    let requests = Requests::new("key_", 5, false, &mut random);
    for key in [0, 7, 10, 12_345, u64::MAX] {
        let name = format!("key_{key}");
        let mut out = Vec::new();
        requests.get(&mut out, key);
        assert_eq!(out, command(&["GET", &name]));
        out.clear();
        requests.set(&mut out, key, &mut random);
        assert_eq!(out, command(&["SET", &name, "xxxxx"]));
    }
    assert_eq!(PING, command(&["PING"]));
}

#[test]
fn numbers_of_a_command_have_twelve_digits_each() {
    let template = Template::new(&["HSET", "h", "field:__rand_int__", "__rand_int__"]);
    let (mut out, mut next) = (b"before".to_vec(), 41);
    template.write(&mut out, || {
        next += 1;
        next
    });
    assert_eq!(out[6..], command(&["HSET", "h", "field:000000000042", "000000000043"]));
}

#[test]
fn random_values_have_the_length_and_differ() {
    let mut random = Prng::new(1);
    let requests = Requests::new("", 128, true, &mut random);
    let (mut first, mut second) = (Vec::new(), Vec::new());
    requests.set(&mut first, 1, &mut random);
    requests.set(&mut second, 1, &mut random);
    assert_eq!(first.len(), second.len());
    assert_ne!(first, second);
    assert!(first.ends_with(b"\r\n"));
}

//! The parameters of COM_STMT_EXECUTE, with names and without, and the attributes of COM_QUERY. The first byte gives the number of parameters, the second those that arrived in pieces before.
#![no_main]

use door_mysql::fuzzed::{Reader, read, read_attributes, read_named};
use libfuzzer_sys::fuzz_target;
use sql_mysql::types::Charset;

fuzz_target!(|data: &[u8]| {
    let [count, pieces, input @ ..] = data else { return };
    let count = usize::from(*count % 40);
    let charset = [Charset::Utf8, Charset::Latin1, Charset::Binary][usize::from(*pieces) % 3];
    let long = |at: usize| (at < 8 && pieces & (1 << at) != 0).then(|| input[..input.len().min(at)].to_vec());
    let mut long: Vec<Option<Vec<u8>>> = (0..count).map(long).collect();
    let (mut bound, mut reader) = (Vec::new(), Reader(input));
    let first = read((&mut reader, None), &mut bound, &mut long, charset);
    if let Some(values) = first {
        assert_eq!(values.len(), count);
        // Once more, with the kinds that are known now.
        let _ = read((&mut reader, None), &mut bound, &mut vec![None; count], charset);
    }
    if let Some((values, _)) = read_named((&mut Reader(input), None), &mut Vec::new(), &mut vec![None; count], charset) {
        assert_eq!(values.len(), count);
    }
    let _ = read_attributes(&mut Reader(input), charset);
});

//! Statements over a table larger than memory: they are suspended on absent pages, and answer as they would have without.

use super::client::Statement;
use super::plans::{get, int, pick, placeholder, run, string};
use super::*;

/// A quarter of the table's size.
const FRAME_BYTES: u64 = 1 << 20;
const ROWS: i64 = 12_000;

fn world() -> (Served, Client) {
    let served = serve_in(FRAME_BYTES, Options::default());
    let mut client = served.session();
    client.done(2, "create table t (id int primary key, k int, pad varchar(400), key (k))");
    for from in (0..ROWS).step_by(1000) {
        let rows = format!("c(n) as (select {from} + 1 union all select n + 1 from c where n < {from} + 1000)");
        client.done(2, &format!("insert into t with recursive {rows} select n, n * 7, repeat('x', 300) from c"));
    }
    (served, client)
}

/// Ids far from each other and from those of other rounds, so that most are on evicted pages.
fn ids(round: i64) -> impl Iterator<Item = i64> {
    (60 * round..60 * round + 60).map(|step| step * 7_919 % ROWS + 1)
}

#[test]
fn texts_arguments_plans_and_single_statements_leave_for_pages_and_are_answered() {
    let (served, mut client) = world();
    let left = |served: &Served, since: &mut u64| {
        let now = served.door.stats().suspensions.get();
        now - std::mem::replace(since, now)
    };
    let mut since = served.door.stats().suspensions.get();
    for id in ids(1) {
        assert_eq!(client.done(2, &format!("select k from t where id = {id}")).numbers(), [id * 7]);
    }
    assert!(left(&served, &mut since) > 10, "text");
    for id in ids(2) {
        let statement = Statement::new("select k from t where id between ? and ? + 2 order by id").int(id).int(id);
        let answer = client.execute(2, &statement);
        assert_eq!(answer.numbers(), (id..=(id + 2).min(ROWS)).map(|id| id * 7).collect::<Vec<_>>());
    }
    assert!(left(&served, &mut since) > 10, "arguments");
    let point = pick(&get(&[&[("id", placeholder(2))]]), &[string("k")]);
    for id in ids(3) {
        assert_eq!(run(&mut client, &point, &[int(id)]).numbers(), [id * 7]);
    }
    assert!(left(&served, &mut since) > 10, "plans");
    for (nth, id) in ids(4).enumerate() {
        let statement = Statement::new("select k from d.t where id = ?").int(id);
        assert_eq!(client.execute(1 << 63 | nth as u64, &statement).numbers(), [id * 7]);
    }
    assert!(left(&served, &mut since) > 10, "single statements");
    for id in ids(5) {
        let answer = client.done(2, &format!("update t set pad = concat(pad, 'y') where id = {id}"));
        assert_eq!(answer.affected, Some(1));
    }
    assert!(left(&served, &mut since) > 10, "changes");
    assert_eq!(client.done(2, "select count(*) from t where length(pad) = 301").numbers(), [60]);
    served.stop();
}

#[test]
fn many_sessions_are_away_at_once_and_each_gets_its_own_answers() {
    let (served, mut client) = world();
    let sids = 10..42u64;
    sids.clone().for_each(|sid| client.begin(sid));
    for round in 0..20 {
        let id = |sid: u64| (sid as i64 * 977 + round * 3_331) % ROWS + 1;
        for sid in sids.clone() {
            client.say(sid, &Statement::new("select k from d.t where id = ?").int(id(sid)));
            // A token offer wakes it before its page has arrived.
            client.send(sid, 112, b"\x08\x01");
        }
        let mut answers: Vec<_> = sids.clone().map(|sid| (sid, client::Answer::default())).collect();
        let mut open = answers.len();
        while open > 0 {
            let frame = client.receive();
            let (_, answer) = answers.iter_mut().find(|(sid, _)| *sid == frame.sid).unwrap();
            open -= usize::from(answer.take(&frame));
        }
        for (sid, answer) in answers {
            assert_eq!((answer.error.clone(), answer.numbers()), (None, vec![id(sid) * 7]));
        }
    }
    assert!(served.door.stats().suspensions.get() > 200);
    served.stop();
}

#[test]
fn who_is_away_can_be_killed_and_lost() {
    let (served, mut client) = world();
    let sids = 10..30u64;
    sids.clone().for_each(|sid| client.begin(sid));
    for (nth, id) in ids(6).enumerate() {
        let sid = 10 + nth as u64 % 20;
        client.say(sid, &Statement::new("select k from d.t where id = ?").int(id));
        client.send(sid, 111, &[8, 1, 16, sid as u8]);
        // It was killed, or it was faster; the session continues in both cases.
        let answer = client.answer(sid);
        assert!(answer.code() == 1317 || answer.numbers() == [id * 7], "{answer:?}");
    }
    for (sid, id) in sids.clone().zip(ids(7)) {
        assert_eq!(client.done(sid, &format!("select k from d.t where id = {id}")).numbers(), [id * 7]);
    }
    for (sid, id) in sids.zip(ids(8)) {
        client.say(sid, &Statement::new("update d.t set k = -1 where id = ?").int(id + 1));
        client.say(sid, &Statement::new("select k from d.t where id = ?").int(id + 5_000));
    }
    drop(client);
    eventually("every session ends, those that are suspended too", || served.door.stats().sessions.get() == 0);
    served.stop();
}

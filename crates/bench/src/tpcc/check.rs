//! The consistency conditions of clause 3.3.2, each as a query that must return no row. The eleventh applies to freshly filled tables only.

use crate::sql::client::{Client, Failure};

/// The number of a condition, and a query for its violations.
const CONDITIONS: [(u32, &str); 11] = [
    (1, "select w_id from warehouse where w_ytd <> (select sum(d_ytd) from district where d_w_id = w_id)"),
    (
        2,
        "select d_w_id, d_id from district where d_next_o_id - 1 <> (select max(o_id) from orders where o_w_id = d_w_id and o_d_id = d_id) \
         or d_next_o_id - 1 < (select max(no_o_id) from new_order where no_w_id = d_w_id and no_d_id = d_id)",
    ),
    (
        3,
        "select no_w_id, no_d_id from new_order group by no_w_id, no_d_id having max(no_o_id) - min(no_o_id) + 1 <> count(*)",
    ),
    (
        4,
        "select o.w, o.d from (select o_w_id w, o_d_id d, sum(o_ol_cnt) n from orders group by o_w_id, o_d_id) o \
         join (select ol_w_id w, ol_d_id d, count(*) n from order_line group by ol_w_id, ol_d_id) l on o.w = l.w and o.d = l.d where o.n <> l.n",
    ),
    (
        5,
        "select o_w_id, o_d_id, o_id from orders left join new_order on no_w_id = o_w_id and no_d_id = o_d_id and no_o_id = o_id \
         where (o_carrier_id is null) <> (no_o_id is not null)",
    ),
    (
        6,
        "select o_w_id, o_d_id, o_id from orders left join (select ol_w_id w, ol_d_id d, ol_o_id o, count(*) n from order_line group by ol_w_id, ol_d_id, ol_o_id) l \
         on l.w = o_w_id and l.d = o_d_id and l.o = o_id where coalesce(l.n, 0) <> o_ol_cnt",
    ),
    (
        7,
        "select ol_w_id, ol_d_id, ol_o_id from order_line join orders on o_w_id = ol_w_id and o_d_id = ol_d_id and o_id = ol_o_id \
         where (ol_delivery_d is null) <> (o_carrier_id is null)",
    ),
    (8, "select w_id from warehouse where w_ytd <> (select sum(h_amount) from history where h_w_id = w_id)"),
    (
        9,
        "select d_w_id, d_id from district join (select h_w_id w, h_d_id d, sum(h_amount) n from history group by h_w_id, h_d_id) h on h.w = d_w_id and h.d = d_id where d_ytd <> h.n",
    ),
    (
        10,
        "select c_w_id, c_d_id, c_id from customer \
          left join (select o_w_id w, o_d_id d, o_c_id c, sum(ol_amount) n from orders join order_line on ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id \
          where ol_delivery_d is not null group by o_w_id, o_d_id, o_c_id) b on b.w = c_w_id and b.d = c_d_id and b.c = c_id \
          left join (select h_c_w_id w, h_c_d_id d, h_c_id c, sum(h_amount) n from history group by h_c_w_id, h_c_d_id, h_c_id) p on p.w = c_w_id and p.d = c_d_id and p.c = c_id \
          where c_balance <> coalesce(b.n, 0) - coalesce(p.n, 0)",
    ),
    (
        12,
        "select c_w_id, c_d_id, c_id from customer \
          left join (select o_w_id w, o_d_id d, o_c_id c, sum(ol_amount) n from orders join order_line on ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id \
          where ol_delivery_d is not null group by o_w_id, o_d_id, o_c_id) b on b.w = c_w_id and b.d = c_d_id and b.c = c_id \
          where c_balance + c_ytd_payment <> coalesce(b.n, 0)",
    ),
];

/// Returns the violations of the conditions.
pub fn check(client: &mut Client) -> Result<Vec<String>, Failure> {
    let mut wrong = Vec::new();
    for (number, sql) in CONDITIONS {
        let found = client.ask(sql)?.rows;
        if let Some(first) = found.first() {
            wrong.push(format!("condition {number}: {} rows, the first {first:?}", found.len()));
        }
    }
    Ok(wrong)
}

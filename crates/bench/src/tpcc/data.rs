//! The nine tables and their initial content (clauses 1.3 and 4.3.3 of the specification).

use std::fmt::Write as _;

use stdx::prng::Prng;

use crate::sql::client::{Client, Failure};

pub const DISTRICTS: u32 = 10;
/// Rows per INSERT.
const BATCH: usize = 200;

pub const TABLES: [&str; 9] = [
    "create table warehouse (w_id int not null, w_name varchar(10), w_street_1 varchar(20), w_street_2 varchar(20), w_city varchar(20), w_state char(2), w_zip char(9), w_tax decimal(4,4), \
     w_ytd decimal(12,2), primary key (w_id))",
    "create table district (d_id int not null, d_w_id int not null, d_name varchar(10), d_street_1 varchar(20), d_street_2 varchar(20), d_city varchar(20), d_state char(2), d_zip char(9), \
     d_tax decimal(4,4), d_ytd decimal(12,2), d_next_o_id int, primary key (d_w_id, d_id))",
    "create table customer (c_id int not null, c_d_id int not null, c_w_id int not null, c_first varchar(16), c_middle char(2), c_last varchar(16), c_street_1 varchar(20), c_street_2 varchar(20), \
     c_city varchar(20), c_state char(2), c_zip char(9), c_phone char(16), c_since datetime, c_credit char(2), c_credit_lim decimal(12,2), c_discount decimal(4,4), c_balance decimal(12,2), \
     c_ytd_payment decimal(12,2), c_payment_cnt int, c_delivery_cnt int, c_data varchar(500), primary key (c_w_id, c_d_id, c_id), key by_name (c_w_id, c_d_id, c_last, c_first))",
    "create table history (h_c_id int, h_c_d_id int, h_c_w_id int, h_d_id int, h_w_id int, h_date datetime, h_amount decimal(6,2), h_data varchar(24))",
    "create table new_order (no_o_id int not null, no_d_id int not null, no_w_id int not null, primary key (no_w_id, no_d_id, no_o_id))",
    "create table orders (o_id int not null, o_d_id int not null, o_w_id int not null, o_c_id int, o_entry_d datetime, o_carrier_id int, o_ol_cnt int, o_all_local int, \
     primary key (o_w_id, o_d_id, o_id), key by_customer (o_w_id, o_d_id, o_c_id, o_id))",
    "create table order_line (ol_o_id int not null, ol_d_id int not null, ol_w_id int not null, ol_number int not null, ol_i_id int, ol_supply_w_id int, ol_delivery_d datetime, ol_quantity int, \
     ol_amount decimal(6,2), ol_dist_info char(24), primary key (ol_w_id, ol_d_id, ol_o_id, ol_number))",
    "create table item (i_id int not null, i_im_id int, i_name varchar(24), i_price decimal(5,2), i_data varchar(50), primary key (i_id))",
    "create table stock (s_i_id int not null, s_w_id int not null, s_quantity int, s_dist_01 char(24), s_dist_02 char(24), s_dist_03 char(24), s_dist_04 char(24), s_dist_05 char(24), \
     s_dist_06 char(24), s_dist_07 char(24), s_dist_08 char(24), s_dist_09 char(24), s_dist_10 char(24), s_ytd int, s_order_cnt int, s_remote_cnt int, s_data varchar(50), primary key (s_w_id, s_i_id))",
];

/// Row counts. `scale` makes tests small; 1 is the specification's size.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub warehouses: u32,
    pub items: u32,
    pub customers: u32,
}

impl Size {
    pub fn new(warehouses: u32, scale: u32) -> Size {
        Size { warehouses, items: 100_000 / scale, customers: 3_000 / scale }
    }

    /// Orders below this number are delivered at first.
    fn delivered(self) -> u32 {
        self.customers * 7 / 10
    }
}

/// Draws the specification's random values.
pub struct Random {
    prng: Prng,
    /// The constants of NURand (2.1.6), drawn once for a run.
    constants: (u32, u32, u32),
}

impl Random {
    pub fn new(seed: u64, run: u64) -> Random {
        let mut of_run = Prng::new(run);
        let mut draw = |below: u64| (of_run.next_u64() % below) as u32;
        let constants = (draw(256), draw(1024), draw(8192));
        Random { prng: Prng::new(seed), constants }
    }

    /// From `low` to `high`, both included.
    pub fn number(&mut self, low: u32, high: u32) -> u32 {
        low + (self.prng.next_u64() % u64::from(high - low + 1)) as u32
    }

    fn uneven(&mut self, a: u32, c: u32, low: u32, high: u32) -> u32 {
        let (spread, base) = (self.number(0, a), self.number(low, high));
        ((spread | base).wrapping_add(c)) % (high - low + 1) + low
    }

    pub fn customer(&mut self, size: Size) -> u32 {
        self.uneven(1023, self.constants.1, 1, size.customers)
    }

    pub fn item(&mut self, size: Size) -> u32 {
        self.uneven(8191, self.constants.2, 1, size.items)
    }

    /// A last name that customers of this size have.
    pub fn last_name(&mut self, size: Size) -> String {
        last_name(self.uneven(255, self.constants.0, 0, size.customers.min(1000) - 1))
    }

    fn text(&mut self, low: u32, high: u32) -> String {
        let len = self.number(low, high);
        (0..len).map(|_| char::from(b'a' + self.number(0, 25) as u8)).collect()
    }

    fn zip(&mut self) -> String {
        format!("{:04}11111", self.number(0, 9999))
    }

    /// One in ten contains ORIGINAL.
    fn data(&mut self) -> String {
        let text = self.text(26, 50);
        if self.number(1, 10) == 1 { format!("{}original", &text[..18]) } else { text }
    }

    fn address(&mut self) -> String {
        let (one, two, city, state) = (self.text(10, 20), self.text(10, 20), self.text(10, 20), self.text(2, 2));
        format!("'{one}','{two}','{city}','{state}','{}'", self.zip())
    }
}

pub fn last_name(number: u32) -> String {
    const PARTS: [&str; 10] = ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
    [number / 100 % 10, number / 10 % 10, number % 10].iter().map(|part| PARTS[*part as usize]).collect()
}

/// Rows on their way into a table.
struct Batch<'c> {
    client: &'c mut Client,
    table: &'static str,
    sql: String,
    rows: usize,
}

impl<'c> Batch<'c> {
    fn new(client: &'c mut Client, table: &'static str) -> Batch<'c> {
        Batch { client, table, sql: String::new(), rows: 0 }
    }

    fn row(&mut self, values: std::fmt::Arguments<'_>) -> Result<(), Failure> {
        if self.rows == 0 {
            self.sql = format!("insert into {} values ", self.table);
        }
        let comma = if self.rows == 0 { "" } else { "," };
        write!(self.sql, "{comma}({values})").expect("text grows");
        self.rows += 1;
        if self.rows == BATCH { self.send() } else { Ok(()) }
    }

    fn send(&mut self) -> Result<(), Failure> {
        if std::mem::take(&mut self.rows) > 0 {
            self.client.ask(&self.sql)?;
        }
        Ok(())
    }
}

pub fn fill(client: &mut Client, size: Size, seed: u64) -> Result<(), Failure> {
    for table in TABLES {
        client.ask(table)?;
    }
    let mut random = Random::new(seed, seed);
    let mut items = Batch::new(client, "item");
    for item in 1..=size.items {
        let (image, name, price, data) =
            (random.number(1, 10_000), random.text(14, 24), random.number(100, 10_000), random.data());
        items.row(format_args!("{item},{image},'{name}',{}.{:02},'{data}'", price / 100, price % 100))?;
    }
    items.send()?;
    (1..=size.warehouses).try_for_each(|warehouse| fill_warehouse(client, size, warehouse, &mut random))
}

fn fill_warehouse(client: &mut Client, size: Size, w: u32, random: &mut Random) -> Result<(), Failure> {
    let (name, address, tax) = (random.text(6, 10), random.address(), random.number(0, 2000));
    // Each customer has paid 10.00 so far.
    let ytd = size.customers * 10;
    client.ask(&format!("insert into warehouse values ({w},'{name}',{address},0.{tax:04},{}.00)", ytd * DISTRICTS))?;
    let mut stock = Batch::new(client, "stock");
    for item in 1..=size.items {
        let (quantity, data) = (random.number(10, 100), random.data());
        let dists: Vec<String> = (0..10).map(|_| format!("'{}'", random.text(24, 24))).collect();
        stock.row(format_args!("{item},{w},{quantity},{},0,0,0,'{data}'", dists.join(",")))?;
    }
    stock.send()?;
    for d in 1..=DISTRICTS {
        let (name, address, tax) = (random.text(6, 10), random.address(), random.number(0, 2000));
        let next = size.customers + 1;
        client.ask(&format!("insert into district values ({d},{w},'{name}',{address},0.{tax:04},{ytd}.00,{next})"))?;
        fill_customers(client, size, (w, d), random)?;
        fill_orders(client, size, (w, d), random)?;
    }
    Ok(())
}

fn fill_customers(client: &mut Client, size: Size, (w, d): (u32, u32), random: &mut Random) -> Result<(), Failure> {
    let mut customers = Batch::new(client, "customer");
    for c in 1..=size.customers {
        let last = if c <= 1000 { last_name(c - 1) } else { random.last_name(size) };
        let (first, address, phone) = (random.text(8, 16), random.address(), random.number(0, 999_999_999));
        let credit = if random.number(1, 10) == 1 { "BC" } else { "GC" };
        let (discount, data) = (random.number(0, 5000), random.text(300, 500));
        customers.row(format_args!(
            "{c},{d},{w},'{first}','OE','{last}',{address},'{phone:016}',now(),'{credit}',50000.00,0.{discount:04},-10.00,10.00,1,0,'{data}'"
        ))?;
    }
    customers.send()?;
    let mut history = Batch::new(client, "history");
    for c in 1..=size.customers {
        let data = random.text(12, 24);
        history.row(format_args!("{c},{d},{w},{d},{w},now(),10.00,'{data}'"))?;
    }
    history.send()
}

fn fill_orders(client: &mut Client, size: Size, (w, d): (u32, u32), random: &mut Random) -> Result<(), Failure> {
    let mut buyers: Vec<u32> = (1..=size.customers).collect();
    for at in (1..buyers.len()).rev() {
        buyers.swap(at, random.number(0, at as u32) as usize);
    }
    let counts: Vec<u32> = buyers.iter().map(|_| random.number(5, 15)).collect();
    let is_delivered = |o: u32| o <= size.delivered();
    let mut orders = Batch::new(client, "orders");
    for (o, (c, count)) in (1..).zip(buyers.iter().zip(&counts)) {
        let carrier = if is_delivered(o) { random.number(1, 10).to_string() } else { "null".into() };
        orders.row(format_args!("{o},{d},{w},{c},now(),{carrier},{count},1"))?;
    }
    orders.send()?;
    let mut lines = Batch::new(client, "order_line");
    for (o, count) in (1..).zip(&counts) {
        for line in 1..=*count {
            let (item, info) = (random.number(1, size.items), random.text(24, 24));
            let amount = if is_delivered(o) { 0 } else { random.number(1, 999_999) };
            let when = if is_delivered(o) { "now()" } else { "null" };
            let (whole, cents) = (amount / 100, amount % 100);
            lines.row(format_args!("{o},{d},{w},{line},{item},{w},{when},5,{whole}.{cents:02},'{info}'"))?;
        }
    }
    lines.send()?;
    let mut new = Batch::new(client, "new_order");
    for o in size.delivered() + 1..=size.customers {
        new.row(format_args!("{o},{d},{w}"))?;
    }
    new.send()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_those_of_the_specification() {
        assert_eq!((last_name(0), last_name(371)), ("BARBARBAR".into(), "PRICALLYOUGHT".into()));
        let (mut random, size) = (Random::new(1, 1), Size::new(1, 100));
        for _ in 0..10_000 {
            assert!((1..=30).contains(&random.customer(size)) && (1..=1000).contains(&random.item(size)));
        }
    }
}

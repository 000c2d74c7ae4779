//! The five transactions (clause 2), as text through the wire. None waits for keys or thinks.

use crate::sql::client::{Client, Failure, number};
use crate::tpcc::data::{DISTRICTS, Random, Size};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum TransactionKind {
    NewOrder,
    Payment,
    OrderStatus,
    Delivery,
    StockLevel,
}

impl TransactionKind {
    pub const ALL: [TransactionKind; 5] = [
        TransactionKind::NewOrder,
        TransactionKind::Payment,
        TransactionKind::OrderStatus,
        TransactionKind::Delivery,
        TransactionKind::StockLevel,
    ];

    pub fn name(self) -> &'static str {
        match self {
            TransactionKind::NewOrder => "New-Order",
            TransactionKind::Payment => "Payment",
            TransactionKind::OrderStatus => "Order-Status",
            TransactionKind::Delivery => "Delivery",
            TransactionKind::StockLevel => "Stock-Level",
        }
    }

    /// The mix of clause 5.2.3: 43% Payment, 4% of the last three each, the rest New-Order.
    pub fn draw(random: &mut Random) -> TransactionKind {
        match random.number(1, 100) {
            1..=43 => TransactionKind::Payment,
            44..=47 => TransactionKind::OrderStatus,
            48..=51 => TransactionKind::Delivery,
            52..=55 => TransactionKind::StockLevel,
            _ => TransactionKind::NewOrder,
        }
    }
}

/// A connection that acts as a terminal of one warehouse.
pub struct Terminal {
    pub client: Client,
    pub random: Random,
    pub size: Size,
    pub home: u32,
}

type Attempt<T> = Result<T, Failure>;

impl Terminal {
    /// Runs one transaction, from BEGIN to COMMIT. Returns false if it was rolled back, as one New-Order of a hundred is. After an error the transaction is rolled back too, if the connection still works.
    pub fn play(&mut self, kind: TransactionKind) -> Attempt<bool> {
        self.client.ask("begin")?;
        let done = match kind {
            TransactionKind::NewOrder => self.new_order(),
            TransactionKind::Payment => self.payment().map(|()| true),
            TransactionKind::OrderStatus => self.order_status().map(|()| true),
            TransactionKind::Delivery => self.delivery().map(|()| true),
            TransactionKind::StockLevel => self.stock_level().map(|()| true),
        };
        match done {
            Ok(true) => self.client.ask("commit").map(|_| true),
            Ok(false) => self.client.ask("rollback").map(|_| false),
            Err(Failure::Wire(error)) => Err(Failure::Wire(error)),
            Err(error) => {
                self.client.ask("rollback")?;
                Err(error)
            }
        }
    }

    fn district(&mut self) -> u32 {
        self.random.number(1, DISTRICTS)
    }

    /// Returns another warehouse than the home, if there is one.
    fn other(&mut self) -> u32 {
        let count = self.size.warehouses;
        if count == 1 { 1 } else { (self.home + self.random.number(0, count - 2)) % count + 1 }
    }

    fn new_order(&mut self) -> Attempt<bool> {
        let (w, d, c) = (self.home, self.district(), self.random.customer(self.size));
        let count = self.random.number(5, 15);
        let is_wrong = self.random.number(1, 100) == 1;
        let mut lines: Vec<(u32, u32, u32)> = Vec::new();
        for at in 1..=count {
            let item = if is_wrong && at == count { self.size.items + 1 } else { self.random.item(self.size) };
            let supplier = if self.random.number(1, 100) == 1 { self.other() } else { w };
            lines.push((item, supplier, self.random.number(1, 10)));
        }
        let is_local = u8::from(lines.iter().all(|line| line.1 == w));
        let customer = self.client.ask(&format!(
            "select c_discount, c_last, c_credit, w_tax from customer join warehouse on w_id = c_w_id where w_id = {w} and c_d_id = {d} and c_id = {c}"
        ))?;
        let (discount, tax): (f64, f64) = (customer.number(0)?, customer.number(3)?);
        let district = self
            .client
            .ask(&format!("select d_next_o_id, d_tax from district where d_w_id = {w} and d_id = {d} for update"))?;
        let (o, district_tax): (u32, f64) = (district.number(0)?, district.number(1)?);
        self.client.ask(&format!("update district set d_next_o_id = {} where d_w_id = {w} and d_id = {d}", o + 1))?;
        self.client.ask(&format!("insert into orders values ({o},{d},{w},{c},now(),null,{count},{is_local})"))?;
        self.client.ask(&format!("insert into new_order values ({o},{d},{w})"))?;
        let mut total = 0.0;
        for (line, (item, supplier, quantity)) in (1..).zip(lines) {
            let price = self.client.ask(&format!("select i_price, i_name, i_data from item where i_id = {item}"))?;
            if price.rows.is_empty() {
                return Ok(false);
            }
            let price: f64 = price.number(0)?;
            let stock = self.client.ask(&format!(
                "select s_quantity, s_data, s_dist_{d:02} from stock where s_i_id = {item} and s_w_id = {supplier} for update"
            ))?;
            let left: u32 = stock.number(0)?;
            let left = if left >= quantity + 10 { left - quantity } else { left + 91 - quantity };
            let info = stock.rows[0][2].clone().unwrap_or_default();
            let remote = u8::from(supplier != w);
            self.client.ask(&format!(
                "update stock set s_quantity = {left}, s_ytd = s_ytd + {quantity}, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + {remote} \
                 where s_i_id = {item} and s_w_id = {supplier}"
            ))?;
            let amount = price * f64::from(quantity);
            total += amount;
            self.client.ask(&format!(
                "insert into order_line values ({o},{d},{w},{line},{item},{supplier},null,{quantity},{amount:.2},'{info}')"
            ))?;
        }
        // The output of the terminal.
        std::hint::black_box(total * (1.0 - discount) * (1.0 + tax + district_tax));
        Ok(true)
    }

    /// A customer by number, or, three times of five, the middle one of those with a last name.
    fn customer_of(&mut self, (w, d): (u32, u32), columns: &str, lock: &str) -> Attempt<(u32, Vec<Option<String>>)> {
        let by = if self.random.number(1, 100) <= 60 {
            let last = self.random.last_name(self.size);
            format!("c_last = '{last}' order by c_first")
        } else {
            format!("c_id = {}", self.random.customer(self.size))
        };
        let found = self
            .client
            .ask(&format!("select c_id, {columns} from customer where c_w_id = {w} and c_d_id = {d} and {by}{lock}"))?;
        let middle = found.rows.len().div_ceil(2).saturating_sub(1);
        let row = found.rows.get(middle).ok_or(Failure::Server(0, "no customer has this name".into()))?;
        Ok((number(row, 0)?, row.clone()))
    }

    fn payment(&mut self) -> Attempt<()> {
        let (w, d) = (self.home, self.district());
        let (cw, cd) = if self.random.number(1, 100) <= 85 { (w, d) } else { (self.other(), self.district()) };
        let cents = self.random.number(100, 500_000);
        let amount = format!("{}.{:02}", cents / 100, cents % 100);
        self.client.ask(&format!("update warehouse set w_ytd = w_ytd + {amount} where w_id = {w}"))?;
        let warehouse = self.client.ask(&format!(
            "select w_street_1, w_street_2, w_city, w_state, w_zip, w_name from warehouse where w_id = {w}"
        ))?;
        self.client.ask(&format!("update district set d_ytd = d_ytd + {amount} where d_w_id = {w} and d_id = {d}"))?;
        let district = self.client.ask(&format!(
            "select d_street_1, d_street_2, d_city, d_state, d_zip, d_name from district where d_w_id = {w} and d_id = {d}"
        ))?;
        let columns = "c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_credit, c_credit_lim, c_discount, c_balance, c_since, c_data";
        let (c, customer) = self.customer_of((cw, cd), columns, " for update")?;
        let mut data = String::new();
        if customer[10].as_deref() == Some("BC") {
            let old = customer[15].as_deref().unwrap_or_default();
            let new = format!("{c} {cd} {cw} {d} {w} {amount} {old}");
            data = format!(", c_data = '{}'", &new[..new.len().min(500)]);
        }
        self.client.ask(&format!(
            "update customer set c_balance = c_balance - {amount}, c_ytd_payment = c_ytd_payment + {amount}, c_payment_cnt = c_payment_cnt + 1{data} \
             where c_w_id = {cw} and c_d_id = {cd} and c_id = {c}"
        ))?;
        let name = |answer: &crate::sql::client::QueryResult| answer.rows[0][5].clone().unwrap_or_default();
        let note = format!("{}    {}", name(&warehouse), name(&district));
        self.client.ask(&format!("insert into history values ({c},{cd},{cw},{d},{w},now(),{amount},'{note}')"))?;
        Ok(())
    }

    fn order_status(&mut self) -> Attempt<()> {
        let (w, d) = (self.home, self.district());
        let (c, _) = self.customer_of((w, d), "c_balance, c_first, c_middle, c_last", "")?;
        let order = self.client.ask(&format!(
            "select o_id, o_carrier_id, o_entry_d from orders where o_w_id = {w} and o_d_id = {d} and o_c_id = {c} order by o_id desc limit 1"
        ))?;
        if let Some(order) = order.rows.first() {
            let o: u32 = number(order, 0)?;
            self.client.ask(&format!(
                "select ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d from order_line where ol_w_id = {w} and ol_d_id = {d} and ol_o_id = {o}"
            ))?;
        }
        Ok(())
    }

    /// The oldest order of each district; its districts in one transaction, as 2.7.4.2 allows.
    fn delivery(&mut self) -> Attempt<()> {
        let (w, carrier) = (self.home, self.random.number(1, 10));
        for d in 1..=DISTRICTS {
            let oldest = self.client.ask(&format!(
                "select no_o_id from new_order where no_w_id = {w} and no_d_id = {d} order by no_o_id limit 1 for update"
            ))?;
            let Some(oldest) = oldest.rows.first() else { continue };
            let o: u32 = number(oldest, 0)?;
            let keys = format!("o_w_id = {w} and o_d_id = {d} and o_id = {o}");
            let lines = format!("ol_w_id = {w} and ol_d_id = {d} and ol_o_id = {o}");
            let gone = format!("delete from new_order where no_w_id = {w} and no_d_id = {d} and no_o_id = {o}");
            if self.client.ask(&gone)?.affected != 1 {
                return Err(Failure::Server(0, format!("order {o} was delivered twice")));
            }
            // Changed first: the order may be younger than the snapshot, and a transaction sees its own changes.
            self.client.ask(&format!("update orders set o_carrier_id = {carrier} where {keys}"))?;
            let c: u32 = self.client.ask(&format!("select o_c_id from orders where {keys}"))?.number(0)?;
            self.client.ask(&format!("update order_line set ol_delivery_d = now() where {lines}"))?;
            let sum = self.client.ask(&format!("select sum(ol_amount) from order_line where {lines}"))?;
            let sum = sum.rows.first().and_then(|row| row[0].clone()).unwrap_or_else(|| "0".into());
            self.client.ask(&format!(
                "update customer set c_balance = c_balance + {sum}, c_delivery_cnt = c_delivery_cnt + 1 where c_w_id = {w} and c_d_id = {d} and c_id = {c}"
            ))?;
        }
        Ok(())
    }

    fn stock_level(&mut self) -> Attempt<()> {
        let (w, d, least) = (self.home, self.district(), self.random.number(10, 20));
        let next = self.client.ask(&format!("select d_next_o_id from district where d_w_id = {w} and d_id = {d}"))?;
        let next: u32 = next.number(0)?;
        self.client.ask(&format!(
            "select count(distinct s_i_id) from order_line join stock on s_w_id = {w} and s_i_id = ol_i_id \
             where ol_w_id = {w} and ol_d_id = {d} and ol_o_id >= {} and ol_o_id < {next} and s_quantity < {least}",
            next.saturating_sub(20)
        ))?;
        Ok(())
    }
}

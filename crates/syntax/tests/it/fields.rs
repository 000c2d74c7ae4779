//! Every variant and every optional field of the tree is one that the parser fills (SY-7).
//!
//! The tree's declarations are read from its sources, the trees of [`TEXTS`] from their Debug output, and the two are compared: a field or variant that is added without a statement here fails.

use std::collections::{BTreeMap, BTreeSet};

use syntax::{Mode, parse};

const SOURCES: [&str; 7] = [
    include_str!("../../src/tree/account.rs"),
    include_str!("../../src/tree/change.rs"),
    include_str!("../../src/tree/expr.rs"),
    include_str!("../../src/tree/mod.rs"),
    include_str!("../../src/tree/query.rs"),
    include_str!("../../src/tree/statement.rs"),
    include_str!("../../src/tree/table.rs"),
];

const TYPES: &str = include_str!("../../src/tree/types.rs");

const TEXTS: &[&str] = &[
    // Literals and names.
    "select null, true, false, 1, 1.5, 1e5, 'a', n'b', x'41', b'101', date '2020-01-01', time '1:00', timestamp '2020-01-01 1:00'",
    "select _latin1'a', a, t.a, s.t.a, @a, @@a, @@global.a, @@session.a, @@persist.a, @a := 1",
    "select ?, (1, 2) = row(1, 2)",
    // Operators.
    "select +1, -1, ~1, !1, a and b, a or b, a xor b, binary a, a collate b",
    "select 1 | 1, 1 & 1, 1 << 1, 1 >> 1, 1 + 1, 1 - 1, 1 * 1, 1 / 1, 1 div 1, 1 % 1, 1 ^ 1",
    "select 1 = 1, 1 <=> 1, 1 <> 1, 1 < 1, 1 <= 1, 1 > 1, 1 >= 1",
    "select 1 = any (select 1), 1 = all (select 1)",
    "select 1 is null, 1 is not true, 1 is false, 1 is unknown",
    "select 1 between 1 and 2, 1 not between 1 and 2, 1 in (1), 1 not in (1), 1 in (select 1), 1 not in (select 1)",
    "select a like b, a not like b escape c, a regexp b, a not rlike b, a sounds like b, 1 member of (a)",
    "select a -> '$', a ->> '$', exists (select 1), (select 1)",
    "select case when a then b end, case a when b then c else d end",
    // Calls.
    "select cast(a as signed), cast(a as unsigned), cast(a as char), cast(a as char(1) charset latin1), cast(a as nchar), cast(a as nchar(1))",
    "select cast(a as binary), cast(a as binary(1)), cast(a as date), cast(a as time), cast(a as time(1)), cast(a as datetime), cast(a as datetime(1))",
    "select cast(a as year), cast(a as decimal), cast(a as decimal(1)), cast(a as decimal(1, 1)), cast(a as float), cast(a as float(1)), cast(a as double)",
    "select cast(a as json), cast(a as point), cast(a as signed array)",
    "select cast(a at time zone 'b' as datetime), cast(a at time zone 'b' as datetime(1)), convert(a using latin1)",
    "select f(1), s.f(), count(*), current_user, current_user(), count(distinct a), sum(a)",
    "select group_concat(a order by b), group_concat(a order by b desc separator 'c')",
    "select nth_value(a, 1) from last over w, nth_value(a, 1) from first ignore nulls over (), sum(a) over (b), sum(a) over (partition by c order by d)",
    "select sum(a) over (rows current row), sum(a) over (range between unbounded preceding and unbounded following)",
    "select sum(a) over (groups between 1 preceding and interval 1 day following exclude ties)",
    "select a + interval 1 day, date_sub(a, interval 1 day), extract(day from a), timestampadd(day, 1, a), timestampdiff(day, a, b)",
    "select a + interval 1 microsecond + interval 1 second + interval 1 minute + interval 1 hour + interval 1 week + interval 1 month",
    "select a + interval 1 quarter + interval 1 year + interval 1 second_microsecond + interval 1 minute_microsecond",
    "select a + interval 1 minute_second + interval 1 hour_microsecond + interval 1 hour_second + interval 1 hour_minute",
    "select a + interval 1 day_microsecond + interval 1 day_second + interval 1 day_minute + interval 1 day_hour + interval 1 year_month",
    "select get_format(date, 'a'), get_format(datetime, 'a'), trim(a), trim(leading 'a' from b), trim(trailing 'a' from b)",
    "select char(1), char(1 using latin1), weight_string(a), weight_string(a as char(1)), weight_string(a as binary(1))",
    "select json_value(a, '$'), json_value(a, '$' returning char null on empty error on error), json_value(a, '$' default 1 on empty)",
    "select match (a) against ('b'), match (a) against ('b' in boolean mode), match (a) against ('b' with query expansion)",
    "select match (a) against ('b' in natural language mode with query expansion)",
    // Queries.
    "select /*+ a */ distinct straight_join sql_calc_found_rows * from t",
    "select a as b, t.*, s.t.* from t where a group by a having b window w as (order by c)",
    "select a from t group by a with rollup order by a, b desc limit 1 offset 2",
    "select a from t limit 1 for update of t nowait for share skip locked",
    "select a from t for update",
    "select a into @a",
    "select a from t into outfile 'a'",
    "select a from t into outfile 'a' charset latin1 fields terminated by 'b' optionally enclosed by 'c' escaped by '' lines starting by 'd' terminated by 'e'",
    "select a into dumpfile 'a'",
    "with a as (select 1), b (c) as (select 1) select 1",
    "with recursive a as (select 1) select 1",
    "values row(1), row(2)",
    "table t",
    "select 1 union select 1 union all select 1",
    "select 1 except select 1",
    "select 1 intersect select 1",
    "(select 1 limit 1) limit 2",
    "select 1 from a, b join c straight_join d left join e on 1 right join f using (a) natural join g",
    "select 1 from (a, b), (select 1) c, lateral (select 1) d (e), (select 1) as f",
    "select 1 from (select 1)",
    "select 1 from s.t partition (a) as b use index for join (a) ignore index for order by (b) force index for group by (primary) use index ()",
    "select 1 from json_table(a, '$' columns (a for ordinality, b int path '$', c int exists path '$', nested path '$' columns (d for ordinality))) t",
    "select 1 from json_table(a, '$' columns (b int path '$' default '1' on empty null on error))",
    // Changes.
    "insert into t values (1, default)",
    "insert /*+ a */ ignore into t partition (p) (a, t.b) values (1) as n (c) on duplicate key update a = values(a)",
    "insert into t values (1) as n returning *",
    "insert into t set a = default(b)",
    "insert into t select 1",
    "replace into t values (1)",
    "update t set a = 1",
    "with a as (select 1) update /*+ b */ ignore t set a = 1 where b order by c limit 1 returning d",
    "delete from t",
    "with a as (select 1) delete /*+ b */ ignore from t where b order by c limit 1 returning d",
    "delete a, b from a join b",
    "load data infile 'a' into table t",
    "load data local infile 'a' replace into table t charset latin1 fields terminated by 'a' enclosed by 'b' ignore 1 lines (a, @b) set c = 1",
    "load data infile 'a' ignore into table t fields escaped by 'a' lines starting by 'b'",
    "do 1",
    "call p()",
    "call s.p(1)",
    // Tables.
    "create table t (a int)",
    "create temporary table if not exists t (a int, key k (a), constraint f foreign key f (a) references t (b), check (a)) engine = innodb",
    "create table t like u",
    "create table t as select 1",
    "create table t ignore select 1",
    "create table t replace select 1",
    "create table t (a int null, b int not null default 1 auto_increment primary key comment 'c', c int default (1) unique, d timestamp default now() on update now())",
    "create table t (a int collate b visible invisible storage disk references t, b int as (1), c int as (1) stored, d int constraint e check (1) not enforced, f int check (1))",
    "create table t (a int references t (b) match full on delete restrict on update cascade, b int references t on delete set null on update no action)",
    "create table t (a int references t on delete set default)",
    "create table t (a tinyint, b smallint, c mediumint, d int(1) unsigned zerofill, e bigint, f bool, g serial, h decimal, i decimal(1, 1), j float, k float(1, 1))",
    "create table t (a double, b double(1, 1), c bit, d bit(1), e char, f char(1), g varchar(1), h binary, i binary(1), j varbinary(1))",
    "create table t (a tinytext, b text(1), c mediumtext, d longtext, e tinyblob, f blob(1), g mediumblob, h longblob, i enum('a'), j set('a'))",
    "create table t (a date, b time, c time(1), d datetime, e datetime(1), f timestamp, g timestamp(1), h year, i year(4), j json, k point)",
    "create table t (a char(1) charset latin1 collate b, b char(1) binary)",
    "create table t (a int, primary key (a), constraint u unique i using btree (a desc), fulltext key (a) with parser p, spatial key (a), unique ((a), b(1)))",
    "create table t (a int, foreign key (a) references t (a), constraint c check (1))",
    "create table t (a int, key (a) comment 'b' visible key_block_size = 1 engine_attribute 'c', key (a) invisible)",
    "create table t (a int) auto_increment = 1 comment 'a' row_format = dynamic union = (a, b)",
    "create index a on t (b)",
    "create or replace algorithm = merge definer = current_user sql security invoker view v (a) as select 1 with local check option",
    "create algorithm = temptable definer = a@b view v as select 1 with check option",
    "alter view v as select 1",
    "alter table t add a int, add b int first, add c int after d, add key (a), drop a, drop key b, drop primary key, drop foreign key c",
    "alter table t drop check a, drop constraint b, modify a int, modify a int first, change a b int, change a b int after c",
    "alter table t alter a set default 1, alter a drop default, alter a set visible, alter a set invisible, rename column a to b, rename key a to b, rename to s.u",
    "alter table t alter check a enforced, alter check a not enforced, alter index a visible, alter index a invisible, engine = innodb, force, order by a",
    "alter table t convert to charset latin1 collate b, convert to charset default, algorithm = inplace",
    "drop index a on t",
    "drop table t",
    "drop temporary table if exists t",
    "truncate t",
    "rename table a to b",
    "create database a",
    "create database if not exists a charset b collate c",
    "alter database charset b",
    "alter database a collate c",
    "drop database a",
    "drop database if exists a",
    "create sequence s",
    "create sequence if not exists s timestamp",
    "drop view v",
    "drop view if exists v",
    // Variables.
    "set a = 1, global a = 1, persist a = 1, session a = default, @a = 1, names a, names a collate b, names default",
    "set character set a, character set default",
    "set transaction read only",
    "set session transaction isolation level read committed, read write",
    "reset persist",
    "reset persist if exists a",
    // SHOW.
    "show databases",
    "show tables",
    "show full tables from s like 'a'",
    "show table status",
    "show table status from s where a",
    "show columns from t",
    "show full columns from t",
    "show index from t",
    "show create table t",
    "show create database s",
    "show create database if not exists s",
    "show variables",
    "show global variables",
    "show status",
    "show global status",
    "show warnings limit 1, 2",
    "show errors",
    "show count(*) warnings",
    "show engines",
    "show collation",
    "show charset",
    "show processlist",
    "show grants",
    "show grants for a using b",
    "show create user a",
    "show create view v",
    "show privileges",
    "show engine a status",
    "show plugins",
    "show open tables",
    "show triggers",
    "show events",
    "show function status",
    "show procedure status",
    "show master status",
    "show replica status",
    "show replicas",
    "show binary logs",
    "show profiles",
    "describe t",
    "describe t a",
    "explain select 1",
    "explain analyze select 1",
    "explain format = tree select 1",
    // Transactions and the session.
    "begin",
    "start transaction read only",
    "start transaction read write",
    "start transaction with consistent snapshot",
    "commit",
    "commit and chain no release",
    "rollback and no chain release",
    "savepoint a",
    "rollback to a",
    "release savepoint a",
    "lock tables t read, u as v write",
    "flush tables with read lock",
    "unlock tables",
    "kill 1",
    "kill query 1",
    "prepare a from 'b'",
    "prepare a from @b",
    "execute a",
    "execute a using @b",
    "deallocate prepare a",
    "analyze table t",
    "analyze table t update histogram on a with 5 buckets",
    "analyze table t drop histogram on a",
    "check table t",
    "optimize table t",
    "repair table t",
    "checksum table t",
    "checksum table t quick",
    "flush logs",
    "use s",
    "/* nothing */",
    // Accounts.
    "create user a",
    "create user if not exists current_user identified by 'b' default role none require ssl account lock password expire",
    "create user a identified with b by 'c' default role all",
    "create user a identified with b as 'c' default role all except d",
    "create user a identified with b default role c require none account unlock",
    "alter user a",
    "alter user if exists a identified by 'b'",
    "alter user a default role b",
    "drop user a",
    "drop user if exists a",
    "drop role a",
    "rename user a to b",
    "set password = 'a'",
    "create role a",
    "create role if not exists a",
    "grant select (a), insert on *.* to u with grant option",
    "grant select on * to u",
    "grant select on s.* to u",
    "grant select on t to u",
    "revoke select on t from u",
    "revoke if exists select on t from u ignore unknown user",
    "revoke all, grant option from u",
    "revoke if exists all, grant option from u ignore unknown user",
    "grant r to u",
    "grant r to u with admin option",
    "revoke r from u",
    "revoke if exists r from u ignore unknown user",
    "set default role r to u",
    "set role default",
];

/// Places that the default mode has not: the operator `||` concatenates in another one.
const CONCAT: &str = "select a || b";

/// Places that no text fills, with the reason.
const NEVER: &[(&str, &str)] = &[(
    "Options.expired = false",
    "PASSWORD EXPIRE NEVER is about the lifetime of later passwords; a new password ends an expiry",
)];

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    Sign(char),
    /// A number or string.
    Atom,
}

/// Tokens of Rust: of declarations and of Debug output.
fn tokens(text: &str) -> Vec<Token> {
    let (mut tokens, mut letters) = (Vec::new(), text.chars().peekable());
    while let Some(letter) = letters.next() {
        match letter {
            letter if letter.is_whitespace() => {}
            '"' => {
                while let Some(letter) = letters.next() {
                    match letter {
                        '\\' => drop(letters.next()),
                        '"' => break,
                        _ => {}
                    }
                }
                tokens.push(Token::Atom);
            }
            '0'..='9' => {
                while letters.next_if(|next| next.is_ascii_alphanumeric() || matches!(next, '_' | '.')).is_some() {}
                tokens.push(Token::Atom);
            }
            letter if letter.is_alphabetic() || letter == '_' => {
                let mut word = String::from(letter);
                while let Some(next) = letters.next_if(|next| next.is_alphanumeric() || *next == '_') {
                    word.push(next);
                }
                tokens.push(Token::Word(word));
            }
            sign => tokens.push(Token::Sign(sign)),
        }
    }
    tokens
}

pub struct Reader {
    tokens: std::iter::Peekable<std::vec::IntoIter<Token>>,
}

impl Reader {
    pub fn new(text: &str) -> Reader {
        Reader { tokens: tokens(text).into_iter().peekable() }
    }

    fn accept(&mut self, sign: char) -> bool {
        self.tokens.next_if_eq(&Token::Sign(sign)).is_some()
    }

    fn word(&mut self) -> Option<String> {
        match self.tokens.next_if(|token| matches!(token, Token::Word(_))) {
            Some(Token::Word(word)) => Some(word),
            _ => None,
        }
    }

    /// Items with commas between them, up to the sign.
    fn items<T>(&mut self, end: char, mut item: impl FnMut(&mut Reader) -> T) -> Vec<T> {
        let mut items = Vec::new();
        while !self.accept(end) {
            items.push(item(self));
            self.accept(',');
        }
        items
    }

    /// `Vec<a::B>`, `(A, B)`
    fn ty(&mut self) -> Type {
        if self.accept('(') {
            return Type { name: String::new(), of: self.items(')', Reader::ty) };
        }
        // Lifetimes.
        while self.accept('\'') {
            self.word();
            self.accept(',');
        }
        let mut name = self.word().expect("a type");
        while self.accept(':') {
            self.accept(':');
            name = self.word().expect("a type");
        }
        let of = if self.accept('<') { self.items('>', Reader::ty) } else { Vec::new() };
        Type { name, of }
    }

    /// `a: A, pub b: B }`
    fn fields(&mut self) -> Vec<(String, Type)> {
        self.items('}', |reader| {
            let mut name = reader.word().expect("a field");
            if name == "pub" {
                name = reader.word().expect("a field");
            }
            assert!(reader.accept(':'), "{name}");
            (name, reader.ty())
        })
    }

    pub fn value(&mut self) -> Value {
        if self.accept('[') {
            return Value { name: String::new(), of: Vec::new(), list: self.items(']', Reader::value) };
        }
        if self.accept('(') {
            return Value { name: String::new(), of: self.numbered(), list: Vec::new() };
        }
        let Some(name) = self.word() else {
            self.accept('-');
            self.tokens.next().expect("a value");
            return Value::default();
        };
        let of = if self.accept('(') {
            self.numbered()
        } else if self.accept('{') {
            self.items('}', |reader| {
                let field = reader.word().expect("a field");
                assert!(reader.accept(':'), "{name}.{field}");
                (field, reader.value())
            })
        } else {
            Vec::new()
        };
        Value { name, of, list: Vec::new() }
    }

    /// The fields of a tuple, by number.
    fn numbered(&mut self) -> Vec<(String, Value)> {
        let values = self.items(')', Reader::value);
        values.into_iter().enumerate().map(|(nth, value)| (nth.to_string(), value)).collect()
    }
}

#[derive(Clone, Debug)]
pub struct Type {
    pub name: String,
    pub of: Vec<Type>,
}

/// A value as Debug shows it. Numbers and strings have neither name nor parts.
#[derive(Debug, Default)]
pub struct Value {
    name: String,
    of: Vec<(String, Value)>,
    list: Vec<Value>,
}

/// Fields of structs, by `Struct`, and of variants, by `Enum::Variant`.
#[derive(Default)]
pub struct Declarations {
    fields: BTreeMap<String, Vec<(String, Type)>>,
    enums: BTreeSet<String>,
}

impl Declarations {
    pub fn read(&mut self, source: &str) {
        let code: String = source.lines().map(|line| line.split("//").next().unwrap_or("").to_owned() + "\n").collect();
        let mut reader = Reader::new(&code);
        while reader.tokens.peek().is_some() {
            match reader.word().as_deref() {
                Some("struct") => {
                    let name = reader.word().expect("a struct");
                    if reader.accept('(') {
                        // A number with a name of its own.
                        continue;
                    }
                    assert!(reader.accept('{'), "{name}");
                    let fields = reader.fields();
                    self.fields.insert(name, fields);
                }
                Some("enum") => {
                    let name = reader.word().expect("an enum");
                    assert!(reader.accept('{'), "{name}");
                    for (variant, fields) in reader.items('}', |reader| {
                        let variant = reader.word().expect("a variant");
                        let fields = if reader.accept('(') {
                            let types = reader.items(')', Reader::ty);
                            types.into_iter().enumerate().map(|(nth, ty)| (nth.to_string(), ty)).collect()
                        } else if reader.accept('{') {
                            reader.fields()
                        } else {
                            Vec::new()
                        };
                        (variant, fields)
                    }) {
                        self.fields.insert(format!("{name}::{variant}"), fields);
                    }
                    self.enums.insert(name);
                }
                Some(_) => {}
                None => drop(reader.tokens.next()),
            }
        }
    }

    /// The part of the printed text that shows a value of that type.
    fn wanted(place: &str, ty: &Type, out: &mut BTreeSet<String>) {
        match &*ty.name {
            "bool" => out.extend([format!("{place} = false"), format!("{place} = true")]),
            "Option" => {
                out.extend([format!("{place} = None"), format!("{place} = Some")]);
                Declarations::wanted(place, &ty.of[0], out);
            }
            "Vec" => drop(out.insert(format!("{place} = [..]"))),
            "Box" => Declarations::wanted(place, &ty.of[0], out),
            "" => {
                ty.of.iter().enumerate().for_each(|(nth, ty)| Declarations::wanted(&format!("{place}.{nth}"), ty, out))
            }
            _ => {}
        }
    }

    pub fn all_wanted(&self) -> BTreeSet<String> {
        let mut out = BTreeSet::new();
        for (name, fields) in &self.fields {
            if name.contains("::") {
                out.insert(name.clone());
            }
            fields.iter().for_each(|(field, ty)| Declarations::wanted(&format!("{name}.{field}"), ty, &mut out));
        }
        out
    }

    /// Notes what is seen in a value of that type.
    pub fn see(&self, place: &str, ty: &Type, value: &Value, out: &mut BTreeSet<String>) {
        match &*ty.name {
            "bool" => drop(out.insert(format!("{place} = {}", value.name))),
            "Option" => {
                out.insert(format!("{place} = {}", value.name));
                value.of.iter().for_each(|(_, inner)| self.see(place, &ty.of[0], inner, out));
            }
            "Vec" => {
                if !value.list.is_empty() {
                    out.insert(format!("{place} = [..]"));
                }
                value.list.iter().for_each(|item| self.see(&format!("{place}[]"), &ty.of[0], item, out));
            }
            "Box" => self.see(place, &ty.of[0], value, out),
            "" => {
                for ((nth, inner), ty) in value.of.iter().zip(&ty.of) {
                    self.see(&format!("{place}.{nth}"), ty, inner, out);
                }
            }
            name => {
                let owner = if self.enums.contains(name) { format!("{name}::{}", value.name) } else { name.to_owned() };
                let Some(fields) = self.fields.get(&owner) else { return };
                out.insert(owner.clone());
                for ((field, ty), (shown, inner)) in fields.iter().zip(&value.of) {
                    assert_eq!(field, shown, "{owner}");
                    self.see(&format!("{owner}.{field}"), ty, inner, out);
                }
            }
        }
    }
}

#[test]
fn the_parser_fills_every_field() {
    let mut declared = Declarations::default();
    SOURCES.iter().for_each(|source| declared.read(source));
    declared.read(TYPES);
    let mut seen = BTreeSet::new();
    let statement = Type { name: "Statement".to_owned(), of: Vec::new() };
    let concat = Mode { pipes_as_concat: true, ..Mode::default() };
    let texts = TEXTS.iter().map(|text| (*text, Mode::default())).chain([(CONCAT, concat)]);
    for (text, mode) in texts {
        match parse(text, mode) {
            Ok(parsed) => {
                let value = Reader::new(&format!("{:?}", parsed.statement)).value();
                declared.see("", &statement, &value, &mut seen);
            }
            Err(error) => panic!("{text}: {:?} near {:?}", error.problem, error.near(text).0),
        }
    }
    let wanted = declared.all_wanted();
    assert!(wanted.len() > 500, "{} places", wanted.len());
    let missing: Vec<&str> = wanted
        .difference(&seen)
        .map(|place| &**place)
        .filter(|place| !NEVER.iter().any(|(never, _)| never == place))
        .collect();
    assert!(missing.is_empty(), "no text has {} of {} places:\n{}", missing.len(), wanted.len(), missing.join("\n"));
    for (never, reason) in NEVER {
        assert!(wanted.contains(*never) && !seen.contains(*never), "{never}: {reason}");
    }
}

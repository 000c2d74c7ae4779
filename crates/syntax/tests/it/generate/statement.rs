//! Statements.

use super::{CHARSETS, Random, SPATIAL, made};
use syntax::tree::*;

impl Random {
    /// A statement whose expressions and queries are of at most this height.
    pub fn statement(&mut self, h: usize) -> Statement {
        let if_exists = self.flag();
        match self.below(60) {
            0..=13 => Statement::Query(Box::new(self.outer_query(h))),
            14 | 15 => Statement::Load(Box::new(self.load(h))),
            16..=19 => Statement::Insert(Box::new(self.insert(h))),
            20..=22 => Statement::Update(Box::new(self.update(h))),
            23 | 24 => Statement::Delete(Box::new(self.delete(h))),
            25 => Statement::Do(self.exprs(1, 3, h)),
            26..=28 => Statement::CreateTable(Box::new(self.create_table(h))),
            29..=31 => {
                let table = self.name();
                let mut operations = self.list(1, 3, |random| random.alteration(h));
                // A comma after ORDER BY goes on with its list.
                if let Some(at) = operations.iter().position(|done| matches!(done, Alteration::OrderBy(_))) {
                    operations.truncate(at + 1);
                }
                Statement::AlterTable { table, operations }
            }
            32 => {
                let mut index = self.index(h);
                index.constraint = None;
                index.name = Some(self.ident());
                if index.kind == IndexKind::Primary {
                    index.kind = IndexKind::Plain;
                }
                Statement::CreateIndex(Box::new(CreateIndex { table: self.name(), index }))
            }
            33 => Statement::DropIndex { table: self.name(), index: self.ident() },
            34 => Statement::DropTable { tables: self.names(), if_exists, temporary: self.flag() },
            35 => Statement::Truncate(self.name()),
            36 => Statement::RenameTable(self.list(1, 2, |random| (random.name(), random.name()))),
            37 => {
                let (charset, collation) = (self.option(Random::charset), self.option(Random::collation));
                Statement::CreateDatabase { name: self.name_text(), if_not_exists: if_exists, charset, collation }
            }
            38 => {
                let (charset, collation) = (Some(self.charset()), self.option(Random::collation));
                Statement::AlterDatabase { name: self.option(Random::name_text), charset, collation }
            }
            39 => Statement::DropDatabase { name: self.name_text(), if_exists },
            40 => Statement::Use(self.name_text()),
            41 | 42 => Statement::Set(self.settings(h)),
            43..=46 => Statement::Show(self.show(h)),
            47 => self.explain(h),
            48 => self.transaction(),
            49 => self.locks(),
            50 => {
                let name = self.option(|random| random.word(&["sql_mode", "hot.key_buffer_size"]));
                Statement::ResetPersist { if_exists: if_exists && name.is_some(), name }
            }
            51 => Statement::Kill { query: if_exists, id: self.expr(h) },
            52 => self.prepared(),
            53 => self.maintain(),
            54 => Statement::Flush(match self.flag() {
                true => vec!["tables".to_owned()],
                false => self.list(1, 2, |random| random.word(&["status", "logs", "privileges", "user_resources"])),
            }),
            55 => Statement::Call { name: self.name(), arguments: self.exprs(0, 2, h) },
            56 => match self.flag() {
                true => {
                    Statement::CreateSequence { name: self.name(), if_not_exists: if_exists, is_timestamp: self.flag() }
                }
                false => Statement::DropView { names: self.names(), if_exists },
            },
            57 => Statement::CreateView(Box::new(self.create_view(h))),
            58 if self.once_in(5) => Statement::Nothing,
            _ => Statement::Accounting(Box::new(self.accounting())),
        }
    }

    fn outer_query(&mut self, h: usize) -> Query {
        let into = self.once_in(5);
        let mut query = self.query(h);
        if into {
            query.into = Some(Box::new(self.target()));
        }
        query
    }

    fn target(&mut self) -> Target {
        match self.below(3) {
            0 => Target::Variables(self.list(1, 2, Random::variable)),
            1 => Target::File { file: self.text(), charset: None, format: None },
            _ => {
                let (file, charset) = (self.text(), self.option(Random::charset));
                Target::File { file, charset, format: Some(self.format()) }
            }
        }
    }

    fn format(&mut self) -> Format {
        if self.once_in(3) {
            return Format::default();
        }
        let byte = |random: &mut Random| random.option(|random| random.pick(&[b'\\', b'"', b'\'', 0, 0xff]));
        Format {
            field_end: self.bytes(),
            enclosed: byte(self),
            optionally: self.flag(),
            escape: byte(self),
            line_start: self.bytes(),
            line_end: self.text().into_bytes(),
        }
    }

    fn duplicates(&mut self) -> Duplicates {
        self.pick(&[Duplicates::Fail, Duplicates::Ignore, Duplicates::Replace])
    }

    fn load(&mut self, h: usize) -> Load {
        Load {
            is_local: self.flag(),
            file: self.text(),
            duplicates: self.duplicates(),
            table: self.name(),
            charset: self.option(Random::charset),
            format: self.format(),
            skip: self.number(),
            fields: self.list(0, 3, |random| match random.flag() {
                true => FieldTarget::Column(random.name_text()),
                false => FieldTarget::Variable(random.variable()),
            }),
            sets: self.list(0, 2, |random| random.assignment(h)),
        }
    }

    fn value(&mut self, h: usize) -> Expr {
        if self.once_in(5) { made(ExprKind::Default) } else { self.expr(h) }
    }

    fn assignment(&mut self, h: usize) -> Assignment {
        Assignment { column: self.column_name(), value: self.value(h) }
    }

    fn assignments(&mut self, h: usize) -> Vec<Assignment> {
        self.list(1, 2, |random| random.assignment(h))
    }

    fn returning(&mut self, h: usize) -> Option<Vec<SelectItem>> {
        if self.once_in(5) { Some(self.select_items(h)) } else { None }
    }

    fn insert(&mut self, h: usize) -> Insert {
        let replace = self.once_in(3);
        let (ignore, hints) = (!replace && self.flag(), self.hints());
        let (table, partitions) = (self.name(), self.some_idents());
        let mut columns = self.list(0, 2, Random::column_name);
        let updates = !replace && self.flag();
        let source = match self.below(3) {
            0 => InsertSource::Values(self.list(1, 2, |random| random.list(0, 2, |random| random.value(h)))),
            1 => {
                columns.clear();
                InsertSource::Set(self.assignments(h))
            }
            _ => {
                let mut query = self.query(h);
                // ON of ON DUPLICATE after a join without a condition would be that join's.
                if updates && query.limit.is_none() && query.locks.is_empty() {
                    query.limit = Some(self.limit());
                }
                InsertSource::Query(Box::new(query))
            }
        };
        let takes_alias = !replace && !matches!(source, InsertSource::Query(_));
        let row_alias = if takes_alias && self.flag() {
            Some(RowAlias { name: self.ident(), columns: self.some_idents() })
        } else {
            None
        };
        let on_duplicate = if updates { self.assignments(h) } else { Vec::new() };
        let returning = self.returning(h);
        Insert { replace, ignore, hints, table, partitions, columns, source, row_alias, on_duplicate, returning }
    }

    /// LIMIT of a change has no offset.
    fn row_limit(&mut self) -> Option<Limit> {
        if self.once_in(3) { Some(Limit { count: self.limit_value(), offset: None }) } else { None }
    }

    fn update(&mut self, h: usize) -> Update {
        Update {
            with: self.some_with(h),
            hints: self.hints(),
            ignore: self.flag(),
            tables: self.tables(h),
            assignments: self.assignments(h),
            selection: self.option(|random| random.expr(h)),
            order_by: self.order_by(h),
            limit: self.row_limit(),
            returning: self.returning(h),
        }
    }

    fn delete(&mut self, h: usize) -> Delete {
        let (with, hints, ignore) = (self.some_with(h), self.hints(), self.flag());
        let targets = if self.flag() { self.names() } else { Vec::new() };
        let is_single = targets.is_empty();
        let tables = if is_single {
            let mut table = self.table_name();
            table.hints.clear();
            vec![Joined { first: TableRef::Table(Box::new(table)), joins: Vec::new() }]
        } else {
            self.tables(h)
        };
        let selection = self.option(|random| random.expr(h));
        let order_by = if is_single { self.order_by(h) } else { Vec::new() };
        let limit = if is_single { self.row_limit() } else { None };
        let returning = self.returning(h);
        Delete { with, hints, ignore, targets, tables, selection, order_by, limit, returning }
    }

    fn create_table(&mut self, h: usize) -> CreateTable {
        let (temporary, if_not_exists, name) = (self.flag(), self.flag(), self.name());
        let mut create = CreateTable {
            temporary,
            if_not_exists,
            name,
            like: None,
            columns: Vec::new(),
            constraints: Vec::new(),
            options: Vec::new(),
            duplicates: Duplicates::Fail,
            query: None,
        };
        if self.once_in(6) {
            create.like = Some(self.name());
            return create;
        }
        let has_query = self.once_in(3);
        create.columns = self.list(usize::from(!has_query), 3, |random| random.column(h));
        create.constraints = self.list(0, 2, |random| random.constraint(h));
        create.options = self.list(0, 3, Random::table_option);
        if has_query {
            create.duplicates = self.duplicates();
            create.query = Some(Box::new(self.query(h)));
        }
        create
    }

    fn column(&mut self, h: usize) -> ColumnDef {
        let (name, ty) = (self.ident(), self.column_type());
        let has_own = matches!(ty.data, DataType::Integer { .. } | DataType::Spatial(_));
        let mut options: Vec<ColumnOption> = Vec::new();
        for _ in 0..self.below(4) {
            let parameters = self.parameters;
            let option = self.column_option(h, &options);
            // COLLATE comes once, directly after the type it is the type's; nothing follows REFERENCES.
            let has_collation = has_own
                || ty.collation.is_some()
                || options.iter().any(|known| matches!(known, ColumnOption::Collate(_)));
            let is_last = matches!(options.last(), Some(ColumnOption::References(_)));
            let is_second = matches!(option, ColumnOption::Collate(_)) && (has_collation || options.is_empty());
            if is_last || is_second {
                self.parameters = parameters;
            } else {
                options.push(option);
            }
        }
        ColumnDef { name, ty, options }
    }

    pub fn column_type(&mut self) -> ColumnType {
        let data = self.data_type();
        let is_text = matches!(
            data,
            DataType::Char(_) | DataType::VarChar(_) | DataType::Text { .. } | DataType::Enum(_) | DataType::Set(_)
        );
        if !is_text {
            return ColumnType { data, charset: None, binary: false, collation: None };
        }
        let (charset, collation) = (self.option(Random::charset), self.option(Random::collation));
        ColumnType { data, charset, binary: self.once_in(4), collation }
    }

    fn sign(&mut self) -> Sign {
        let unsigned = self.flag();
        Sign { unsigned, zerofill: unsigned && self.flag() }
    }

    fn data_type(&mut self) -> DataType {
        let size = self.pick(&[TextSize::Tiny, TextSize::Normal, TextSize::Medium, TextSize::Long]);
        let length = if size == TextSize::Normal { self.size() } else { None };
        let precision = self.size();
        let scale = precision.and_then(|_| self.size());
        match self.below(24) {
            0..=2 => {
                let sizes =
                    [IntegerSize::Tiny, IntegerSize::Small, IntegerSize::Medium, IntegerSize::Int, IntegerSize::Big];
                DataType::Integer { size: self.pick(&sizes), width: precision, sign: self.sign() }
            }
            3 => DataType::Boolean,
            4 => DataType::Serial,
            5 => DataType::Decimal { precision, scale, sign: self.sign() },
            6 => DataType::Float { precision, scale, sign: self.sign() },
            7 => DataType::Double { digits: precision.zip(scale), sign: self.sign() },
            8 => DataType::Bit(precision),
            9 => DataType::Char(precision),
            10 | 11 => DataType::VarChar(self.number()),
            12 => DataType::Binary(precision),
            13 => DataType::VarBinary(self.number()),
            14 => DataType::Text { size, length },
            15 => DataType::Blob { size, length },
            16 => DataType::Enum(self.list(1, 3, Random::text)),
            17 => DataType::Set(self.list(1, 3, Random::text)),
            18 => DataType::Date,
            19 => DataType::Time(precision),
            20 => DataType::DateTime(precision),
            21 => DataType::Timestamp(precision),
            22 => match self.flag() {
                true => DataType::Year(precision),
                false => DataType::Json,
            },
            _ => DataType::Spatial(self.word(&SPATIAL)),
        }
    }

    fn column_option(&mut self, h: usize, before: &[ColumnOption]) -> ColumnOption {
        let is_generated = before.iter().any(|option| matches!(option, ColumnOption::Generated { .. }));
        match self.below(15) {
            0 => ColumnOption::Null,
            1 => ColumnOption::NotNull,
            2 | 3 => ColumnOption::Default(self.default_value(h)),
            4 => ColumnOption::OnUpdateNow(self.number()),
            5 => ColumnOption::AutoIncrement,
            6 => ColumnOption::PrimaryKey,
            7 => ColumnOption::Unique,
            8 => ColumnOption::Comment(self.text()),
            9 => ColumnOption::Collate(self.collation()),
            10 => ColumnOption::Visible(self.flag()),
            11 if !is_generated => ColumnOption::Generated { expr: self.expr(h), stored: self.flag() },
            12 => ColumnOption::Check(self.check(h)),
            13 => ColumnOption::References(self.references()),
            _ => {
                let (name, value) = match self.below(5) {
                    0 => ("column_format", "FIXED".to_owned()),
                    1 => ("storage", "disk".to_owned()),
                    2 => ("engine_attribute", self.text()),
                    3 => ("secondary_engine_attribute", self.text()),
                    _ => ("srid", "4326".to_owned()),
                };
                ColumnOption::Other { name: name.to_owned(), value }
            }
        }
    }

    fn default_value(&mut self, h: usize) -> DefaultValue {
        match self.below(5) {
            0 => DefaultValue::Now(self.number()),
            1 => DefaultValue::Expression(self.expr(h)),
            2 => {
                let number = self.word(&["1.5", ".5", "0"]);
                let literal = if number == "0" { Literal::Integer(0) } else { Literal::Decimal(number) };
                let operand = Box::new(made(ExprKind::Literal(literal)));
                let op = self.pick(&[UnaryOp::Plus, UnaryOp::Minus]);
                DefaultValue::Constant(made(ExprKind::Unary { op, operand }))
            }
            3 => {
                let literal = Literal::String(self.text());
                let charset = self.pick(&CHARSETS).to_owned();
                DefaultValue::Constant(made(ExprKind::Introduced { charset, literal }))
            }
            _ => DefaultValue::Constant(made(ExprKind::Literal(self.literal()))),
        }
    }

    fn check(&mut self, h: usize) -> Check {
        Check { name: self.option(Random::ident), expr: self.expr(h), enforced: self.flag() }
    }

    fn references(&mut self) -> References {
        let action = |random: &mut Random| {
            random.pick(&[
                ReferentialAction::Restrict,
                ReferentialAction::Cascade,
                ReferentialAction::SetNull,
                ReferentialAction::NoAction,
                ReferentialAction::SetDefault,
            ])
        };
        References {
            table: self.name(),
            columns: self.some_idents(),
            on_delete: self.option(action),
            on_update: self.option(action),
        }
    }

    fn constraint(&mut self, h: usize) -> TableConstraint {
        match self.below(4) {
            0 => TableConstraint::Check(self.check(h)),
            1 => TableConstraint::Foreign(ForeignKey {
                constraint: self.option(Random::ident),
                index: self.option(Random::ident),
                columns: self.idents(),
                references: self.references(),
            }),
            _ => TableConstraint::Index(self.index(h)),
        }
    }

    fn index(&mut self, h: usize) -> IndexDef {
        let kinds = [IndexKind::Primary, IndexKind::Unique, IndexKind::Plain, IndexKind::Fulltext, IndexKind::Spatial];
        let kind = self.pick(&kinds);
        let takes_constraint = matches!(kind, IndexKind::Primary | IndexKind::Unique);
        let constraint = if takes_constraint { self.option(Random::ident) } else { None };
        let name = self.option(Random::ident);
        let parts = self.list(1, 3, |random| {
            let key = match random.once_in(3) {
                true => PartKey::Expr(random.expr(h)),
                false => PartKey::Column { name: random.ident(), length: random.size() },
            };
            KeyPart { key, descending: random.flag() }
        });
        let options = IndexOptions {
            algorithm: self.option(|random| random.word(&["btree", "hash", "rtree"])),
            comment: self.option(Random::text),
            visible: self.option(Random::flag),
            key_block_size: self.option(Random::number),
            parser: self.option(|random| random.word(&["ngram", "odd name"])),
            engine_attribute: self.option(Random::text),
        };
        IndexDef { kind, constraint, name, parts, options }
    }

    fn table_option(&mut self) -> TableOption {
        let word = |text: &str| OptionValue::Word(text.to_owned());
        let (name, value) = match self.below(14) {
            0 => ("engine", word("InnoDB")),
            1 => ("engine", OptionValue::Text(self.text())),
            2 => ("charset", OptionValue::Word(self.charset())),
            3 => ("charset", word("DEFAULT")),
            4 => ("collate", OptionValue::Word(self.collation())),
            5 => ("comment", OptionValue::Text(self.text())),
            6 => ("auto_increment", OptionValue::Number(self.number())),
            7 => ("row_format", word("DYNAMIC")),
            8 => ("stats_persistent", word("DEFAULT")),
            9 => ("autoextend_size", word("4M")),
            10 => ("insert_method", word("LAST")),
            11 => ("union", OptionValue::Names(self.list(0, 2, Random::name))),
            12 => ("data directory", OptionValue::Text(self.text())),
            _ => ("storage", word("disk")),
        };
        TableOption { name: name.to_owned(), value }
    }

    fn position(&mut self) -> Option<Position> {
        self.option(|random| match random.flag() {
            true => Position::First,
            false => Position::After(random.ident()),
        })
    }

    fn alteration(&mut self, h: usize) -> Alteration {
        match self.below(22) {
            0 => Alteration::AddColumn { column: self.column(h), position: self.position() },
            1 => Alteration::Add(self.constraint(h)),
            2 => Alteration::DropColumn(self.ident()),
            3 => Alteration::DropIndex(self.ident()),
            4 => Alteration::DropPrimaryKey,
            5 => Alteration::DropForeignKey(self.ident()),
            6 => Alteration::DropCheck(self.ident()),
            7 => Alteration::DropConstraint(self.ident()),
            8 => Alteration::Modify { column: self.column(h), position: self.position() },
            9 => Alteration::Change { old: self.ident(), column: self.column(h), position: self.position() },
            10 => {
                let column = self.ident();
                let default = self.default_value(h);
                let default = Some(default).filter(|default| !matches!(default, DefaultValue::Now(_)));
                Alteration::AlterDefault { column, default }
            }
            11 => Alteration::ColumnVisible { column: self.ident(), visible: self.flag() },
            12 => Alteration::RenameColumn { from: self.ident(), to: self.ident() },
            13 => Alteration::RenameIndex { from: self.ident(), to: self.ident() },
            14 => Alteration::RenameTable(self.name()),
            15 => Alteration::Enforce { constraint: self.ident(), enforced: self.flag() },
            16 => Alteration::IndexVisible { index: self.ident(), visible: self.flag() },
            17 => Alteration::Option(self.table_option()),
            18 => {
                Alteration::Convert { charset: self.option(Random::charset), collation: self.option(Random::collation) }
            }
            19 => Alteration::Rebuild,
            20 => Alteration::OrderBy(self.idents()),
            _ => {
                let (name, value) = self.pick(&[
                    ("algorithm", "INPLACE"),
                    ("algorithm", "DEFAULT"),
                    ("lock", "NONE"),
                    ("validation", "WITHOUT"),
                    ("keys", "ENABLE"),
                ]);
                Alteration::Hint { name: name.to_owned(), value: value.to_owned() }
            }
        }
    }

    fn create_view(&mut self, h: usize) -> CreateView {
        let alter = self.flag();
        CreateView {
            or_replace: !alter && self.flag(),
            alter,
            algorithm: self.pick(&[ViewAlgorithm::Undefined, ViewAlgorithm::Merge, ViewAlgorithm::Temptable]),
            definer: self.option(Random::user_name),
            invoker: self.flag(),
            name: self.name(),
            columns: self.some_idents(),
            query: Box::new(self.query(h)),
            check: self.pick(&[ViewCheck::None, ViewCheck::Local, ViewCheck::Cascaded]),
        }
    }

    /// A value of SET that is no name: names are words there.
    fn set_value(&mut self, h: usize) -> Expr {
        match self.expr(h) {
            Expr { kind: ExprKind::Column(_), .. } => made(ExprKind::Literal(Literal::String(self.text()))),
            value => value,
        }
    }

    fn settings(&mut self, h: usize) -> Vec<Setting> {
        let scope = self.pick(&[Scope::Session, Scope::Global, Scope::Next]);
        if self.once_in(4) {
            // Each at most once.
            let level = Setting::Isolation { scope, level: self.word(&["READ-COMMITTED", "SERIALIZABLE"]) };
            let access = Setting::Access { scope, read_only: self.flag() };
            return match self.below(4) {
                0 => vec![level],
                1 => vec![access],
                2 => vec![level, access],
                _ => vec![access, level],
            };
        }
        self.list(1, 3, |random| {
            let scope = random.pick(&[Scope::Session, Scope::Global, Scope::Persist]);
            match random.below(8) {
                0..=2 => {
                    let (scope, name) = match random.once_in(5) {
                        true => (Scope::Next, "transaction_isolation".to_owned()),
                        false => (scope, random.word(&["sql_mode", "hot.key_buffer_size", "password_history"])),
                    };
                    Setting::System { scope, name, value: random.set_value(h) }
                }
                3 => Setting::Default { scope, name: random.word(&["sql_mode", "autocommit"]) },
                4 | 5 => Setting::User { name: random.variable(), value: random.expr(h) },
                6 => {
                    let charset = random.option(Random::charset);
                    let collation = charset.as_ref().and_then(|_| random.option(Random::collation));
                    Setting::Names { charset, collation }
                }
                _ => Setting::CharacterSet(random.option(Random::charset)),
            }
        })
    }

    fn show(&mut self, h: usize) -> Show {
        let (flag, schema) = (self.flag(), self.option(Random::name_text));
        let (what, takes_pattern) = match self.below(31) {
            0 => (Shown::Databases, true),
            1 => (Shown::Tables { schema, full: flag }, true),
            2 => (Shown::TableStatus { schema }, true),
            3 => (Shown::Columns { table: self.name(), full: flag }, true),
            4 => (Shown::Index { table: self.name() }, false),
            5 => (Shown::CreateTable(self.name()), false),
            6 => (Shown::CreateDatabase { name: self.name_text(), if_not_exists: flag }, false),
            7 => (Shown::Variables { global: flag }, true),
            8 => (Shown::Status { global: flag }, true),
            9 | 10 => {
                let count = self.flag();
                let limit = if count { None } else { self.option(|random| (random.number(), random.number())) };
                (Shown::Warnings { errors: flag, count, limit }, false)
            }
            11 => (Shown::Engines, false),
            12 => (Shown::Collation, true),
            13 => (Shown::Charset, true),
            14 => (Shown::Processlist, false),
            15 => {
                let of = self.option(Random::user_name);
                let using = if of.is_some() && flag { self.user_names() } else { Vec::new() };
                (Shown::Grants { of, using }, false)
            }
            16 => (Shown::CreateUser(self.user_name()), false),
            17 => (Shown::CreateView(self.name()), false),
            18 => (Shown::Privileges, false),
            19 => (Shown::EngineStatus("InnoDB".to_owned()), false),
            20 => (Shown::Plugins, false),
            21 => (Shown::OpenTables, true),
            22 => (Shown::Triggers, true),
            23 => (Shown::Events, true),
            24 => (Shown::FunctionStatus, true),
            25 => (Shown::ProcedureStatus, true),
            26 => (Shown::MasterStatus, false),
            27 => (Shown::ReplicaStatus, false),
            28 => (Shown::Replicas, false),
            29 => (Shown::BinaryLogs, false),
            _ => (Shown::Profiles, false),
        };
        let pattern = match self.below(3) {
            0 if takes_pattern => Some(Pattern::Like(self.text())),
            1 if takes_pattern => Some(Pattern::Where(Box::new(self.expr(h)))),
            _ => None,
        };
        Show { what, pattern }
    }

    fn explain(&mut self, h: usize) -> Statement {
        let analyze = self.flag();
        let format = self.option(|random| random.word(&["tree", "json", "traditional"]));
        let statement = match self.below(5) {
            0 => return Statement::Describe { table: self.name(), like: self.option(Random::text) },
            1 => Statement::Insert(Box::new(self.insert(h))),
            2 => Statement::Update(Box::new(self.update(h))),
            3 => Statement::Delete(Box::new(self.delete(h))),
            _ => Statement::Query(Box::new(self.query(h))),
        };
        Statement::Explain { statement: Box::new(statement), analyze, format }
    }

    fn transaction(&mut self) -> Statement {
        let chain = self.option(Random::flag);
        let release = if chain == Some(true) { None } else { self.option(Random::flag) };
        let completion = Completion { chain, release };
        match self.below(6) {
            0 => Statement::Begin { read_only: self.option(Random::flag), snapshot: self.flag() },
            1 => Statement::Commit(completion),
            2 => Statement::Rollback(completion),
            3 => Statement::Savepoint(self.name_text()),
            4 => Statement::RollbackTo(self.name_text()),
            _ => Statement::Release(self.name_text()),
        }
    }

    fn locks(&mut self) -> Statement {
        match self.below(4) {
            0 => Statement::LockAll,
            1 => Statement::UnlockTables,
            _ => Statement::LockTables(self.list(1, 2, |random| TableLock {
                table: random.name(),
                alias: random.option(Random::name_text),
                write: random.flag(),
            })),
        }
    }

    fn prepared(&mut self) -> Statement {
        let name = self.name_text();
        match self.below(4) {
            0 => Statement::Prepare { name, source: PrepareSource::Text(self.text()) },
            1 => Statement::Prepare { name, source: PrepareSource::Variable(self.variable()) },
            2 => Statement::Execute { name, using: self.list(0, 2, Random::variable) },
            _ => Statement::Deallocate(name),
        }
    }

    fn maintain(&mut self) -> Statement {
        let what = self.pick(&[
            Maintenance::Analyze,
            Maintenance::Check,
            Maintenance::Optimize,
            Maintenance::Repair,
            Maintenance::Checksum(true),
            Maintenance::Checksum(false),
        ]);
        let tables = self.names();
        let mut histograms = None;
        if what == Maintenance::Analyze && self.flag() {
            let columns = self.list(1, 2, Random::name_text);
            let update = self.flag();
            histograms = Some(if update { Histograms::Update(columns, 7) } else { Histograms::Drop(columns) });
        }
        Statement::Maintain { what, tables, histograms }
    }

    fn user_name(&mut self) -> UserName {
        if self.once_in(5) {
            return UserName::Current;
        }
        UserName::Named {
            user: self.word(&["u", "", "it's", "a`b", "U"]),
            host: self.word(&["%", "localhost", "", "10.0.0.0/8"]),
        }
    }

    fn user_names(&mut self) -> Vec<UserName> {
        self.list(1, 2, Random::user_name)
    }

    /// The current user is no role.
    fn role_names(&mut self) -> Vec<UserName> {
        let user = self.word(&["r", "it's", "R"]);
        vec![UserName::Named { user, host: self.word(&["%", "localhost"]) }]
    }

    fn users(&mut self) -> Vec<User> {
        self.list(1, 2, |random| {
            let name = random.user_name();
            let secret = random.option(|random| {
                let plugin = random.word(&["mysql_native_password", "caching_sha2_password"]);
                match random.below(5) {
                    0 => Secret::Password { plugin: None, text: random.text() },
                    1 => Secret::Password { plugin: Some(plugin), text: random.text() },
                    2 => Secret::Digest { plugin, bytes: random.bytes() },
                    3 => Secret::Digest { plugin, bytes: random.text().into_bytes() },
                    _ => Secret::Plugin(plugin),
                }
            });
            User { name, secret }
        })
    }

    fn role_choice(&mut self) -> RoleChoice {
        match self.below(5) {
            0 => RoleChoice::None,
            1 => RoleChoice::All,
            2 => RoleChoice::AllExcept(self.role_names()),
            3 => RoleChoice::Default,
            _ => RoleChoice::List(self.role_names()),
        }
    }

    fn options(&mut self) -> Options {
        // PASSWORD EXPIRE NEVER is the same as nothing.
        let expired = self.option(|_| true);
        Options { locked: self.option(Random::flag), expired, needs_tls: self.option(Random::flag) }
    }

    fn given(&mut self) -> Vec<Given> {
        if self.once_in(5) {
            return vec![Given { words: "ALL".to_owned(), columns: Vec::new() }];
        }
        self.list(1, 3, |random| {
            let words: String = random.word(&["SELECT", "CREATE TEMPORARY TABLES", "BACKUP_ADMIN"]);
            let takes_columns = words == "SELECT" && random.once_in(3);
            let columns = if takes_columns { random.list(1, 2, Random::name_text) } else { Vec::new() };
            Given { words, columns }
        })
    }

    fn privilege_level(&mut self) -> Level {
        match self.below(4) {
            0 => Level::Server,
            1 => Level::Database(self.option(Random::name_text)),
            _ => Level::Table(self.name()),
        }
    }

    fn accounting(&mut self) -> Accounting {
        let (if_exists, flag) = (self.flag(), self.flag());
        let (names, others) = (self.user_names(), self.user_names());
        match self.below(13) {
            0 => Accounting::CreateUser {
                users: self.users(),
                if_not_exists: if_exists,
                options: self.options(),
                default_roles: self.option(Random::role_choice),
            },
            1 => Accounting::AlterUser { users: self.users(), if_exists, options: self.options() },
            2 => Accounting::DropUser { names, if_exists, roles: flag },
            3 => Accounting::RenameUser(self.list(1, 2, |random| (random.user_name(), random.user_name()))),
            4 => Accounting::SetPassword { name: self.user_name(), password: self.text() },
            5 => Accounting::CreateRole { names: self.role_names(), if_not_exists: if_exists },
            6 => {
                let (given, level) = (self.given(), self.privilege_level());
                Accounting::Grant { given, level, to: names, grant_option: flag }
            }
            7 => {
                let (given, level) = (self.given(), self.privilege_level());
                Accounting::Revoke { given, level, from: names, if_exists, ignore_unknown: flag }
            }
            8 => Accounting::RevokeAll { from: names, if_exists, ignore_unknown: flag },
            9 => Accounting::GrantRoles { roles: self.role_names(), to: others, admin_option: flag },
            10 => Accounting::RevokeRoles { roles: self.role_names(), from: others, if_exists, ignore_unknown: flag },
            11 => Accounting::SetDefaultRole { roles: self.role_choice(), of: names },
            _ => Accounting::SetRole(self.role_choice()),
        }
    }
}

//! Definitions of tables, indexes and views, and their changes.

use std::fmt::{self, Display, Formatter};

use super::expr::Signed;
use super::{Clause, Commas, Length, Listed, Lower, Precision, Text, Texts, Word, when};
use crate::tree::*;

impl Display for CreateTable {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let CreateTable { temporary, if_not_exists, name, like, columns, constraints, options, duplicates, query } =
            self;
        let temporary = when(*temporary, "temporary ");
        write!(f, "create {temporary}table {}{name}", when(*if_not_exists, "if not exists "))?;
        Clause(" like ", like.as_ref()).fmt(f)?;
        if !columns.is_empty() || !constraints.is_empty() {
            let both = !columns.is_empty() && !constraints.is_empty();
            write!(f, " ({}{}{})", Commas(columns), when(both, ","), Commas(constraints))?;
        }
        options.iter().try_for_each(|option| write!(f, " {option}"))?;
        duplicates.fmt(f)?;
        Clause(" as ", query.as_deref()).fmt(f)
    }
}

impl Display for ColumnDef {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let ColumnDef { name, ty, options } = self;
        write!(f, "{name} {ty}")?;
        options.iter().try_for_each(|option| write!(f, " {option}"))
    }
}

impl Display for ColumnType {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let ColumnType { data, charset, binary, collation } = self;
        let (charset, collation) = (charset.as_deref().map(Word), collation.as_deref().map(Word));
        write!(f, "{data}{}", Clause(" character set ", charset.as_ref()))?;
        write!(f, "{}{}", when(*binary, " binary"), Clause(" collate ", collation.as_ref()))
    }
}

impl Display for DataType {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            DataType::Integer { size, width, sign } => write!(f, "{size}{}{sign}", Length(*width)),
            DataType::Boolean => f.write_str("boolean"),
            DataType::Serial => f.write_str("serial"),
            DataType::Decimal { precision, scale, sign } => {
                write!(f, "decimal{}{sign}", Precision(*precision, *scale))
            }
            DataType::Float { precision, scale, sign } => write!(f, "float{}{sign}", Precision(*precision, *scale)),
            DataType::Double { digits, sign } => {
                let (digits, scale) = digits.unzip();
                write!(f, "double{}{sign}", Precision(digits, scale))
            }
            DataType::Bit(width) => write!(f, "bit{}", Length(*width)),
            DataType::Char(length) => write!(f, "char{}", Length(*length)),
            DataType::VarChar(length) => write!(f, "varchar({length})"),
            DataType::Binary(length) => write!(f, "binary{}", Length(*length)),
            DataType::VarBinary(length) => write!(f, "varbinary({length})"),
            DataType::Text { size, length } => write!(f, "{size}text{}", Length(*length)),
            DataType::Blob { size, length } => write!(f, "{size}blob{}", Length(*length)),
            DataType::Enum(members) => write!(f, "enum({})", Texts(members)),
            DataType::Set(members) => write!(f, "set({})", Texts(members)),
            DataType::Date => f.write_str("date"),
            DataType::Time(scale) => write!(f, "time{}", Length(*scale)),
            DataType::DateTime(scale) => write!(f, "datetime{}", Length(*scale)),
            DataType::Timestamp(scale) => write!(f, "timestamp{}", Length(*scale)),
            DataType::Year(width) => write!(f, "year{}", Length(*width)),
            DataType::Json => f.write_str("json"),
            DataType::Spatial(name) => f.write_str(name),
        }
    }
}

/// The attributes, each with a space before it.
impl Display for Sign {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Sign { unsigned, zerofill } = self;
        write!(f, "{}{}", when(*unsigned, " unsigned"), when(*zerofill, " zerofill"))
    }
}

impl Display for IntegerSize {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str(match self {
            IntegerSize::Tiny => "tinyint",
            IntegerSize::Small => "smallint",
            IntegerSize::Medium => "mediumint",
            IntegerSize::Int => "int",
            IntegerSize::Big => "bigint",
        })
    }
}

/// The word before `text` and `blob`.
impl Display for TextSize {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str(match self {
            TextSize::Tiny => "tiny",
            TextSize::Normal => "",
            TextSize::Medium => "medium",
            TextSize::Long => "long",
        })
    }
}

impl Display for ColumnOption {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            ColumnOption::Null => f.write_str("null"),
            ColumnOption::NotNull => f.write_str("not null"),
            ColumnOption::Default(value) => write!(f, "default {value}"),
            ColumnOption::OnUpdateNow(scale) => write!(f, "on update {}", Now(*scale)),
            ColumnOption::AutoIncrement => f.write_str("auto_increment"),
            ColumnOption::PrimaryKey => f.write_str("primary key"),
            ColumnOption::Unique => f.write_str("unique key"),
            ColumnOption::Comment(text) => write!(f, "comment {}", Text(text)),
            ColumnOption::Collate(name) => write!(f, "collate {}", Word(name)),
            ColumnOption::Visible(visible) => f.write_str(visibility(*visible)),
            ColumnOption::Generated { expr, stored } => {
                write!(f, "generated always as ({expr}) {}", if *stored { "stored" } else { "virtual" })
            }
            ColumnOption::Check(check) => check.fmt(f),
            ColumnOption::References(references) => references.fmt(f),
            ColumnOption::Other { name, value } => match &**name {
                "engine_attribute" | "secondary_engine_attribute" => write!(f, "{name} {}", Text(value)),
                _ => write!(f, "{name} {value}"),
            },
        }
    }
}

fn visibility(visible: bool) -> &'static str {
    if visible { "visible" } else { "invisible" }
}

struct Now(u64);

impl Display for Now {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Now(scale) = *self;
        write!(f, "current_timestamp{}", Length(Some(scale).filter(|scale| *scale > 0)))
    }
}

impl Display for DefaultValue {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            DefaultValue::Constant(value) => Signed(value).fmt(f),
            DefaultValue::Now(scale) => Now(*scale).fmt(f),
            DefaultValue::Expression(expr) => write!(f, "({expr})"),
        }
    }
}

impl Display for Check {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Check { name, expr, enforced } = self;
        Constraint(name.as_ref()).fmt(f)?;
        write!(f, "check ({expr}){}", when(!enforced, " not enforced"))
    }
}

/// `CONSTRAINT name`, with a space behind it.
struct Constraint<'a>(Option<&'a Ident>);

impl Display for Constraint<'_> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Constraint(name) = self;
        name.iter().try_for_each(|name| write!(f, "constraint {name} "))
    }
}

impl Display for TableConstraint {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            TableConstraint::Index(index) => index.fmt(f),
            TableConstraint::Foreign(key) => key.fmt(f),
            TableConstraint::Check(check) => check.fmt(f),
        }
    }
}

impl Display for IndexDef {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let IndexDef { kind, constraint, name, parts, options } = self;
        Constraint(constraint.as_ref()).fmt(f)?;
        f.write_str(match kind {
            IndexKind::Primary => "primary key",
            IndexKind::Unique => "unique key",
            IndexKind::Plain => "key",
            IndexKind::Fulltext => "fulltext key",
            IndexKind::Spatial => "spatial key",
        })?;
        write!(f, "{} ({}){options}", Clause(" ", name.as_ref()), Commas(parts))
    }
}

impl Display for KeyPart {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let KeyPart { key, descending } = self;
        write!(f, "{key}{}", when(*descending, " desc"))
    }
}

impl Display for PartKey {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            PartKey::Column { name, length } => write!(f, "{name}{}", Length(*length)),
            PartKey::Expr(expr) => write!(f, "({expr})"),
        }
    }
}

/// The options, each with a space before it.
impl Display for IndexOptions {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let IndexOptions { algorithm, comment, visible, key_block_size, parser, engine_attribute } = self;
        Clause(" using ", algorithm.as_ref()).fmt(f)?;
        Clause(" key_block_size=", key_block_size.as_ref()).fmt(f)?;
        Clause(" with parser ", parser.as_deref().map(Word).as_ref()).fmt(f)?;
        Clause(" comment ", comment.as_deref().map(Text).as_ref()).fmt(f)?;
        Clause(" engine_attribute ", engine_attribute.as_deref().map(Text).as_ref()).fmt(f)?;
        Clause(" ", visible.map(visibility).as_ref()).fmt(f)
    }
}

impl Display for ForeignKey {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let ForeignKey { constraint, index, columns, references } = self;
        Constraint(constraint.as_ref()).fmt(f)?;
        write!(f, "foreign key{} ({}) {references}", Clause(" ", index.as_ref()), Commas(columns))
    }
}

impl Display for References {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let References { table, columns, on_delete, on_update } = self;
        write!(f, "references {table}{}", Listed(" ", columns))?;
        Clause(" on delete ", on_delete.as_ref()).fmt(f)?;
        Clause(" on update ", on_update.as_ref()).fmt(f)
    }
}

impl Display for ReferentialAction {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str(match self {
            ReferentialAction::Restrict => "restrict",
            ReferentialAction::Cascade => "cascade",
            ReferentialAction::SetNull => "set null",
            ReferentialAction::NoAction => "no action",
            ReferentialAction::SetDefault => "set default",
        })
    }
}

impl Display for TableOption {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let TableOption { name, value } = self;
        match (&**name, value) {
            ("storage", OptionValue::Word(word)) => write!(f, "storage {word}"),
            // `4M` is a word in spite of its digit.
            ("autoextend_size" | "key_block_size", OptionValue::Word(word)) => write!(f, "{name}={word}"),
            _ => write!(f, "{name}={value}"),
        }
    }
}

impl Display for OptionValue {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            OptionValue::Number(number) => write!(f, "{number}"),
            OptionValue::Word(word) => Word(word).fmt(f),
            OptionValue::Text(text) => Text(text).fmt(f),
            OptionValue::Names(names) => write!(f, "({})", Commas(names)),
        }
    }
}

/// An index of its own. The name and the table stand between the kind and the parts.
impl Display for CreateIndex {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let CreateIndex { table, index } = self;
        let IndexDef { kind, constraint: _, name, parts, options } = index;
        f.write_str(match kind {
            IndexKind::Primary | IndexKind::Plain => "create index",
            IndexKind::Unique => "create unique index",
            IndexKind::Fulltext => "create fulltext index",
            IndexKind::Spatial => "create spatial index",
        })?;
        write!(f, "{} on {table} ({}){options}", Clause(" ", name.as_ref()), Commas(parts))
    }
}

impl Display for Alteration {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Alteration::AddColumn { column, position } => {
                write!(f, "add column {column}{}", Clause(" ", position.as_ref()))
            }
            Alteration::Add(constraint) => write!(f, "add {constraint}"),
            Alteration::DropColumn(name) => write!(f, "drop column {name}"),
            Alteration::DropIndex(name) => write!(f, "drop index {name}"),
            Alteration::DropPrimaryKey => f.write_str("drop primary key"),
            Alteration::DropForeignKey(name) => write!(f, "drop foreign key {name}"),
            Alteration::DropCheck(name) => write!(f, "drop check {name}"),
            Alteration::DropConstraint(name) => write!(f, "drop constraint {name}"),
            Alteration::Modify { column, position } => {
                write!(f, "modify column {column}{}", Clause(" ", position.as_ref()))
            }
            Alteration::Change { old, column, position } => {
                write!(f, "change column {old} {column}{}", Clause(" ", position.as_ref()))
            }
            Alteration::AlterDefault { column, default: Some(default) } => {
                write!(f, "alter column {column} set default {default}")
            }
            Alteration::AlterDefault { column, default: None } => write!(f, "alter column {column} drop default"),
            Alteration::ColumnVisible { column, visible } => {
                write!(f, "alter column {column} set {}", visibility(*visible))
            }
            Alteration::RenameColumn { from, to } => write!(f, "rename column {from} to {to}"),
            Alteration::RenameIndex { from, to } => write!(f, "rename index {from} to {to}"),
            Alteration::RenameTable(name) => write!(f, "rename to {name}"),
            Alteration::Enforce { constraint, enforced } => {
                write!(f, "alter constraint {constraint}{} enforced", when(!enforced, " not"))
            }
            Alteration::IndexVisible { index, visible } => write!(f, "alter index {index} {}", visibility(*visible)),
            Alteration::Option(option) => option.fmt(f),
            Alteration::Convert { charset, collation } => {
                let (charset, collation) = (charset.as_deref().map(Word), collation.as_deref().map(Word));
                f.write_str(when(charset.is_none(), "convert to character set default"))?;
                Clause("convert to character set ", charset.as_ref()).fmt(f)?;
                Clause(" collate ", collation.as_ref()).fmt(f)
            }
            Alteration::Rebuild => f.write_str("force"),
            Alteration::OrderBy(columns) => write!(f, "order by {}", Commas(columns)),
            Alteration::Hint { name, value } => match &**name {
                "algorithm" | "lock" => write!(f, "{name}={}", Lower(value)),
                // `enable keys`, `without validation`
                _ => write!(f, "{} {name}", Lower(value)),
            },
        }
    }
}

impl Display for Position {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Position::First => f.write_str("first"),
            Position::After(column) => write!(f, "after {column}"),
        }
    }
}

impl Display for CreateView {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let CreateView { or_replace, alter, algorithm, definer, invoker, name, columns, query, check } = self;
        f.write_str(if *alter { "alter" } else { "create" })?;
        f.write_str(when(*or_replace, " or replace"))?;
        write!(f, " algorithm={algorithm}")?;
        Clause(" definer=", definer.as_ref()).fmt(f)?;
        write!(f, " sql security {}", if *invoker { "invoker" } else { "definer" })?;
        write!(f, " view {name}{} as {query}{check}", Listed(" ", columns))
    }
}

impl Display for ViewAlgorithm {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str(match self {
            ViewAlgorithm::Undefined => "undefined",
            ViewAlgorithm::Merge => "merge",
            ViewAlgorithm::Temptable => "temptable",
        })
    }
}

/// The clause, with a space before it.
impl Display for ViewCheck {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str(match self {
            ViewCheck::None => "",
            ViewCheck::Local => " with local check option",
            ViewCheck::Cascaded => " with cascaded check option",
        })
    }
}

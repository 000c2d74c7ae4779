"""SQLAlchemy's ORM over PyMySQL and Connector/Python: types there and back, relationships and cascades, bulk inserts, savepoints, upserts, queries of every shape,
and reflection: what is read back of a schema makes the same schema."""

import datetime
import decimal
import enum

import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.dialects import mysql

from beluga import Server, Tally

tally = Tally()


class Base(orm.DeclarativeBase):
    pass


class Colour(enum.Enum):
    red = 1
    blue = 2


has = sa.Table(
    "has_tag", Base.metadata,
    sa.Column("article_id", sa.Integer, primary_key=True), sa.Column("tag_id", sa.Integer, primary_key=True),
)


class Author(Base):
    __tablename__ = "author"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str] = orm.mapped_column(sa.String(50), unique=True)
    born: orm.Mapped[datetime.date | None]
    made: orm.Mapped[datetime.datetime] = orm.mapped_column(server_default=sa.func.now())
    articles: orm.Mapped[list["Article"]] = orm.relationship(
        back_populates="author", cascade="all, delete-orphan", primaryjoin="Author.id == foreign(Article.author_id)", order_by="Article.id")


class Article(Base):
    __tablename__ = "article"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    author_id: orm.Mapped[int] = orm.mapped_column(index=True)
    title: orm.Mapped[str] = orm.mapped_column(sa.String(100, collation="utf8mb4_bin"))
    body: orm.Mapped[str | None] = orm.mapped_column(sa.Text, deferred=True)
    words: orm.Mapped[int] = orm.mapped_column(default=0)
    version: orm.Mapped[int] = orm.mapped_column(nullable=False)
    author: orm.Mapped[Author] = orm.relationship(back_populates="articles", primaryjoin="Author.id == foreign(Article.author_id)")
    tags: orm.Mapped[list["Tag"]] = orm.relationship(
        secondary=has, primaryjoin=lambda: Article.id == orm.foreign(has.c.article_id), secondaryjoin=lambda: Tag.id == orm.foreign(has.c.tag_id), order_by="Tag.id")
    __mapper_args__ = {"version_id_col": version}
    __table_args__ = (sa.UniqueConstraint("author_id", "title", name="once"), sa.CheckConstraint("words >= 0", name="some_words"), sa.Index("by_words", sa.desc("words"), "title"))


class Tag(Base):
    __tablename__ = "tag"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    word: orm.Mapped[str] = orm.mapped_column(sa.String(20))


class Kinds(Base):
    __tablename__ = "kinds"
    id: orm.Mapped[int] = orm.mapped_column(sa.BigInteger, primary_key=True)
    small: orm.Mapped[int | None] = orm.mapped_column(mysql.TINYINT(unsigned=True))
    big: orm.Mapped[int | None] = orm.mapped_column(mysql.BIGINT(unsigned=True))
    price: orm.Mapped[decimal.Decimal | None] = orm.mapped_column(sa.Numeric(20, 6))
    ratio: orm.Mapped[float | None] = orm.mapped_column(sa.Double)
    truth: orm.Mapped[bool | None]
    blob: orm.Mapped[bytes | None] = orm.mapped_column(mysql.LONGBLOB)
    bits: orm.Mapped[int | None] = orm.mapped_column(mysql.BIT(1))
    doc: orm.Mapped[dict | None] = orm.mapped_column(sa.JSON)
    colour: orm.Mapped[Colour | None]
    several: orm.Mapped[set | None] = orm.mapped_column(mysql.SET("x", "y", "z"))
    day: orm.Mapped[datetime.date | None]
    at: orm.Mapped[datetime.datetime | None] = orm.mapped_column(mysql.DATETIME(fsp=6))
    stamp: orm.Mapped[datetime.datetime | None] = orm.mapped_column(mysql.TIMESTAMP(fsp=3))
    clock: orm.Mapped[datetime.time | None]
    long_: orm.Mapped[str | None] = orm.mapped_column("long", mysql.LONGTEXT)
    year: orm.Mapped[int | None] = orm.mapped_column(mysql.YEAR)


def tables(engine):
    Base.metadata.create_all(engine)
    Base.metadata.create_all(engine)
    found = sa.inspect(engine)
    tally.equal("tables", sorted(found.get_table_names()), sorted(Base.metadata.tables))
    tally.equal("has table", (found.has_table("author"), found.has_table("nobody")), (True, False))


def types(engine):
    now = datetime.datetime(2026, 11, 21, 10, 11, 12, 345678)
    row = dict(small=255, big=2**64 - 1, price=decimal.Decimal("-12345678901234.567890"), ratio=0.1, truth=True, blob=bytes(range(256)), bits=1, doc={"a": [1, None, "ü"], "b": {"c": 1.5}},
               colour=Colour.blue, several={"x", "z"}, day=now.date(), at=now, stamp=now.replace(microsecond=345000), clock=datetime.time(1, 2, 3), long_="\U0001f40b" * 1000, year=2026)
    with orm.Session(engine) as session:
        session.add(Kinds(**row))
        session.add(Kinds())
        session.commit()
    with orm.Session(engine) as session:
        one, nothing = session.scalars(sa.select(Kinds).order_by(Kinds.id)).all()
        for name, expected in row.items():
            tally.equal(f"type of {name}", getattr(one, name), expected)
            tally.equal(f"no {name}", getattr(nothing, name), None)
        tally.equal("inside JSON", session.scalar(sa.select(Kinds.doc["a"][2].as_string()).where(Kinds.id == one.id)), "ü")
        tally.equal("by JSON", session.scalar(sa.select(Kinds.id).where(Kinds.doc["b"]["c"].as_float() > 1)), one.id)


def relations(engine):
    with orm.Session(engine) as session:
        tags = [Tag(word=word) for word in ("old", "new", "odd")]
        ann = Author(name="Ann", articles=[Article(title=f"A{n}", words=n * 10, tags=tags[:n]) for n in range(4)])
        bob = Author(name="Bob", born=datetime.date(1990, 1, 2), articles=[Article(title="B", words=99, body="long " * 100)])
        session.add_all([ann, bob, Author(name="Cid")])
        session.commit()
        tally.check("server default", ann.made is not None)
    with orm.Session(engine) as session:
        authors = session.scalars(sa.select(Author).options(orm.selectinload(Author.articles).selectinload(Article.tags)).order_by(Author.name)).all()
        tally.equal("selectin", [(a.name, [(x.title, len(x.tags)) for x in a.articles]) for a in authors], [("Ann", [("A0", 0), ("A1", 1), ("A2", 2), ("A3", 3)]), ("Bob", [("B", 0)]), ("Cid", [])])
        joined = session.scalars(sa.select(Author).options(orm.joinedload(Author.articles)).order_by(Author.name)).unique().all()
        tally.equal("joined", [len(a.articles) for a in joined], [4, 1, 0])
        counts = session.execute(sa.select(Author.name, sa.func.count(Article.id), sa.func.coalesce(sa.func.sum(Article.words), 0)).outerjoin(Author.articles).group_by(Author.id).order_by(sa.desc(sa.func.count(Article.id)), Author.name)).all()
        tally.equal("counts", [tuple(row) for row in counts], [("Ann", 4, 60), ("Bob", 1, 99), ("Cid", 0, 0)])
        lonely = session.scalars(sa.select(Author.name).where(~sa.exists().where(Article.author_id == Author.id))).all()
        tally.equal("not exists", lonely, ["Cid"])
        tally.equal("any", session.scalars(sa.select(Author.name).where(Author.articles.any(Article.words > 50))).all(), ["Bob"])
        best = sa.select(Article.author_id, sa.func.max(Article.words).label("most")).group_by(Article.author_id).subquery()
        tally.equal("derived", [tuple(r) for r in session.execute(sa.select(Author.name, best.c.most).join(best, best.c.author_id == Author.id).order_by(Author.name))], [("Ann", 30), ("Bob", 99)])
        numbers = sa.select(sa.literal(1).label("n")).cte("numbers", recursive=True)
        numbers = numbers.union_all(sa.select(numbers.c.n + 1).where(numbers.c.n < 5))
        tally.equal("recursive", session.scalars(sa.select(sa.func.sum(numbers.c.n))).one(), 15)
        ranked = sa.select(Article.title, sa.func.row_number().over(partition_by=Article.author_id, order_by=sa.desc(Article.words)).label("place")).subquery()
        tally.equal("window", sorted(session.scalars(sa.select(ranked.c.title).where(ranked.c.place == 1))), ["A3", "B"])
        both = sa.union_all(sa.select(Author.name.label("n")), sa.select(Tag.word)).subquery()
        tally.equal("union", session.scalar(sa.select(sa.func.count()).select_from(both)), 6)
        tally.equal("case", session.scalars(sa.select(sa.case((Article.words > 20, "long"), else_="short")).order_by(Article.id)).all(), ["short", "short", "short", "long", "long"])
        tally.equal("like", session.scalars(sa.select(Author.name).where(Author.name.ilike("%N%"))).all(), ["Ann"])
        tally.equal("contains", session.scalars(sa.select(Article.title).where(Article.title.contains("3", autoescape=True))).all(), ["A3"])
        tally.equal("in of nothing", session.scalars(sa.select(Author.id).where(Author.id.in_([]))).all(), [])
        tally.equal("many in", session.scalar(sa.select(sa.func.count()).select_from(Author).where(Author.id.in_(list(range(2000))))), 3)
        tally.equal("tuples", session.scalar(sa.select(sa.func.count()).select_from(Article).where(sa.tuple_(Article.author_id, Article.words).in_([(1, 10), (2, 99), (2, 1)]))), 2)
        tally.equal("page", session.scalars(sa.select(Article.title).order_by(Article.title).limit(2).offset(1)).all(), ["A1", "A2"])
        tally.equal("for update", session.scalars(sa.select(Author).where(Author.id == 1).with_for_update(skip_locked=True)).one().name, "Ann")
        tally.equal("first", session.query(Author).filter_by(name="Bob").first().born, datetime.date(1990, 1, 2))
        tally.equal("streamed", sum(1 for _ in session.execute(sa.select(Article.id).execution_options(yield_per=2))), 5)
    with orm.Session(engine) as session:
        ann = session.scalars(sa.select(Author).where(Author.name == "Ann")).one()
        ann.articles[3].words += 5
        ann.articles[3].tags.remove(ann.articles[3].tags[0])
        del ann.articles[0]
        session.commit()
        tally.equal("orphan", session.scalar(sa.select(sa.func.count()).select_from(Article)), 4)
        tally.equal("links", session.scalar(sa.select(sa.func.count()).select_from(has)), 5)
        tally.equal("version", session.scalar(sa.select(Article.version).where(Article.title == "A3")), 2)
        stale = session.scalars(sa.select(Article).where(Article.title == "A3")).one()
        with engine.begin() as other:
            other.execute(sa.update(Article.__table__).where(Article.__table__.c.title == "A3").values(version=9))
        session.expire_all()
        stale.words
        with engine.begin() as other:
            other.execute(sa.update(Article.__table__).where(Article.__table__.c.title == "A3").values(version=10))
        stale.words = 1
        try:
            session.commit()
            tally.check("stale", False)
        except orm.exc.StaleDataError:
            session.rollback()
            tally.check("stale", True)
        session.delete(session.get(Author, 2))
        session.commit()
        tally.equal("cascade", session.scalars(sa.select(Article.title).order_by(Article.id)).all(), ["A1", "A2", "A3"])


def changes(engine):
    with orm.Session(engine) as session:
        session.execute(sa.insert(Tag), [{"word": f"w{n}"} for n in range(2500)])
        tally.equal("bulk", session.scalar(sa.select(sa.func.count()).select_from(Tag).where(Tag.word.like("w%"))), 2500)
        session.bulk_insert_mappings(Tag, [{"word": "m"}] * 10)
        session.add_all([Tag(word="o") for _ in range(20)])
        session.flush()
        tally.equal("flushed", session.scalar(sa.select(sa.func.count()).select_from(Tag).where(Tag.word == "o")), 20)
        tally.equal("update", session.execute(sa.update(Tag).where(Tag.word == "m").values(word=sa.func.concat(Tag.word, "!"))).rowcount, 10)
        tally.equal("update again", session.execute(sa.update(Tag).where(Tag.word == "m!").values(word="m!")).rowcount, 10)
        tally.equal("delete", session.execute(sa.delete(Tag).where(Tag.word == "m!")).rowcount, 10)
        session.bulk_update_mappings(Tag, [{"id": row.id, "word": "ö"} for row in session.scalars(sa.select(Tag).where(Tag.word == "o"))])
        session.commit()
        tally.equal("bulk update", session.scalar(sa.select(sa.func.count()).select_from(Tag).where(Tag.word.collate("utf8mb4_bin") == "ö")), 20)
        upsert = mysql.insert(Author).values([{"name": "Ann", "born": datetime.date(1980, 5, 6)}, {"name": "Dan", "born": None}])
        upsert = upsert.on_duplicate_key_update(born=upsert.inserted.born)
        session.execute(upsert)
        session.commit()
        tally.equal("upsert", [tuple(r) for r in session.execute(sa.select(Author.name, Author.born).order_by(Author.name))], [("Ann", datetime.date(1980, 5, 6)), ("Cid", None), ("Dan", None)])
        session.execute(mysql.insert(Author).values(name="Ann").prefix_with("IGNORE"))
        session.execute(sa.insert(Tag).from_select(["word"], sa.select(Author.name)))
        tally.equal("from select", session.scalar(sa.select(sa.func.count()).select_from(Tag).where(Tag.word.in_(["Ann", "Cid", "Dan"]))), 3)
        session.commit()
        session.execute(sa.update(Article).where(Article.author_id == Author.id, Author.name == "Ann").values(words=Article.words + 1000), execution_options={"synchronize_session": False})
        tally.equal("update of a join", session.scalar(sa.select(sa.func.min(Article.words))), 1010)
        session.rollback()


def savepoints(engine):
    with orm.Session(engine) as session:
        session.add(Author(name="outer"))
        session.flush()
        for name in ("inner", "outer", "second"):
            try:
                with session.begin_nested():
                    session.add(Author(name=name))
                    session.flush()
            except sa.exc.IntegrityError as error:
                tally.equal("duplicate", (name, error.orig.args[0]), ("outer", 1062))
        session.commit()
        tally.equal("savepoints", session.scalars(sa.select(Author.name).where(Author.name.in_(["outer", "inner", "second"])).order_by(Author.name)).all(), ["inner", "outer", "second"])
        for values, code in (({"author_id": 1, "title": "c", "words": -1, "version": 1}, 3819), ({"author_id": 1, "title": None, "words": 1, "version": 1}, 1048), ({"author_id": 1, "title": "x" * 101, "words": 1, "version": 1}, 1406)):
            try:
                session.execute(sa.insert(Article.__table__).values(**values))
                tally.check(f"error {code}", False)
            except sa.exc.DBAPIError as error:
                tally.equal(f"error {code}", error.orig.args[0], code)
            session.rollback()
    for level in ("READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE", "AUTOCOMMIT"):
        with engine.connect().execution_options(isolation_level=level) as connection:
            expected = "REPEATABLE READ" if level == "AUTOCOMMIT" else level
            tally.equal(f"isolation {level}", (connection.scalar(sa.text("SELECT @@transaction_isolation")).replace("-", " "), connection.scalar(sa.text("SELECT @@autocommit"))), (expected, int(level == "AUTOCOMMIT")))


def reflection(engine):
    found = sa.inspect(engine)
    tally.equal("primary key", found.get_pk_constraint("has_tag")["constrained_columns"], ["article_id", "tag_id"])
    tally.equal("unique", [(u["name"], u["column_names"]) for u in found.get_unique_constraints("article")], [("once", ["author_id", "title"])])
    tally.equal("indexes", sorted((i["name"], tuple(i["column_names"]), i["unique"]) for i in found.get_indexes("article")), [("by_words", ("words", "title"), False), ("ix_article_author_id", ("author_id",), False), ("once", ("author_id", "title"), True)])
    tally.equal("checks", [(c["name"], c["sqltext"]) for c in found.get_check_constraints("article")], [("some_words", "(`words` >= 0)")])
    tally.equal("no foreign keys", found.get_foreign_keys("article"), [])
    tally.equal("no views", found.get_view_names(), [])
    tally.check("schemas", {"information_schema", "shop"} <= set(found.get_schema_names()), found.get_schema_names())
    columns = {c["name"]: c for c in found.get_columns("kinds")}
    tally.equal("reflected types", [repr(columns[name]["type"]) for name in ("id", "small", "big", "price", "blob", "bits", "doc", "at", "stamp", "year")],
                ["BIGINT()", "TINYINT(unsigned=True)", "BIGINT(unsigned=True)", "DECIMAL(precision=20, scale=6)", "LONGBLOB()", "BIT(length=1)", "JSON()", "DATETIME(fsp=6)", "TIMESTAMP(fsp=3)", "YEAR()"])
    tally.equal("reflected members", (columns["colour"]["type"].enums, columns["several"]["type"].values), (["red", "blue"], ("x", "y", "z")))
    tally.equal("reflected default", {c["name"]: c["default"] for c in found.get_columns("author")}["made"], "(now())")
    again = sa.MetaData()
    again.reflect(engine)
    tally.equal("reflected", sorted(again.tables), sorted(Base.metadata.tables))
    before = {name: sa.schema.CreateTable(table).compile(engine).string for name, table in again.tables.items()}
    Base.metadata.drop_all(engine)
    tally.equal("dropped", sa.inspect(engine).get_table_names(), [])
    again.create_all(engine)
    once_more = sa.MetaData()
    once_more.reflect(engine)
    for name, text in before.items():
        tally.equal(f"{name} made from what was read", sa.schema.CreateTable(once_more.tables[name]).compile(engine).string, text)
    once_more.drop_all(engine)


def main():
    with Server(mysql=True) as server:
        for driver in ("pymysql", "mysqlconnector"):
            url = f"mysql+{driver}://root@127.0.0.1:{server.mysql_port}/"
            with sa.create_engine(url).begin() as connection:
                connection.execute(sa.text("CREATE DATABASE IF NOT EXISTS shop"))
            engine = sa.create_engine(url + "shop", pool_pre_ping=True, pool_recycle=60)
            for part in (tables, types, relations, changes, savepoints, reflection):
                try:
                    part(engine)
                except Exception as error:
                    tally.check(f"{driver} {part.__name__}", False, repr(error)[:1500])
            Base.metadata.drop_all(engine)
            engine.dispose()


main()
tally.close()

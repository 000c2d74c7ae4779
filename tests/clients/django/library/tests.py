"""Everyday operations of a site, inside the transactions of Django's own test cases."""

import datetime
import decimal
import io
import os
import tempfile
import uuid

from django.contrib.auth.models import Group, Permission, User
from django.core.management import call_command
from django.db import IntegrityError, connection, models, transaction
from django.db.models import Avg, Case, Count, Exists, F, Max, Min, OuterRef, Prefetch, Q, Subquery, Sum, Value, When, Window
from django.db.models.functions import Coalesce, Concat, ExtractYear, Length, Lower, RowNumber, TruncMonth
from django.test import Client, TestCase, TransactionTestCase
from django.utils import timezone

from library.models import Author, Book, Label, Passport

UTC = datetime.timezone.utc


class Fields(TestCase):
    def test_every_kind_comes_back(self):
        author = Author.objects.create(name="Ann ü \U0001f40b", born=datetime.date(1900, 2, 28))
        key = uuid.uuid4()
        values = dict(title="T", kind="e", price=decimal.Decimal("123456789.125"), pages=4294967295, published=datetime.datetime(2026, 11, 21, 1, 2, 3, 456789, UTC),
                      data={"a": [1, None, True, 1.5, "ü"], "b": {"c": "d"}}, key=key, cover=bytes(range(256)), took=datetime.timedelta(days=-3, microseconds=7), at=datetime.time(23, 59, 59, 999999),
                      ip="2001:db8::1", score=-1.5e-10, big=-(2**63), small=65535, is_out=True, note="x" * 70000)
        book = Book.objects.create(author=author, **values)
        found = Book.objects.get(pk=book.pk)
        for name, value in values.items():
            self.assertEqual(getattr(found, name), value, name)
        for name, value in values.items():
            if name not in ("data",):
                self.assertTrue(Book.objects.filter(**{name: value}).exists(), name)

    def test_json_paths(self):
        author = Author.objects.create(name="A")
        for at, data in enumerate([{"a": 1, "l": [1, 2]}, {"a": "x", "o": {"k": None}}, {"a": None}, {}]):
            Book.objects.create(author=author, title=str(at), data=data)
        titles = lambda **where: sorted(Book.objects.filter(**where).values_list("title", flat=True))
        self.assertEqual(titles(data__a=1), ["0"])
        self.assertEqual(titles(data__a="x"), ["1"])
        self.assertEqual(titles(data__a=None), ["2"])
        self.assertEqual(titles(data__a__isnull=True), ["3"])
        self.assertEqual(titles(data__has_key="o"), ["1"])
        self.assertEqual(titles(data__l__1=2), ["0"])
        self.assertEqual(titles(data__contains={"a": 1}), ["0"])
        self.assertEqual(titles(data__o__k=None), ["1"])
        # In JSON a string is more than any number.
        self.assertEqual(titles(data__a__gt=0), ["0", "1"])


class Queries(TestCase):
    @classmethod
    def setUpTestData(cls):
        cls.ann, cls.bob, cls.cid = (Author.objects.create(name=name, born=born) for name, born in (("Ann", datetime.date(1980, 1, 1)), ("Bob", datetime.date(1990, 6, 1)), ("Cid", None)))
        cls.labels = Label.objects.bulk_create([Label(word=word) for word in ("old", "new", "odd")])
        cls.labels = list(Label.objects.order_by("pk"))
        for at in range(10):
            book = Book.objects.create(author=cls.ann if at % 3 else cls.bob, editor=cls.cid if at == 5 else None, title=f"Book {at}", pages=at * 10, price=at,
                                       published=datetime.datetime(2020 + at % 3, 1 + at, 1, tzinfo=UTC), is_out=at % 2 == 0)
            book.labels.set(cls.labels[: at % 4])

    def test_filters(self):
        titles = lambda *q, **where: sorted(Book.objects.filter(*q, **where).values_list("pages", flat=True))
        self.assertEqual(titles(title__contains="3"), [30])
        self.assertEqual(titles(title__icontains="BOOK 3"), [30])
        self.assertEqual(titles(title__contains="BOOK 3"), [])
        self.assertEqual(titles(title__iexact="book 3"), [30])
        self.assertEqual(titles(title__startswith="Book", pages__range=(20, 40)), [20, 30, 40])
        self.assertEqual(titles(title__regex=r"^Book [1-3]$"), [10, 20, 30])
        self.assertEqual(titles(title__iregex=r"^book [1-3]$"), [10, 20, 30])
        self.assertEqual(titles(title__in=["Book 1", "Book 2"]), [10, 20])
        self.assertEqual(titles(published__year=2021), [10, 40, 70])
        self.assertEqual(titles(published__month=3), [20])
        self.assertEqual(titles(published__date__gte=datetime.date(2022, 6, 1)), [50, 80])
        self.assertEqual(titles(published__week_day=1), sorted(b.pages for b in Book.objects.all() if b.published.isoweekday() % 7 + 1 == 1))
        self.assertEqual(titles(~Q(author__name="Ann"), pages__gt=0), [30, 60, 90])
        self.assertEqual(titles(Q(pages=0) | Q(price=9)), [0, 90])
        self.assertEqual(titles(editor__isnull=False), [50])
        self.assertEqual(titles(labels__word="odd"), [30, 70])
        self.assertEqual(titles(pages__gt=F("price") * 10), [])
        self.assertEqual(Book.objects.exclude(labels__word="old").count(), 3)
        self.assertEqual(Book.objects.filter(labels__isnull=False).distinct().count(), 7)
        self.assertEqual(Author.objects.filter(books__pages__gt=80).get(), self.bob)

    def test_sums_and_groups(self):
        found = Book.objects.aggregate(Count("id"), Sum("pages"), Avg("price"), Max("title"), Min("published"))
        self.assertEqual((found["id__count"], found["pages__sum"], found["price__avg"], found["title__max"]), (10, 450, decimal.Decimal("4.5"), "Book 9"))
        counts = Author.objects.annotate(n=Count("books"), pages=Coalesce(Sum("books__pages"), 0)).order_by("-n", "name").values_list("name", "n", "pages")
        self.assertEqual(list(counts), [("Ann", 6, 270), ("Bob", 4, 180), ("Cid", 0, 0)])
        self.assertEqual(list(Author.objects.annotate(n=Count("books", filter=Q(books__is_out=True))).filter(n__gt=2).values_list("name", "n")), [("Ann", 3)])
        self.assertEqual(list(Book.objects.values("author__name").annotate(most=Max("pages")).order_by("most")), [{"author__name": "Ann", "most": 80}, {"author__name": "Bob", "most": 90}])
        self.assertEqual(list(Book.objects.annotate(y=ExtractYear("published")).values("y").annotate(n=Count("id")).order_by("y").values_list("y", "n")), [(2020, 4), (2021, 3), (2022, 3)])
        self.assertEqual(Book.objects.annotate(m=TruncMonth("published")).values("m").distinct().count(), 10)

    def test_subqueries_windows_and_cases(self):
        longest = Book.objects.filter(author=OuterRef("pk")).order_by("-pages").values("title")[:1]
        self.assertEqual(list(Author.objects.annotate(longest=Subquery(longest)).values_list("name", "longest")), [("Ann", "Book 8"), ("Bob", "Book 9"), ("Cid", None)])
        self.assertEqual(list(Author.objects.filter(~Exists(Book.objects.filter(author=OuterRef("pk"))))), [self.cid])
        place = Window(RowNumber(), partition_by="author", order_by=F("pages").desc())
        self.assertEqual(sorted(Book.objects.annotate(place=place).filter(place=1).values_list("title", flat=True)), ["Book 8", "Book 9"])
        kinds = Book.objects.annotate(size=Case(When(pages__lt=30, then=Value("s")), When(pages__lt=60, then=Value("m")), default=Value("l"))).order_by("pages")
        self.assertEqual("".join(kinds.values_list("size", flat=True)), "sssmmmllll")
        self.assertEqual(Author.objects.annotate(s=Concat(Lower("name"), Value("-"), Length("name"), output_field=models.CharField())).values_list("s", flat=True)[0], "ann-3")
        both = Book.objects.filter(pages=0).values_list("title").union(Author.objects.values_list("name"))
        self.assertEqual(len(both), 4)
        self.assertEqual(list(Book.objects.order_by("pages")[3:6].values_list("pages", flat=True)), [30, 40, 50])
        self.assertEqual(list(Book.objects.dates("published", "year")), [datetime.date(y, 1, 1) for y in (2020, 2021, 2022)])
        self.assertEqual(Book.objects.order_by("?").count(), 10)
        self.assertIn("->", Book.objects.filter(pages=3).explain())

    def test_relations(self):
        with self.assertNumQueries(1):
            self.assertEqual([b.author.name for b in Book.objects.select_related("author", "editor").order_by("pages")][:2], ["Bob", "Ann"])
        with self.assertNumQueries(3):
            authors = list(Author.objects.prefetch_related(Prefetch("books", Book.objects.order_by("pages")), "books__labels"))
            self.assertEqual([len(b.labels.all()) for b in authors[1].books.all()], [0, 3, 2, 1])
        self.ann.friends.add(self.bob, self.cid)
        self.assertEqual(self.bob.friends.get(), self.ann)
        Passport.objects.create(author=self.ann, number="1")
        self.assertEqual(self.ann.passport.number, "1")
        self.assertEqual(Author.objects.filter(passport__isnull=True).count(), 2)
        deleted, each = self.ann.delete()
        self.assertEqual(each["library.Book"], 6)
        self.assertEqual(Book.objects.count(), 4)

    def test_changes(self):
        self.assertEqual(Book.objects.filter(pages__gt=50).update(pages=F("pages") + 1, note=Concat("title", Value("!"))), 4)
        self.assertEqual(Book.objects.filter(pages__gt=50).update(pages=F("pages")), 4)
        self.assertEqual(Book.objects.get(pages=61).note, "Book 6!")
        self.assertEqual(Author.objects.get_or_create(name="Ann")[1], False)
        self.assertEqual(Author.objects.update_or_create(name="Dan", defaults={"email": "d@x.org"})[1], True)
        made = Author.objects.bulk_create([Author(name=f"N{at}") for at in range(500)], batch_size=200)
        self.assertEqual(len(made), 500)
        Author.objects.bulk_create([Author(name="N1"), Author(name="N500")], ignore_conflicts=True)
        Author.objects.bulk_create([Author(name="N1", email="new@x.org")], update_conflicts=True, update_fields=["email"])
        self.assertEqual((Author.objects.filter(name__startswith="N").count(), Author.objects.get(name="N1").email), (501, "new@x.org"))
        some = list(Author.objects.filter(name__startswith="N").order_by("pk")[:50])
        for one in some:
            one.email = f"{one.name}@x.org"
        self.assertEqual(Author.objects.bulk_update(some, ["email"]), 50)
        self.assertEqual(len(Author.objects.in_bulk([one.pk for one in some])), 50)
        self.assertEqual(Author.objects.filter(name__startswith="N").delete()[0], 501)
        with transaction.atomic():
            self.assertEqual(Book.objects.select_for_update(of=("self",), skip_locked=True).select_related("author").get(pages=10).author, self.ann)

    def test_errors_and_savepoints(self):
        for change, code in ((lambda: Author.objects.create(name="Ann"), 1062), (lambda: Book.objects.filter(pages=10).update(price=-1), 3819), (lambda: Book.objects.filter(pages=10).update(title=None), 1048)):
            with self.assertRaises(IntegrityError) as caught, transaction.atomic():
                change()
            self.assertEqual(caught.exception.args[0], code)
        try:
            with transaction.atomic():
                Author.objects.create(name="Eve")
                with transaction.atomic():
                    Author.objects.create(name="Fay")
                raise ValueError
        except ValueError:
            pass
        self.assertFalse(Author.objects.filter(name__in=["Eve", "Fay"]).exists())

    def test_raw(self):
        self.assertEqual([a.name for a in Author.objects.raw("SELECT id, name FROM library_author WHERE name LIKE %s", ["B%"])], ["Bob"])
        with connection.cursor() as cursor:
            cursor.execute("SELECT %s, %s", [None, "100%"])
            self.assertEqual(cursor.fetchone(), (None, "100%"))


class Site(TestCase):
    @classmethod
    def setUpTestData(cls):
        cls.root = User.objects.create_superuser("root", "r@x.org", "secret")

    def test_users_and_groups(self):
        user = User.objects.create_user("ann", password="x")
        group = Group.objects.create(name="staff")
        group.permissions.add(Permission.objects.get(codename="add_book"))
        user.groups.add(group)
        self.assertEqual(User.objects.get(pk=user.pk).has_perm("library.add_book"), True)
        self.assertEqual(user.has_perm("library.delete_book"), False)
        self.assertEqual(set(User.objects.with_perm("library.add_book", backend="django.contrib.auth.backends.ModelBackend")), {user, self.root})

    def test_the_admin_pages(self):
        client = Client()
        self.assertTrue(client.login(username="root", password="secret"))
        self.assertFalse(Client().login(username="root", password="wrong"))
        none = {"books-TOTAL_FORMS": "1", "books-INITIAL_FORMS": "0", "books-0-title": "First", "books-0-pages": "7"}
        done = client.post("/admin/library/author/add/", {"name": "Ann", "born": "1980-01-01", "email": "", **none})
        self.assertEqual(done.status_code, 302, done.content[:2000])
        ann = Author.objects.get(name="Ann")
        self.assertEqual(ann.books.get().pages, 7)
        for path in ("", "library/", "library/author/", "library/author/?q=Fir", "library/author/?born__year=1980", f"library/author/{ann.pk}/change/", f"library/author/{ann.pk}/history/",
                     f"library/author/{ann.pk}/delete/", "library/book/?kind__exact=n&o=1", "library/book/?is_out__exact=0", "auth/user/", "auth/group/add/"):
            self.assertEqual(client.get("/admin/" + path).status_code, 200, path)
        self.assertContains(client.get("/admin/library/author/?q=Fir"), "Ann")
        done = client.post("/admin/library/author/", {"action": "delete_selected", "_selected_action": [str(ann.pk)], "post": "yes"})
        self.assertEqual((done.status_code, Author.objects.count(), Book.objects.count()), (302, 0, 0))


class Flushed(TransactionTestCase):
    reset_sequences = True

    def test_numbers_begin_anew(self):
        self.assertEqual(Author.objects.create(name="A").pk, 1)

    def test_after_a_flush_too(self):
        self.assertEqual(Author.objects.create(name="B").pk, 1)
        self.assertEqual(Author.objects.count(), 1)

    def test_hooks_after_commit(self):
        seen = []
        with transaction.atomic():
            transaction.on_commit(lambda: seen.append(Author.objects.count()))
            Author.objects.create(name="C")
        self.assertEqual(seen, [1])

    def test_dumped_and_loaded(self):
        author = Author.objects.create(name="Ann", born=datetime.date(1980, 1, 1))
        book = Book.objects.create(author=author, title="T", data={"a": [1]}, cover=b"\x00\xff", published=timezone.now())
        book.labels.add(Label.objects.create(word="w"))
        out = io.StringIO()
        call_command("dumpdata", "library", stdout=out)
        call_command("flush", interactive=False, verbosity=0)
        self.assertEqual(Author.objects.count(), 0)
        with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as file:
            file.write(out.getvalue())
        call_command("loaddata", file.name, verbosity=0)
        os.unlink(file.name)
        again = io.StringIO()
        call_command("dumpdata", "library", stdout=again)
        self.assertEqual(again.getvalue(), out.getvalue())

    def test_what_is_there_is_read(self):
        out = io.StringIO()
        call_command("inspectdb", stdout=out)
        text = out.getvalue()
        for line in ("class LibraryBook(models.Model):", "title = models.CharField(max_length=200)", "price = models.DecimalField(max_digits=12, decimal_places=3)", "data = models.JSONField()", "took = models.BigIntegerField(blank=True, null=True)",
                     "pages = models.PositiveIntegerField()", "unique_together = (('author', 'title'),)", "name = models.CharField(unique=True, max_length=100)"):
            # Without foreign keys a reference is a number.
            self.assertTrue(line in text or line.replace("'author'", "'author_id'") in text, line)
        self.assertNotIn("# Unable to inspect table", text)

    def test_the_schema_is_as_the_models_say(self):
        with connection.cursor() as cursor:
            found = connection.introspection.get_constraints(cursor, "library_book")
        self.assertEqual(found["once_an_author"]["columns"], ["author_id", "title"])
        self.assertTrue(found["no_negative_price"]["check"])
        self.assertEqual((found["by_pages"]["columns"], found["by_pages"]["orders"]), (["pages", "title"], ["DESC", "ASC"]))
        self.assertTrue(found["PRIMARY"]["primary_key"])

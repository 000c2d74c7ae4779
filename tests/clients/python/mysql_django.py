"""Django: its own migrations and those of an application, forth and back; then the application's tests, by Django's runner (tests/clients/django/library)."""

import io
import os
import shutil
import sys
import traceback
import unittest

from beluga import Server, Tally

tally = Tally()
SITE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../django")


def migrations(home):
    from django.core.management import call_command
    from django.db import connection
    from django.db.migrations.executor import MigrationExecutor

    call_command("check", database=["default"], stdout=io.StringIO())
    call_command("makemigrations", "library", verbosity=0)
    second = os.path.join(home, "library/migrations/0002_changes.py")
    call_command("migrate", verbosity=0)
    with connection.cursor() as cursor:
        before = {name: connection.introspection.get_table_description(cursor, name) for name in connection.introspection.table_names(cursor)}
        tally.check("tables", {"auth_user", "auth_user_groups", "django_admin_log", "django_session", "library_book", "library_book_labels"} <= set(before), sorted(before))
        cursor.execute("INSERT INTO library_author (name, email) VALUES ('Ann', 'a@x.org'), ('Bob', '')")
        with open(second, "w") as file:
            file.write("from library.changes import Migration\n")
        call_command("migrate", verbosity=0)
        cursor.execute("SELECT name, nick, `rank`, mail FROM library_author ORDER BY name")
        tally.equal("after the second", cursor.fetchall(), (("Ann", "Ann", 7, "a@x.org"), ("Bob", "Bob", 7, "")))
        tally.check("renamed", "labels" in connection.introspection.table_names(cursor) and "library_label" not in connection.introspection.table_names(cursor))
        call_command("migrate", "library", "0001", verbosity=0)
        after = {name: connection.introspection.get_table_description(cursor, name) for name in connection.introspection.table_names(cursor)}
        # A column that comes back is the last one.
        tally.equal("and back", {name: sorted(map(str, columns)) for name, columns in after.items()}, {name: sorted(map(str, columns)) for name, columns in before.items()})
        cursor.execute("SELECT name, email FROM library_author ORDER BY name")
        tally.equal("rows", cursor.fetchall(), (("Ann", "a@x.org"), ("Bob", "")))
    os.unlink(second)
    call_command("migrate", "library", "zero", verbosity=0)
    call_command("migrate", verbosity=0)
    call_command("sqlsequencereset", "library", stdout=io.StringIO())
    executor = MigrationExecutor(connection)
    tally.equal("nothing is left to do", executor.migration_plan(executor.loader.graph.leaf_nodes()), [])
    connection.close()


def generated():
    """GeneratedField, and an index over an expression: made by the schema editor, read back after each change."""
    from django.apps import apps
    from django.db import connection, models
    from django.db.models import F, Value
    from django.db.models.functions import Concat, Lower

    class Square(models.Model):
        side = models.IntegerField()
        name = models.CharField(max_length=30)
        area = models.GeneratedField(expression=F("side") * F("side"), output_field=models.BigIntegerField(), db_persist=True)
        label = models.GeneratedField(expression=Concat(Lower("name"), Value("/")), output_field=models.CharField(max_length=40), db_persist=False)

        class Meta:
            app_label = "library"
            indexes = [models.Index(Lower("name"), F("side").desc(), name="by_lower")]

    with connection.schema_editor() as editor:
        editor.create_model(Square)
    made = Square.objects.create(side=4, name="Big")
    tally.equal("generated values", (made.pk and Square.objects.get(pk=made.pk).area, Square.objects.get(pk=made.pk).label), (16, "big/"))
    Square.objects.create(side=2, name="SMALL")
    Square.objects.filter(name="Big").update(side=F("side") + 1)
    tally.equal("by a generated column", list(Square.objects.filter(area=25).values_list("label", "area")), [("big/", 25)])
    tally.equal("in order", list(Square.objects.order_by("-area").values_list("side", flat=True)), [5, 2])
    tally.equal("by the expression", Square.objects.annotate(low=Lower("name")).filter(low="small").count(), 1)
    twice = models.GeneratedField(expression=F("side") * 2, output_field=models.IntegerField(), db_persist=False)
    twice.contribute_to_class(Square, "twice")
    with connection.schema_editor() as editor:
        editor.add_field(Square, twice)
    with connection.cursor() as cursor:
        cursor.execute("SELECT side, twice FROM library_square ORDER BY side")
        tally.equal("a field that came later", cursor.fetchall(), ((2, 4), (5, 10)))
        constraints = connection.introspection.get_constraints(cursor, "library_square")
        tally.check("the index", "by_lower" in constraints, sorted(constraints))
    with connection.schema_editor() as editor:
        editor.remove_field(Square, twice)
        editor.remove_index(Square, Square._meta.indexes[0])
        editor.delete_model(Square)
    # The site's own tests would otherwise look for its table too.
    del apps.all_models["library"]["square"]
    apps.clear_cache()


def tests():
    from django.test.runner import DiscoverRunner

    runner = DiscoverRunner(verbosity=0, interactive=False)
    suite = runner.build_suite(["library"])
    old = runner.setup_databases()
    result = unittest.TestResult()
    suite.run(result)
    runner.teardown_databases(old)
    for case, text in result.failures + result.errors:
        tally.check(str(case), False, text[-1500:])
    tally.passed += result.testsRun - len(result.failures) - len(result.errors)
    tally.check("some tests ran", result.testsRun > 10)


def main():
    with Server(mysql=True) as server:
        home = os.path.join(server.home, "site")
        shutil.copytree(SITE, home)
        sys.path.insert(0, home)
        os.environ["DJANGO_PORT"] = str(server.mysql_port)
        os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
        sys.dont_write_bytecode = True
        import django
        import pymysql

        connection = pymysql.connect(host="127.0.0.1", port=server.mysql_port, user="root", autocommit=True)
        with connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE site")
        django.setup()
        from django.db import connection as used

        # Beluga's answer decides whether Django makes foreign keys.
        with connection.cursor() as cursor:
            try:
                cursor.execute("CREATE TABLE site.one (id INT PRIMARY KEY, two INT, FOREIGN KEY (two) REFERENCES site.one (id))")
                cursor.execute("DROP TABLE site.one")
            except pymysql.Error as error:
                if error.args[0] != 1235:
                    raise
                used.features.supports_foreign_keys = False
        for part in (lambda: migrations(home), generated, tests):
            try:
                part()
            except Exception:
                tally.check("part", False, traceback.format_exc()[-2500:])


main()
tally.close()

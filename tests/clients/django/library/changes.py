"""A second migration, of everything that alters a table: the suite runs it, and back."""

from django.db import migrations, models


def fill(apps, schema_editor):
    apps.get_model("library", "Author").objects.update(nick=models.F("name"))


class Migration(migrations.Migration):
    dependencies = [("library", "0001_initial")]
    operations = [
        migrations.AddField("author", "nick", models.CharField(max_length=10, null=True)),
        migrations.RunPython(fill, migrations.RunPython.noop),
        migrations.AlterField("author", "nick", models.CharField(max_length=120, default="-")),
        migrations.AddField("author", "rank", models.IntegerField(default=7, db_index=True)),
        migrations.AlterField("author", "rank", models.BigIntegerField(default=8, db_index=True)),
        migrations.RenameField("author", "email", "mail"),
        migrations.RenameModel("Label", "Tag"),
        migrations.AddIndex("tag", models.Index(fields=["word", "id"], name="by_word")),
        migrations.RenameIndex("tag", new_name="by_word_again", old_name="by_word"),
        migrations.RemoveIndex("book", "by_pages"),
        migrations.RemoveConstraint("book", "no_negative_price"),
        migrations.AddConstraint("book", models.CheckConstraint(condition=models.Q(price__gte=-5), name="nearly_positive")),
        migrations.AlterField("book", "note", models.CharField(max_length=500, null=True, unique=True)),
        migrations.AlterModelTable("tag", "labels"),
        migrations.CreateModel("Extra", [("code", models.CharField(max_length=8, primary_key=True)), ("value", models.FloatField(db_default=1.5))]),
        migrations.AlterField("extra", "code", models.CharField(max_length=16, primary_key=True)),
        migrations.AlterUniqueTogether("author", {("nick", "rank")}),
        migrations.AlterModelTableComment("tag", "words of books"),
        migrations.RemoveField("book", "score"),
    ]

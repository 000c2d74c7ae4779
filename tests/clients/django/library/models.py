"""Fields of every kind, and the three kinds of relations."""

import uuid

from django.db import models
from django.db.models import Q


class Author(models.Model):
    name = models.CharField(max_length=100, unique=True)
    born = models.DateField(null=True, blank=True)
    email = models.EmailField(blank=True)
    friends = models.ManyToManyField("self", blank=True)

    class Meta:
        ordering = ["name"]

    def __str__(self):
        return self.name


class Label(models.Model):
    word = models.SlugField()


class Book(models.Model):
    class Kind(models.TextChoices):
        NOVEL = "n"
        ESSAY = "e"

    title = models.CharField(max_length=200, db_index=True)
    author = models.ForeignKey(Author, on_delete=models.CASCADE, related_name="books")
    editor = models.ForeignKey(Author, on_delete=models.SET_NULL, null=True, blank=True, related_name="edited")
    labels = models.ManyToManyField(Label, blank=True)
    kind = models.CharField(max_length=1, choices=Kind.choices, default=Kind.NOVEL)
    price = models.DecimalField(max_digits=12, decimal_places=3, default=0)
    pages = models.PositiveIntegerField(default=0)
    published = models.DateTimeField(null=True, blank=True)
    data = models.JSONField(default=dict, blank=True)
    key = models.UUIDField(default=uuid.uuid4, unique=True)
    cover = models.BinaryField(default=b"")
    took = models.DurationField(null=True, blank=True)
    at = models.TimeField(null=True, blank=True)
    ip = models.GenericIPAddressField(null=True, blank=True)
    score = models.FloatField(null=True, blank=True)
    big = models.BigIntegerField(default=0)
    small = models.PositiveSmallIntegerField(default=0)
    is_out = models.BooleanField(default=False)
    note = models.TextField(blank=True, default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["author", "title"], name="once_an_author"),
            models.CheckConstraint(condition=Q(price__gte=0), name="no_negative_price"),
        ]
        indexes = [models.Index(fields=["-pages", "title"], name="by_pages")]


class Passport(models.Model):
    author = models.OneToOneField(Author, on_delete=models.CASCADE, primary_key=True)
    number = models.CharField(max_length=20)

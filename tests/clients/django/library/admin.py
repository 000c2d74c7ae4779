from django.contrib import admin

from library.models import Author, Book, Label


class Books(admin.TabularInline):
    model = Book
    fk_name = "author"
    fields = ["title", "pages"]
    extra = 1


@admin.register(Author)
class AuthorAdmin(admin.ModelAdmin):
    list_display = ["name", "born"]
    search_fields = ["name", "books__title"]
    date_hierarchy = "born"
    inlines = [Books]


@admin.register(Book)
class BookAdmin(admin.ModelAdmin):
    list_display = ["title", "author", "price"]
    list_filter = ["kind", "is_out", "author"]


admin.site.register(Label)

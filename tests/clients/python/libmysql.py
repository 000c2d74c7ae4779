"""MySQL's own C client, libmysqlclient, by ctypes: Connector/Python brings it inside its extension module, and exports it. For what no driver here can ask for:
zstd, query attributes, changes of the session's state. To be imported before whatever loads the system's OpenSSL, for it wants the one that Connector/Python brings."""

import ctypes
import importlib.util

# mysql_option
MAX_ALLOWED_PACKET, COMPRESSION_ALGORITHMS, ZSTD_COMPRESSION_LEVEL = 32, 41, 42
CLIENT_MULTI_STATEMENTS = 1 << 16
LONGLONG, DOUBLE, STRING, BLOB, NULL = 8, 5, 254, 252, 6
# enum_session_state_type
TRACKED = {"variables": 0, "schema": 1, "change": 2, "gtids": 3, "characteristics": 4, "transaction": 5}


class Bind(ctypes.Structure):
    """MYSQL_BIND."""

    _fields_ = [
        ("length", ctypes.POINTER(ctypes.c_ulong)), ("is_null", ctypes.c_void_p), ("buffer", ctypes.c_void_p), ("error", ctypes.c_void_p), ("row_ptr", ctypes.c_void_p),
        ("store_param_func", ctypes.c_void_p), ("fetch_result", ctypes.c_void_p), ("skip_result", ctypes.c_void_p), ("buffer_length", ctypes.c_ulong),
        ("offset", ctypes.c_ulong), ("length_value", ctypes.c_ulong), ("param_number", ctypes.c_uint), ("pack_length", ctypes.c_uint), ("buffer_type", ctypes.c_int),
        ("error_value", ctypes.c_bool), ("is_unsigned", ctypes.c_bool), ("long_data_used", ctypes.c_bool), ("is_null_value", ctypes.c_bool), ("extension", ctypes.c_void_p),
    ]


def load():
    library = ctypes.CDLL(importlib.util.find_spec("_mysql_connector").origin)
    for name in ("mysql_init", "mysql_real_connect", "mysql_store_result", "mysql_stmt_init", "mysql_fetch_lengths"):
        getattr(library, name).restype = ctypes.c_void_p
    library.mysql_fetch_row.restype = ctypes.POINTER(ctypes.c_void_p)
    library.mysql_fetch_lengths.restype = ctypes.POINTER(ctypes.c_ulong)
    library.mysql_error.restype = library.mysql_stmt_error.restype = ctypes.c_char_p
    library.mysql_affected_rows.restype = ctypes.c_ulonglong
    return library


LIBRARY = load()


class Error(Exception):
    pass


def binds(values):
    """An array of MYSQL_BIND, and what must live as long as it does."""
    array, kept = (Bind * max(len(values), 1))(), []
    for bind, value in zip(array, values):
        if value is None:
            bind.buffer_type = NULL
            continue
        if isinstance(value, int):
            held, bind.buffer_type, length = ctypes.c_longlong(value), LONGLONG, 8
        elif isinstance(value, float):
            held, bind.buffer_type, length = ctypes.c_double(value), DOUBLE, 8
        else:
            data = value if isinstance(value, bytes) else value.encode()
            held, bind.buffer_type, length = ctypes.create_string_buffer(data, len(data) + 1), BLOB if isinstance(value, bytes) else STRING, len(data)
        counted = ctypes.c_ulong(length)
        bind.buffer, bind.buffer_length, bind.length = ctypes.addressof(held), length, ctypes.pointer(counted)
        kept += [held, counted]
    return array, kept


class Connection:
    def __init__(self, port, user="root", password="", database="", algorithms=None, level=None, packet=1 << 30, flags=0):
        self.handle = ctypes.c_void_p(LIBRARY.mysql_init(None))
        LIBRARY.mysql_options(self.handle, MAX_ALLOWED_PACKET, ctypes.byref(ctypes.c_ulong(packet)))
        if algorithms is not None:
            LIBRARY.mysql_options(self.handle, COMPRESSION_ALGORITHMS, algorithms.encode())
        if level is not None:
            LIBRARY.mysql_options(self.handle, ZSTD_COMPRESSION_LEVEL, ctypes.byref(ctypes.c_uint(level)))
        if not LIBRARY.mysql_real_connect(self.handle, b"127.0.0.1", user.encode(), password.encode(), database.encode(), port, None, ctypes.c_ulong(flags)):
            error = self.error()
            self.close()
            raise error

    def error(self):
        return Error(LIBRARY.mysql_errno(self.handle), LIBRARY.mysql_error(self.handle).decode())

    def close(self):
        LIBRARY.mysql_close(self.handle)

    def attributes(self, **named):
        """Of the next statement."""
        array, self.kept = binds(list(named.values()))
        names = (ctypes.c_char_p * max(len(named), 1))(*[name.encode() for name in named])
        self.kept += [array, names]
        if LIBRARY.mysql_bind_param(self.handle, len(named), array, names):
            raise self.error()

    def ask(self, text):
        """The rows of one statement, as bytes; for one without rows, how many it has changed."""
        data = text if isinstance(text, bytes) else text.encode()
        if LIBRARY.mysql_real_query(self.handle, data, ctypes.c_ulong(len(data))):
            raise self.error()
        return self.result()

    def result(self):
        found = ctypes.c_void_p(LIBRARY.mysql_store_result(self.handle))
        if not found.value:
            if LIBRARY.mysql_errno(self.handle):
                raise self.error()
            return LIBRARY.mysql_affected_rows(self.handle)
        width, rows = LIBRARY.mysql_num_fields(found), []
        while row := LIBRARY.mysql_fetch_row(found):
            lengths = LIBRARY.mysql_fetch_lengths(found)
            rows.append(tuple(None if row[at] is None else ctypes.string_at(row[at], lengths[at]) for at in range(width)))
        LIBRARY.mysql_free_result(found)
        return rows

    def more(self):
        """The result behind this one; `None` if there is none."""
        state = LIBRARY.mysql_next_result(self.handle)
        if state > 0:
            raise self.error()
        return self.result() if state == 0 else None

    def tracked(self, kind):
        """The session state of the last OK packet."""
        data, length, told = ctypes.c_char_p(), ctypes.c_size_t(), []
        state = LIBRARY.mysql_session_track_get_first(self.handle, TRACKED[kind], ctypes.byref(data), ctypes.byref(length))
        while state == 0:
            told.append(ctypes.string_at(data, length.value).decode())
            state = LIBRARY.mysql_session_track_get_next(self.handle, TRACKED[kind], ctypes.byref(data), ctypes.byref(length))
        return told


class Statement:
    """A prepared statement whose rows are read as text."""

    WIDE = 1 << 16

    def __init__(self, connection, text):
        self.connection = connection
        self.handle = ctypes.c_void_p(LIBRARY.mysql_stmt_init(connection.handle))
        data = text.encode()
        if LIBRARY.mysql_stmt_prepare(self.handle, data, ctypes.c_ulong(len(data))):
            raise self.error()

    def error(self):
        return Error(LIBRARY.mysql_stmt_errno(self.handle), LIBRARY.mysql_stmt_error(self.handle).decode())

    def run(self, values=(), **attributes):
        """Its rows, with the attributes of this execution."""
        array, kept = binds([*values, *attributes.values()])
        names = (ctypes.c_char_p * max(len(values) + len(attributes), 1))(*[None] * len(values), *[name.encode() for name in attributes])
        if LIBRARY.mysql_stmt_bind_named_param(self.handle, array, len(values) + len(attributes), names) or LIBRARY.mysql_stmt_execute(self.handle):
            raise self.error()
        del kept
        width = LIBRARY.mysql_stmt_field_count(self.handle)
        buffers = [ctypes.create_string_buffer(self.WIDE) for _ in range(width)]
        lengths, nulls = (ctypes.c_ulong * max(width, 1))(), (ctypes.c_bool * max(width, 1))()
        columns = (Bind * max(width, 1))()
        for at in range(width):
            columns[at].buffer_type, columns[at].buffer, columns[at].buffer_length = STRING, ctypes.addressof(buffers[at]), self.WIDE
            columns[at].length = ctypes.cast(ctypes.addressof(lengths) + at * ctypes.sizeof(ctypes.c_ulong), ctypes.POINTER(ctypes.c_ulong))
            columns[at].is_null = ctypes.addressof(nulls) + at
        rows = []
        if width:
            LIBRARY.mysql_stmt_bind_result(self.handle, columns)
            while LIBRARY.mysql_stmt_fetch(self.handle) == 0:
                rows.append(tuple(None if nulls[at] else buffers[at].raw[: lengths[at]] for at in range(width)))
            LIBRARY.mysql_stmt_free_result(self.handle)
        return rows

    def close(self):
        LIBRARY.mysql_stmt_close(self.handle)
